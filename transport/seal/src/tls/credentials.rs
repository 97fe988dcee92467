//! Credentials of an endpoint and its trust anchors, read from files.

use super::error::CredentialsError;
use super::known_keys::{self, KnownKey};
use super::pem;
use super::provider::{derive, fingerprint_of, provider};
use rustls::RootCertStore;
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer,
};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Minimum length of a cluster's secret. An observer of a handshake can try secrets offline, so a
/// memorable password offers no protection.
const SHORTEST_SECRET: usize = 32;

/// Ed25519 private key in PKCS #8 (RFC 8410 section 7), before its 32 bytes.
const ED25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// The identity of this endpoint, and its requirements for peers.
#[derive(Clone)]
pub enum Credentials {
    /// Certificates: the chain and key of this host, the CA of the peers, and lists of revoked
    /// certificates.
    #[doc(hidden)]
    Certificates {
        own: Arc<CertifiedKey>,
        roots: Arc<RootCertStore>,
        revoked: Vec<CertificateRevocationListDer<'static>>,
    },
    /// Raw public keys: the key of this host, and the known keys of peers.
    #[doc(hidden)]
    Keys { own: Arc<CertifiedKey>, known: Arc<Vec<KnownKey>>, is_secret: bool },
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Certificates { .. } => "Credentials::Certificates(..)",
            Self::Keys { .. } => "Credentials::Keys(..)",
        })
    }
}

impl Credentials {
    /// Reads certificates in PEM: the chain of this host, leaf first; its key; the CA of the peers;
    /// and optionally a file of revocation lists.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`].
    pub fn certificates(
        certificate: &Path,
        key: &Path,
        ca: &Path,
        revocations: Option<&Path>,
    ) -> Result<Self, CredentialsError> {
        let chain = pem::certificates(certificate)?;
        let own = certified(chain, pem::private_key(key)?, key)?;
        let is_pair = own.keys_match();
        is_pair.map_err(|error| CredentialsError::unusable(certificate, &error))?;
        let mut roots = RootCertStore::empty();
        for root in pem::certificates(ca)? {
            roots.add(root).map_err(|error| CredentialsError::unusable(ca, &error))?;
        }
        let revoked = revocations.map(pem::revocations).transpose()?.unwrap_or_default();
        Ok(Self::Certificates { own: Arc::new(own), roots: Arc::new(roots), revoked })
    }

    /// Reads the private key of this host in PEM, and a file of known keys.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`].
    pub fn keys(key: &Path, known: &Path) -> Result<Self, CredentialsError> {
        let own = raw(pem::private_key(key)?, key)?;
        let text = pem::read_public(known)?;
        let parsed = known_keys::parse(&String::from_utf8_lossy(&text));
        let known = parsed.map_err(|(line, expected)| {
            let path = known.to_owned();
            CredentialsError::KnownKeys { path, line, expected }
        })?;
        Ok(Self::Keys { own: Arc::new(own), known: Arc::new(known), is_secret: false })
    }

    /// Reads the secret shared by all hosts of a cluster: at least 32 bytes.
    ///
    /// HKDF derives a key pair from the secret, the same at all hosts. A peer that proves
    /// possession of the private key has the secret. Handshakes therefore have forward secrecy
    /// without a protocol of their own.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`].
    pub fn secret(path: &Path) -> Result<Self, CredentialsError> {
        let secret = pem::read_secret(path)?;
        // Remove the line end that an editor adds; the rest may be any bytes.
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let len = secret.len() - secret.iter().rev().take_while(|byte| is_end(byte)).count();
        let secret = &secret[..len];
        if secret.len() < SHORTEST_SECRET {
            let have = secret.len();
            return Err(CredentialsError::ShortSecret { path: path.to_owned(), have });
        }
        let unusable = || CredentialsError::unusable(path, &"the secret leads to no key");
        let seed =
            derive(&provider(), secret, b"apus cluster secret, version 1").map(Zeroizing::new);
        let seed = seed.ok_or_else(unusable)?;
        let mut der = Vec::with_capacity(48);
        der.extend(ED25519_PKCS8);
        der.extend(*seed);
        let own = raw(PrivatePkcs8KeyDer::from(der).into(), path)?;
        let known = KnownKey { name: "cluster".to_owned(), fingerprint: fingerprint(&own) };
        Ok(Self::Keys { own: Arc::new(own), known: Arc::new(vec![known]), is_secret: true })
    }

    /// Returns the SHA-256 of this host's certificate or raw public key.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 32] {
        let (Self::Certificates { own, .. } | Self::Keys { own, .. }) = self;
        fingerprint(own)
    }

    /// Returns the certificate of this host in DER; `None` if it has a raw key.
    #[must_use]
    pub fn certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Certificates { own, .. } => own.cert.first().map(AsRef::as_ref),
            Self::Keys { .. } => None,
        }
    }
}

fn fingerprint(own: &CertifiedKey) -> [u8; 32] {
    own.cert.first().map_or([0; 32], |shown| fingerprint_of(shown))
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    path: &Path,
) -> Result<CertifiedKey, CredentialsError> {
    let signer = provider().key_provider.load_private_key(key);
    let signer = signer.map_err(|error| CredentialsError::unusable(path, &error))?;
    Ok(CertifiedKey::new(chain, signer))
}

/// A raw public key (RFC 7250): rustls takes it in place of a certificate.
fn raw(key: PrivateKeyDer<'static>, path: &Path) -> Result<CertifiedKey, CredentialsError> {
    let signer = provider().key_provider.load_private_key(key);
    let signer = signer.map_err(|error| CredentialsError::unusable(path, &error))?;
    let public = signer.public_key();
    let public = public
        .ok_or_else(|| CredentialsError::unusable(path, &"the key's public half is not known"))?;
    let shown = CertificateDer::from(public.as_ref().to_vec());
    Ok(CertifiedKey::new(vec![shown], signer))
}
