//! An exemplar: one RPC whose duration a histogram counts.

use std::net::SocketAddr;

/// An RPC in the time trace whose duration is counted in a bucket of a histogram.
///
/// `apus trace rpcs FILE --id RPC --peer PEER` prints the trace's records of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Exemplar {
    /// Id of the RPC. Ids of calls are unique for each peer only.
    pub rpc: u64,
    /// Address of the other end.
    pub peer: SocketAddr,
    /// Its duration in nanoseconds. Says which bucket it belongs to.
    pub nanos: u64,
    /// Time at which the duration was counted, in milliseconds since 1970. `None` if the time of
    /// day is unknown.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Option::is_none"))]
    pub unix_millis: Option<u64>,
}

impl Exemplar {
    /// Converts an exemplar of the protocol.
    pub(super) fn new(found: &apus_proto::Exemplar, read_at: Option<crate::ReadTime>) -> Self {
        Self {
            rpc: found.id,
            peer: found.peer,
            nanos: found.nanos,
            unix_millis: read_at.and_then(|read_at| read_at.unix_millis(found.at)),
        }
    }
}
