//! Key files: read only if no other user may read them, and overwritten in memory after use.

use super::error::CredentialsError;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Maximum length of a file. A chain of certificates has a few thousand bytes.
const LONGEST: u64 = 1 << 20;

/// Mode bits that allow users other than the owner to read or change a file.
const OTHERS: u32 = 0o077;

/// Checks that only the owner may read the file at `path`.
///
/// # Errors
///
/// [`CredentialsError::Exposed`] with its mode, or [`CredentialsError::Read`].
pub fn check_permissions(path: &Path) -> Result<(), CredentialsError> {
    let metadata =
        std::fs::metadata(path).map_err(|source| CredentialsError::read(path, source))?;
    check_mode(path, metadata.mode())
}

fn check_mode(path: &Path, mode: u32) -> Result<(), CredentialsError> {
    let mode = mode & 0o777;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    Err(CredentialsError::Exposed { path: path.to_owned(), mode })
}

/// Reads a public file.
pub(super) fn read_public(path: &Path) -> Result<Vec<u8>, CredentialsError> {
    let file = File::open(path).map_err(|source| CredentialsError::read(path, source))?;
    let mut bytes = Vec::new();
    let read = file.take(LONGEST).read_to_end(&mut bytes);
    read.map_err(|source| CredentialsError::read(path, source))?;
    Ok(bytes)
}

/// Reads a secret file, unless other users may read it. Checks the mode of the opened file.
pub(super) fn read_secret(path: &Path) -> Result<Zeroizing<Vec<u8>>, CredentialsError> {
    let failed = |source| CredentialsError::read(path, source);
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    check_mode(path, metadata.mode())?;
    // Reserve the whole length: a growing vector leaves copies behind.
    let room = usize::try_from(metadata.len().min(LONGEST)).unwrap_or(0) + 1;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.take(LONGEST).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Reads the certificates in a PEM file, at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let bytes = read_public(path)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(CredentialsError::pem(path, "a certificate")),
    }
}

/// Reads the revocation lists in a PEM file.
pub(super) fn revocations(
    path: &Path,
) -> Result<Vec<CertificateRevocationListDer<'static>>, CredentialsError> {
    let bytes = read_public(path)?;
    let all: Result<Vec<_>, _> = CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
    all.map_err(|_| CredentialsError::pem(path, "revocation lists"))
}

/// Reads the private key in a PEM file.
pub(super) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, CredentialsError> {
    let bytes = read_secret(path)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|_| CredentialsError::pem(path, "a private key"))
}

/// Reads the certificates in a PEM file, at least one, in DER.
///
/// # Errors
///
/// [`CredentialsError`]: the file cannot be read or contains no certificate.
pub fn pem_certificates(path: &Path) -> Result<Vec<Vec<u8>>, CredentialsError> {
    Ok(certificates(path)?.iter().map(|der| der.to_vec()).collect())
}

/// Returns the certificates in a PEM text, in DER. Malformed certificates are skipped.
#[must_use]
pub fn certificates_in(pem: &[u8]) -> Vec<Vec<u8>> {
    CertificateDer::pem_slice_iter(pem).flatten().map(|der| der.to_vec()).collect()
}
