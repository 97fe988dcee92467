//! Why a directory cannot be opened as a store.

use std::io;
use std::path::Path;

use apus_fs_core::store::StoreError;
use apus_fs_core::wire::Errno;

/// Why a directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another server has the directory open.
    #[error("{path}: another server serves this directory")]
    InUse {
        /// The lock that the other server has.
        path: String,
    },
    /// A part of the log was changed after it was written.
    #[error("{path}: the log is damaged at byte {position}, and goes on behind it")]
    Damaged {
        /// The segment of the log, or the snapshot.
        path: String,
        /// Start of the damage.
        position: u64,
    },
    /// Changes of the log could not be applied again. They stay in the log: opening may succeed
    /// later, e.g. when there is space.
    #[error("changes of the log cannot be applied again ({what}): error {}", errno.0)]
    Replay {
        /// The operation that failed.
        what: String,
        /// The file system's error.
        errno: Errno,
    },
    /// The file system's error.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns a function that turns an error of a system call into an error of the store.
pub(crate) fn failed<E: Into<io::Error>>(
    operation: &'static str,
    path: &Path,
) -> impl FnOnce(E) -> StoreError {
    let path = path.display().to_string();
    move |error| StoreError { operation, path, source: error.into() }
}
