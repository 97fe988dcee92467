//! Timer expiry, called by `handle_timeout` alone.

mod check;
mod client;
mod idle_acks;
mod progress;
mod suspect;

use crate::error::FailureKind;
use crate::inbound::Inbound;
use crate::lifecycle::{Ending, end_server, fail_and_disown};
use crate::protocol::Protocol;
use crate::rpc::{Rpc, RpcKey, Side};
use crate::timer::Why;
use crate::tx::Output;
use check::check;
use idle_acks::send_idle_acks;
pub(crate) use suspect::{ask, interval, note_closed, note_returned};
use suspect::{check_suspects, fail_unreached};

/// RPCs whose silence, or deadline, one call checks (the kernel yields after ten, HM `homa_timer.c`
/// `homa_timer`).
const CHECKS_PER_CALL: usize = 256;

/// RPCs that one check after an overflow visits. Chosen by us: a call must not visit all RPCs (CORE-5);
/// the others are checked for silence as always, half a resend interval later at most.
const VISITS_AFTER_OVERFLOW: usize = 1_024;

/// Runs everything that is due: a bounded amount of work.
pub(crate) fn run(protocol: &mut Protocol, inbound: &mut Inbound, output: &mut Output) {
    for _ in 0..CHECKS_PER_CALL {
        let Some(rpc) = protocol.timers.deadlines.expired(protocol.now) else { break };
        fail_and_disown(protocol, inbound, output, rpc, FailureKind::DeadlineExceeded);
    }
    check_after_overflow(protocol, inbound, output);
    for _ in 0..CHECKS_PER_CALL {
        let Some((rpc, late)) = protocol.timers.silence.due(&protocol.tables.rpcs, protocol.now)
        else {
            break;
        };
        // TIME-4: the endpoint was stopped, and could neither send nor receive. Otherwise a peer
        // that was stopped for the same time would have only a few RESENDs to respond.
        if late >= protocol.timers.resend_interval.most() {
            protocol.tables.rpcs[rpc].skip_silence(late, protocol.now);
        }
        protocol.timers.silence.watch(&mut protocol.tables.rpcs, rpc, protocol.now);
        check(protocol, inbound, output, rpc);
    }
    check_suspects(protocol, output);
    send_idle_acks(protocol, output);
    reap(protocol, inbound, output);
    if protocol.tables.peers.scan(protocol.now) {
        inbound.buffers.scan();
        if inbound.room.take_change(protocol.tables.peers.len()) {
            inbound.cutoffs.announce_again();
        }
    }
}

/// Checks receiving RPCs at once when the system has dropped packets and all earlier ones have been
/// read: bytes still missing are lost.
fn check_after_overflow(protocol: &mut Protocol, inbound: &mut Inbound, output: &mut Output) {
    if !protocol.timers.arrears.take_overflow_check() {
        return;
    }
    let receiving = |(rpc, entry): (RpcKey, &Rpc)| entry.incoming.is_some().then_some(rpc);
    let visited = protocol.tables.rpcs.iter().take(VISITS_AFTER_OVERFLOW);
    let rpcs: Vec<_> = visited.filter_map(receiving).take(CHECKS_PER_CALL).collect();
    for rpc in rpcs {
        check(protocol, inbound, output, rpc);
    }
}

/// Ends some of the RPCs that must end; those that have ended in the meantime are skipped.
fn reap(protocol: &mut Protocol, inbound: &mut Inbound, output: &mut Output) {
    for _ in 0..protocol.config.reap_limit() {
        let Some((rpc, why)) = protocol.timers.reaper.pop() else { return };
        let Some(entry) = protocol.tables.rpcs.get(rpc) else { continue };
        match (&entry.side, why) {
            (Side::Client(_), Why::Unreachable(reason)) => {
                fail_unreached(protocol, inbound, output, rpc, reason);
            }
            (Side::Client(_), Why::Orphan) => {
                debug_assert!(false, "only requests are orphaned");
            }
            (Side::Server(_), _) => end_server(protocol, inbound, output, rpc, Ending::Discarded),
        }
    }
}
