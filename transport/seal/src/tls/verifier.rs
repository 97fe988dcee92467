//! Verification of a peer's credentials: a certificate of the CA, or a known key.

use super::known_keys::KnownKey;
use super::provider::fingerprint_of;
use crate::failure::Failure;
use crate::identity::PeerRole;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{
    CertificateDer, CertificateRevocationListDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    AlertDescription, CertificateError, DigitallySignedStruct, DistinguishedName, Error,
    OtherError, RootCertStore, SignatureScheme,
};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

/// Verifies certificates of servers and clients against one CA.
#[derive(Debug)]
pub(super) struct CertificateVerifier {
    server: Arc<WebPkiServerVerifier>,
    client: Arc<dyn ClientCertVerifier>,
    /// Whether a server's certificate must name the called address.
    names_address: bool,
}

impl CertificateVerifier {
    pub(super) fn new(
        roots: &Arc<RootCertStore>,
        revoked: &[CertificateRevocationListDer<'static>],
        names_address: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, Failure> {
        let server = WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone())
            .with_crls(revoked.iter().cloned())
            .allow_unknown_revocation_status()
            .build();
        let client = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone())
            .with_crls(revoked.iter().cloned())
            .allow_unknown_revocation_status()
            .build();
        let (Ok(server), Ok(client)) = (server, client) else { return Err(Failure::Internal) };
        Ok(Self { server, client, names_address })
    }

    /// Verifies the chain of a peer at `ip` again, at the present time, in the role that it was
    /// verified in: a certificate may be for one of them only, and only a server's names its
    /// address.
    pub(super) fn recheck(
        &self,
        chain: &[Vec<u8>],
        role: PeerRole,
        ip: IpAddr,
    ) -> Result<(), Failure> {
        let chain: Vec<_> = chain.iter().map(|der| CertificateDer::from(&der[..])).collect();
        let Some((own, others)) = chain.split_first() else { return Err(Failure::NoCertificate) };
        let now = UnixTime::now();
        let checked = match role {
            PeerRole::Client => self.client.verify_client_cert(own, others, now).map(drop),
            PeerRole::Server => {
                self.verify_server_cert(own, others, &name_of(ip), &[], now).map(drop)
            }
        };
        checked.map_err(|error| cause_of(&error))
    }
}

/// Returns the name that the certificate of a server at `ip` is verified for.
pub(super) fn name_of(ip: IpAddr) -> ServerName<'static> {
    ServerName::IpAddress(ip.to_canonical().into())
}

impl ServerCertVerifier for CertificateVerifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.server.verify_server_cert(own, others, name, ocsp, now) {
            // The name is checked last, so everything else is valid. In a cluster an identity is a
            // name given by the CA, and addresses change; `allow` lists the admitted identities.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.names_address => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls12_signature(&*self.server, message, own, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        ServerCertVerifier::verify_tls13_signature(&*self.server, message, own, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.server.supported_verify_schemes()
    }
}

impl CertificateVerifier {
    pub(super) fn as_client_verifier(&self) -> Arc<dyn ClientCertVerifier> {
        self.client.clone()
    }
}

/// Verifies raw public keys of servers and clients against a list (RFC 7250).
pub(super) struct KeyVerifier {
    known: Arc<Vec<KnownKey>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl fmt::Debug for KeyVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyVerifier").field("known", &self.known).finish()
    }
}

impl KeyVerifier {
    pub(super) const fn new(
        known: Arc<Vec<KnownKey>>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Self {
        Self { known, algorithms }
    }

    /// Returns the name of a key.
    pub(super) fn name_of(&self, fingerprint: &[u8; 32]) -> Option<&str> {
        self.known.iter().find(|known| known.fingerprint == *fingerprint).map(|known| &*known.name)
    }

    fn check(&self, key: &CertificateDer<'_>) -> Result<(), Error> {
        match self.name_of(&fingerprint_of(key)) {
            Some(_) => Ok(()),
            None => {
                let unknown = OtherError(Arc::new(Refused(Failure::UnknownKey)));
                Err(Error::InvalidCertificate(CertificateError::Other(unknown)))
            }
        }
    }

    fn verify(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }
}

/// A cause without an equivalent in rustls.
#[derive(Debug, thiserror::Error)]
#[error("{0:?}")]
struct Refused(Failure);

/// The methods common to the verifiers of servers and clients in rustls: the peer signs with its
/// raw key.
macro_rules! signatures_by_raw_keys {
    () => {
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _own: &CertificateDer<'_>,
            _signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("raw keys are used with TLS 1.3 only".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            own: &CertificateDer<'_>,
            signed: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            self.verify(message, own, signed)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.algorithms.supported_schemes()
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for KeyVerifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(own).map(|()| ServerCertVerified::assertion())
    }

    signatures_by_raw_keys!();
}

impl ClientCertVerifier for KeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(own).map(|()| ClientCertVerified::assertion())
    }

    signatures_by_raw_keys!();
}

/// Returns the cause of a rustls error or of a received alert.
pub(super) fn cause_of(error: &Error) -> Failure {
    match error {
        Error::InvalidCertificate(error) => match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Failure::Expired,
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Failure::NotYetValid
            }
            CertificateError::UnknownIssuer => Failure::UnknownCa,
            CertificateError::Revoked => Failure::Revoked,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Failure::NameMismatch
            }
            CertificateError::Other(OtherError(error)) => {
                error.downcast_ref::<Refused>().map_or(Failure::BadCertificate, |it| it.0)
            }
            // A certificate of another CA with the same name.
            CertificateError::BadSignature => Failure::UnknownCa,
            _ => Failure::BadCertificate,
        },
        Error::NoCertificatesPresented => Failure::NoCertificate,
        Error::PeerIncompatible(_) => Failure::Incompatible,
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateExpired => Failure::Expired,
            AlertDescription::UnknownCA => Failure::UnknownCa,
            AlertDescription::CertificateRevoked => Failure::Revoked,
            AlertDescription::BadCertificate => Failure::BadCertificate,
            AlertDescription::CertificateRequired => Failure::NoCertificate,
            AlertDescription::HandshakeFailure => Failure::Incompatible,
            _ => Failure::Protocol,
        },
        Error::FailedToGetRandomBytes | Error::FailedToGetCurrentTime | Error::General(_) => {
            Failure::Internal
        }
        _ => Failure::Protocol,
    }
}
