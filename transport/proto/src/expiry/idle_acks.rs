//! Acks for servers that receive no further DATA.

use crate::protocol::Protocol;
use crate::tx::Output;

/// Peers whose acks one call checks.
const CHECKS_PER_CALL: usize = 256;

/// Sends acks that have waited for DATA for too long (RPC-18). A server without the ack asks for
/// it, a kernel every millisecond and without end (HM `homa_timer.c` `homa_timer_check_rpc`), and
/// this process may have exited by then.
///
/// If the oldest ack is young, the acks before it have already left with DATA: the peer is checked
/// again when this one is old.
pub(super) fn send_idle_acks(protocol: &mut Protocol, output: &mut Output) {
    let delay = protocol.timers.resend_interval.ack_delay(&protocol.config);
    for _ in 0..CHECKS_PER_CALL {
        let Some(peer) = protocol.timers.idle_acks.take_due(protocol.now) else { return };
        let Some(entry) = protocol.tables.peers.get_mut(peer) else { continue };
        match entry.acks.oldest() {
            Some(since) if protocol.now.since(since) < delay => {
                protocol.timers.idle_acks.watch(peer, since.plus(delay));
                continue;
            }
            Some(_) => {
                entry.acks.is_watched = false;
                output.send_waiting_acks(protocol, peer);
            }
            None => entry.acks.is_watched = false,
        }
    }
}
