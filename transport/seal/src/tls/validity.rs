//! Validity period of a certificate, according to the library that verifies it.

use super::provider::provider;
use super::verifier::cause_of;
use crate::failure::Failure;
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, Error, RootCertStore};
use std::time::Duration;

/// The year 9999, after which no certificate is valid (RFC 5280 section 4.1.2.5).
const END_OF_TIME: u64 = 253_402_300_800;

/// Returns the start and end of a certificate's validity, in seconds since 1970. `chain` contains
/// it in DER, followed by the intermediate certificates up to one of `roots`. If one of these ends
/// earlier, its end is returned.
///
/// No parsing happens here: the certificate is verified at the earliest and latest time, and the
/// library's errors contain the dates.
///
/// # Errors
///
/// [`Failure`]: the certificate was not issued by one of `roots`, or cannot be read.
pub fn certificate_validity(chain: &[Vec<u8>], roots: &[Vec<u8>]) -> Result<(u64, u64), Failure> {
    let chain: Vec<_> = chain.iter().map(|der| CertificateDer::from(&der[..])).collect();
    let (own, others) = chain.split_first().ok_or(Failure::NoCertificate)?;
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(roots.iter().map(|der| CertificateDer::from(&der[..])));
    let own = ParsedCertificate::try_from(own).map_err(|_| Failure::BadCertificate)?;
    let algorithms = provider().signature_verification_algorithms.all;
    let verify = |seconds| {
        let at = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        verify_server_cert_signed_by_trust_anchor(&own, &store, others, at, algorithms)
    };
    let end = match verify(END_OF_TIME) {
        Ok(()) => END_OF_TIME,
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            not_after.as_secs()
        }
        Err(error) => return Err(cause_of(&error)),
    };
    let begin = match verify(0) {
        Ok(()) => 0,
        Err(Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before, ..
        })) => not_before.as_secs(),
        Err(error) => return Err(cause_of(&error)),
    };
    // The dates are valid; check the rest.
    verify(begin.midpoint(end)).map_err(|error| cause_of(&error))?;
    Ok((begin, end))
}
