//! Errors of a service.

use apus::Closed;
use apus_fs_core::store::StoreError;

/// Why a service has ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A client could not select one of them.
    #[error("two exports have the name `{name}`")]
    SameName {
        /// Their name.
        name: String,
    },
    /// A session's number has one byte for its export.
    #[error("one server has at most 256 exports")]
    TooManyExports,
    /// The store can no longer guarantee durability.
    #[error("the store has failed: {source}")]
    Store {
        /// The cause.
        source: StoreError,
    },
    /// The network cannot be used any more.
    #[error("receive requests: {source}")]
    Network {
        /// The cause.
        source: Closed,
    },
    /// The system grants no descriptor.
    #[error("create an event descriptor: {source}")]
    Mailbox {
        /// The system's error.
        source: std::io::Error,
    },
}
