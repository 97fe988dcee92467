//! Attempts to serve a request that needs leases.

use crate::wire::frame::encode;
use crate::wire::{Errno, Failure, Response};
use bytes::Bytes;

use super::queue::Needs;

/// Outcome of an attempt to serve a request.
pub(super) enum Attempt {
    /// It is served: header and payload of the response.
    Done(Bytes, Vec<Bytes>),
    /// Other sessions have these nodes.
    Blocked(Needs),
}

impl Attempt {
    pub(super) fn failed(errno: Errno) -> Self {
        Response::Failed(Failure::Errno(errno)).into()
    }
}

impl From<Response> for Attempt {
    fn from(response: Response) -> Self {
        Self::Done(encode(&response), Vec::new())
    }
}
