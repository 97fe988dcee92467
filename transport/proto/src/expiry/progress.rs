//! Messages that make no progress, whatever their senders report: they hold no grants, return their
//! unused room, and end in the end if others need their memory.
//!
//! A sender may answer requests for missing bytes with BUSY, repeat bytes, or send single ones, as
//! long as it likes: an honest one has shorter messages to send first. That is no silence (TIME-4),
//! but it must not cost others their grants (GRANT-10) or their room (CAP-8). Progress has one
//! definition for both, [`PROGRESS_BYTES`](crate::limits::PROGRESS_BYTES).

use super::suspect::interval;
use crate::error::FailureKind;
use crate::inbound::Inbound;
use crate::lifecycle::{Ending, end_server, fail_and_disown};
use crate::limits::STALLED_INTERVALS;
use crate::protocol::Protocol;
use crate::rpc::{RpcKey, Side};
use crate::time::USEC;
use crate::tx::Output;

/// The result of a progress check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// The RPC continues.
    Live,
    /// It was given up, and has ended.
    GivenUp,
}

/// Checks the progress of the incoming message of `rpc`, some of which its sender may transmit.
///
/// After a resend interval without progress, the message holds no grants; if hardly any of its
/// granted bytes have arrived, its host is doubtful (GRANT-21). The interval is the configured one:
/// a sender could lengthen the round-trip times that are measured with it.
///
/// After [`STALLED_INTERVALS`] without progress, the message returns the room for its missing
/// bytes. A message without progress for `timeout_usecs` is given up if others recently lacked
/// room: a request was not executed, and its client may send it again, as after silence (BAD-6); a
/// call fails. One message is given up at a time, so that no more are than needed.
pub(super) fn check_progress(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
) -> Progress {
    let peer = protocol.tables.rpcs[rpc].peer;
    let entry = &mut protocol.tables.rpcs[rpc];
    let Some(message) = &mut entry.incoming else { return Progress::Live };
    let (read_up_to, timeout) =
        (protocol.timers.arrears.read_up_to(protocol.now), protocol.config.timeout_usecs() * USEC);
    let holds_for = protocol.timers.resend_interval.least(protocol.config.resend_usecs());
    if message.is_slow(read_up_to, holds_for) {
        inbound.granter.doubt(&entry.grant, protocol.now.plus(timeout));
    }
    let idle = read_up_to.since(message.progressed());
    if idle < holds_for {
        return Progress::Live;
    }
    inbound.granter.silence(&mut protocol.tables.rpcs, rpc);
    let stalls_after = (STALLED_INTERVALS * interval(protocol, peer)).min(timeout);
    if idle < stalls_after {
        return Progress::Live;
    }
    let entry = &mut protocol.tables.rpcs[rpc];
    let Some(message) = &mut entry.incoming else { return Progress::Live };
    let admission = &mut output.observation.metrics.admission;
    if inbound.budget.receive.give_back(&mut protocol.tables.peers, peer, message) {
        admission.stalled_messages += 1;
    }
    let is_over = idle >= timeout;
    let receive = &inbound.budget.receive;
    if !is_over || !receive.lacked_room(protocol.now, stalls_after) {
        return Progress::Live;
    }
    // CAP-21: the largest host first. The others follow later, if that was not enough.
    if !receive.is_largest(&mut protocol.tables.peers, peer) && idle < 2 * timeout {
        return Progress::Live;
    }
    match entry.side {
        Side::Client(_) => {
            admission.stalled_responses_given_up += 1;
            fail_and_disown(protocol, inbound, output, rpc, FailureKind::ResponseLost);
        }
        Side::Server(_) => {
            admission.stalled_requests_given_up += 1;
            end_server(protocol, inbound, output, rpc, Ending::GivenUp);
        }
    }
    inbound.budget.receive.room_was_made();
    Progress::GivenUp
}
