//! Bytes that a peer lacks: sent again, and what their loss says about the path.

use crate::peer::SizeChange;
use crate::protocol::Protocol;
use crate::rpc::RpcKey;
use crate::timer::InFlight;
use crate::tx::Output;
use std::ops::Range;

/// Marks `range` of the outgoing message of `rpc` to be sent again at `level`, as far as it was
/// sent and is not in flight (SEND-7). Returns whether any bytes of it wait to be sent again.
///
/// If long packets are lost round after round, packets become short, and the whole range leaves in
/// them (SEND-16).
pub(super) fn send_again(
    protocol: &mut Protocol,
    output: &mut Output,
    rpc: RpcKey,
    range: Range<u32>,
    level: u8,
    in_flight: InFlight,
) -> bool {
    let now = protocol.now;
    let entry = &mut protocol.tables.rpcs[rpc];
    let peer = &mut protocol.tables.peers[entry.peer];
    let Some(message) = &mut entry.outgoing else { return true };
    message.set_segment(peer.size.segment());
    if let Some(before) = range.start.checked_sub(1).and_then(|at| message.packet_bytes(at)) {
        peer.size.note_arrived(before);
    }
    let lost = message.packet_bytes(range.start).unwrap_or(peer.size.segment());
    let on_its_way = |sent| in_flight.covers(&peer.rtt, now.since(sent));
    let any_lost = message.request_resend(range.clone(), level, on_its_way);
    if any_lost {
        let change = peer.size.note_lost(lost, message.last_sent, now);
        if change == SizeChange::Narrowed {
            output.observation.metrics.recovery.paths_narrowed += 1;
        }
        if change != SizeChange::None {
            message.set_segment(peer.size.segment());
            message.request_resend(range, level, on_its_way);
        }
    }
    output.queue_resend(protocol, rpc);
    any_lost
}
