//! Messages on their way to the application.

use crate::engine::tracer::Traced;
use apus_proto::{Address, RpcError, RpcKey};
use apus_trace::Rpc;
use bytes::Bytes;

/// A request that has arrived.
#[derive(Debug)]
pub(crate) struct IncomingRequest {
    pub(crate) origin: Origin,
    pub(crate) from: Address,
    pub(crate) payload: Bytes,
    /// `None` if it is not traced.
    pub(crate) rpc: Option<Rpc>,
    /// Its turn among the requests that wait; 0 if it was not counted, as few waited.
    pub(crate) turn: u64,
}

/// A call of the shared kind that has ended.
#[derive(Debug)]
pub(crate) struct EndedCall {
    pub(crate) cookie: u64,
    pub(crate) result: Result<Bytes, RpcError>,
    /// `None` if it is not traced.
    pub(crate) rpc: Option<Rpc>,
}

/// A message that the application takes from the inbox, as counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A message of this many bytes, which may be 0.
    Message(usize),
    /// The end of a call that has failed.
    Failure,
}

impl Taken {
    /// Returns the completion of a call with this result.
    pub(crate) fn from_result(result: &Result<Bytes, RpcError>) -> Self {
        result.as_ref().map_or(Self::Failure, |payload| Self::Message(payload.len()))
    }
}

/// Origin of a request, and the name of its RPC there.
// Rationale: `repr` gives the tag a separate word, which an `Option` uses as its tag as well, as
// for `apus_proto::Event`.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum Origin {
    /// Over the network.
    Network(RpcKey),
    /// Through shared memory, over the pair with this number, with the id that its client has given
    /// it. A reference to the pair would cost two locked instructions for each request.
    Local(u64, u64),
}

impl Traced for IncomingRequest {
    fn rpc(&self) -> Option<Rpc> {
        self.rpc
    }
}

impl Traced for EndedCall {
    fn rpc(&self) -> Option<Rpc> {
        self.rpc
    }
}
