//! Events of the module for its applications.

use bytes::Bytes;

use super::rpc::ModuleRpcKey;

/// An event for the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleEvent {
    /// A request is complete.
    Request {
        /// Key of the RPC, for the reply.
        rpc: ModuleRpcKey,
        /// The whole request.
        payload: Bytes,
    },
    /// A call has completed.
    Response {
        /// Value given to the call.
        cookie: u64,
        /// The whole response.
        payload: Bytes,
    },
    /// A call has failed.
    Failed {
        /// Value given to the call.
        cookie: u64,
        /// Whether the deadline has passed; otherwise the server was silent for too long.
        late: bool,
    },
}
