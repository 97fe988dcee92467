//! The cryptographic library behind rustls, and the hashes and MACs that this crate takes from it.

use rustls::crypto::CryptoProvider;
use rustls::crypto::tls13::OkmBlock;
use rustls::{CipherSuite, NamedGroup, Tls13CipherSuite};
use std::sync::Arc;

/// Returns the provider: aws-lc if it is compiled in, otherwise ring.
///
/// AES-128-GCM is preferred, since a packet costs a third less than with AES-256, and X25519, since
/// a hybrid with ML-KEM takes two packets in each direction. The other suites and groups are used
/// with peers that support no better choice.
fn library() -> CryptoProvider {
    #[cfg(feature = "tls-aws-lc")]
    return rustls::crypto::aws_lc_rs::default_provider();
    #[cfg(all(feature = "tls-ring", not(feature = "tls-aws-lc")))]
    return rustls::crypto::ring::default_provider();
    #[cfg(not(any(feature = "tls-ring", feature = "tls-aws-lc")))]
    compile_error!("choose `tls-aws-lc` or `tls-ring`");
}

/// Returns the provider with its TLS 1.3 suites for QUIC, in the order of preference.
pub(super) fn provider() -> Arc<CryptoProvider> {
    let mut provider = library();
    provider.cipher_suites.retain(|suite| suite.tls13().is_some_and(|suite| suite.quic.is_some()));
    provider.cipher_suites.sort_by_key(|suite| match suite.suite() {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => 0,
        CipherSuite::TLS13_AES_256_GCM_SHA384 => 1,
        _ => 2,
    });
    provider.kx_groups.sort_by_key(|group| u8::from(group.name() != NamedGroup::X25519));
    Arc::new(provider)
}

/// Returns the suite whose hash is SHA-256.
pub(super) fn sha256_suite(provider: &CryptoProvider) -> Option<&'static Tls13CipherSuite> {
    let suites = provider.cipher_suites.iter().filter_map(rustls::SupportedCipherSuite::tls13);
    suites.into_iter().find(|suite| suite.common.hash_provider.output_len() == 32)
}

/// Returns the SHA-256 of `bytes`.
pub(super) fn sha256(provider: &CryptoProvider, bytes: &[u8]) -> [u8; 32] {
    let mut digest = [0; 32];
    if let Some(suite) = sha256_suite(provider) {
        digest.copy_from_slice(suite.common.hash_provider.hash(bytes).as_ref());
    }
    digest
}

/// Returns the HMAC-SHA256 of `message` under `key`.
pub(super) fn hmac(provider: &CryptoProvider, key: &[u8; 32], message: &[u8]) -> [u8; 32] {
    let mut mac = [0; 32];
    if let Some(suite) = sha256_suite(provider) {
        let tag = suite.hkdf_provider.hmac_sign(&OkmBlock::new(key), message);
        mac.copy_from_slice(tag.as_ref());
    }
    mac
}

/// Derives 32 bytes from `secret` and `purpose` (HKDF with SHA-256, RFC 5869).
pub(super) fn derive(provider: &CryptoProvider, secret: &[u8], purpose: &[u8]) -> Option<[u8; 32]> {
    let suite = sha256_suite(provider)?;
    let expander = suite.hkdf_provider.extract_from_secret(None, secret);
    let mut derived = [0; 32];
    expander.expand_slice(&[purpose], &mut derived).ok()?;
    Some(derived)
}

/// Returns the SHA-256 of a certificate or public key in DER, for comparison and display.
#[must_use]
pub fn fingerprint_of(der: &[u8]) -> [u8; 32] {
    sha256(&provider(), der)
}

/// Returns the names in a certificate in DER: its URIs first, then its DNS names; `None` if it
/// cannot be read.
#[must_use]
pub fn describe_certificate(der: &[u8]) -> Option<Vec<String>> {
    let der = rustls::pki_types::CertificateDer::from(der);
    let certificate = webpki::EndEntityCert::try_from(&der).ok()?;
    let uris = certificate.valid_uri_names().map(str::to_owned);
    let names = certificate.valid_dns_names().map(str::to_owned);
    Some(uris.chain(names).collect())
}

/// Returns the cryptographic library of sealed packets, for other uses of rustls in the same
/// program.
#[doc(hidden)]
#[must_use]
pub fn crypto_provider() -> Arc<CryptoProvider> {
    provider()
}
