//! What happens when a timer fires. `handle_timeout` is the only caller.

mod check;
mod idle_acks;
mod progress;
mod suspect;

use crate::error::FailureKind;
use crate::lifecycle::{Context, Ending, end_server, fail_and_disown};
use crate::rpc::{Rpc, RpcKey, Side};
use crate::timer::Why;
use check::check;
use idle_acks::send_idle_acks;
pub(crate) use suspect::{ask, interval, note_returned};
use suspect::{check_suspects, fail_unreached};

/// RPCs whose silence, or deadline, one call checks (the kernel yields after ten, HM `homa_timer.c` `homa_timer`).
const CHECKS_PER_CALL: usize = 256;

/// Does what has become due: a bounded amount of work.
pub(crate) fn run(cx: &mut Context) {
    for _ in 0..CHECKS_PER_CALL {
        let Some(rpc) = cx.timers.deadlines.expired(cx.now) else { break };
        fail_and_disown(cx, rpc, FailureKind::DeadlineExceeded);
    }
    check_after_overflow(cx);
    for _ in 0..CHECKS_PER_CALL {
        let Some((rpc, late)) = cx.timers.silence.due(&cx.tables.rpcs, cx.now) else { break };
        // TIME-4: the endpoint was stopped, and could neither ask nor hear. Without this, a peer that was stopped for the
        // same time would have no longer than a few RESENDs to respond.
        if late >= cx.timers.resend_interval.most() {
            cx.tables.rpcs[rpc].skip_silence(late, cx.now);
        }
        cx.timers.silence.watch(&mut cx.tables.rpcs, rpc, cx.now);
        check(cx, rpc);
    }
    check_suspects(cx);
    send_idle_acks(cx);
    reap(cx);
    if cx.tables.peers.scan(cx.now) {
        cx.inbound.buffers.scan();
        if cx.inbound.room.take_change(cx.tables.peers.len()) {
            cx.inbound.cutoffs.announce_again();
        }
    }
}

/// Checks RPCs at once when the system has dropped packets and everything before that has been read: what is still
/// missing is lost.
fn check_after_overflow(cx: &mut Context) {
    if !cx.timers.arrears.take_overflow_check() {
        return;
    }
    let receiving = |(rpc, entry): (RpcKey, &Rpc)| entry.incoming.is_some().then_some(rpc);
    let rpcs: Vec<_> = cx.tables.rpcs.iter().filter_map(receiving).take(CHECKS_PER_CALL).collect();
    for rpc in rpcs {
        check(cx, rpc);
    }
}

/// Ends some of the RPCs that must end; those that have ended meanwhile are skipped.
fn reap(cx: &mut Context) {
    for _ in 0..cx.config.reap_limit() {
        let Some((rpc, why)) = cx.timers.reaper.pop() else { return };
        let Some(entry) = cx.tables.rpcs.get(rpc) else { continue };
        match (&entry.side, why) {
            (Side::Client(_), Why::Unreachable(reason)) => fail_unreached(cx, rpc, reason),
            (Side::Client(_), Why::Orphan) => {
                debug_assert!(false, "only requests are orphaned");
            }
            (Side::Server(_), _) => end_server(cx, rpc, Ending::Discarded),
        }
    }
}
