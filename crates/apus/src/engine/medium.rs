//! Which way does an RPC go, and what is it called there?

use apus_local::Pair;
use apus_proto::RpcKey;
use std::sync::Arc;

/// The way of a call of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// Over the network.
    Network(RpcKey),
    /// Through memory, over the pair with this number. Its id is the call's key.
    Local(u64),
}

/// Where a request came from.
// A word says which of them, and whether there is a request at all where there may be none: as for `apus_proto::Event`.
#[derive(Clone, Debug)]
#[repr(u64)]
pub(crate) enum Origin {
    /// Over the network.
    Network(RpcKey),
    /// Through memory, with the id that its client has given it.
    Local(Arc<Pair>, u64),
}
