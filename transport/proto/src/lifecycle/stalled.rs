//! Responses that their clients do not take: they make room for others of the same host.

use super::ending::{Ending, end_server};
use crate::inbound::Inbound;
use crate::limits::STALLED_INTERVALS;
use crate::peer::PeerId;
use crate::protocol::Protocol;
use crate::rpc::Tables;
use crate::time::Instant;
use crate::tx::Output;

/// Ends a response to the host of `peer` that has made no progress for [`STALLED_INTERVALS`]
/// (CAP-21). Returns whether there was one.
// Only for a host at its limit.
#[cold]
pub(crate) fn end_stalled_response(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    peer: PeerId,
) -> bool {
    let read_up_to = protocol.timers.arrears.read_up_to(protocol.now);
    let stalled = STALLED_INTERVALS * protocol.resend_interval(peer);
    let limit = Instant::from_nanos(read_up_to.as_nanos().saturating_sub(stalled));
    let now = protocol.now;
    let Tables { rpcs, peers } = &mut protocol.tables;
    let found = inbound.budget.send.stalled_of_host(peers, peer, limit, |rpc| {
        let message = rpcs.get(rpc)?.outgoing.as_ref()?;
        // Bytes that may leave are this endpoint's to send.
        Some(if message.is_sendable() { now } else { message.standing_since() })
    });
    let Some(rpc) = found else { return false };
    output.observation.metrics.admission.responses_given_up += 1;
    end_server(protocol, inbound, output, rpc, Ending::Discarded);
    true
}
