//! Reasons why keys and certificates cannot be used.

use super::mode::SecurityMode;
use crate::failure::Failure;
use std::io;
use std::path::{Path, PathBuf};

/// Reasons why keys and certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The mode needs an option that is missing.
    #[error("mode `{mode}` needs the option `{option}` in [security]")]
    Missing {
        /// The mode.
        mode: SecurityMode,
        /// The option.
        option: &'static str,
    },
    /// The cryptographic library rejects the credentials.
    #[error("the cryptographic library refuses the certificates of the CA ({})", .failure.name())]
    Library {
        /// The cause.
        failure: Failure,
    },
    /// A secret file may be read by others.
    #[error("{path} has mode {mode:03o}: other users may read the key; `chmod 600 {path}`", path = .path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// The permission bits of its mode.
        mode: u32,
    },
    /// A file lacks the expected content.
    #[error("{path} does not contain {expected} in PEM", path = .path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// The expected content.
        expected: &'static str,
    },
    /// A line of the file of known keys is wrong.
    #[error("{path}, line {line}: {expected}", path = .path.display())]
    KnownKeys {
        /// The file.
        path: PathBuf,
        /// The line number, starting at 1.
        line: usize,
        /// The expected form.
        expected: &'static str,
    },
    /// The secret of the cluster is too short.
    #[error("{path} has {have} bytes; a cluster's secret has at least 32 random ones: `apus keys init --secret`", path = .path.display())]
    ShortSecret {
        /// The file.
        path: PathBuf,
        /// Its length without trailing line ends.
        have: usize,
    },
    /// Key and certificate do not match, or the library rejects one of them.
    #[error("{path}: {reason}", path = .path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The library's message.
        reason: String,
    },
}

impl CredentialsError {
    pub(super) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source }
    }

    pub(super) fn pem(path: &Path, expected: &'static str) -> Self {
        Self::Pem { path: path.to_owned(), expected }
    }

    pub(super) fn unusable(path: &Path, reason: &impl ToString) -> Self {
        Self::Unusable { path: path.to_owned(), reason: reason.to_string() }
    }
}
