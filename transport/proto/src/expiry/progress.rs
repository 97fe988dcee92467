//! Messages that stop arriving, whatever their senders report: they return their unused room.
//!
//! A sender may answer requests for missing bytes with BUSY, as long as it likes: an honest one has
//! shorter messages to send first. That is no silence (TIME-4), but it must not cost others their
//! room (CAP-8).

use super::suspect::interval;
use crate::inbound::Inbound;
use crate::lifecycle::{Ending, end_server};
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
    /// It was a request that was given up, and has ended.
    GivenUp,
}

/// Checks the progress of the incoming message of `rpc`, some of which its sender may transmit.
///
/// After [`STALLED_INTERVALS`] without progress, the message returns the room for its missing
/// bytes. A request without progress for `timeout_usecs` is given up if others recently lacked
/// room: it was not executed, and its client may send it again, as after silence (BAD-6). One
/// request is given up at a time, so that no more are than needed.
pub(super) fn check_progress(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
) -> Progress {
    let peer = protocol.tables.rpcs[rpc].peer;
    let interval = interval(protocol, peer);
    let entry = &mut protocol.tables.rpcs[rpc];
    let Some(message) = &mut entry.incoming else { return Progress::Live };
    let idle = protocol.timers.arrears.read_up_to(protocol.now).since(message.progressed());
    if idle < STALLED_INTERVALS * interval {
        return Progress::Live;
    }
    let admission = &mut output.observation.metrics.admission;
    if inbound.budget.receive.give_back(&mut protocol.tables.peers, peer, message) {
        admission.stalled_messages += 1;
    }
    let timeout = protocol.config.timeout_usecs() * USEC;
    let is_over = idle >= timeout;
    let receive = &inbound.budget.receive;
    if !is_over || !receive.lacked_room(protocol.now, STALLED_INTERVALS * interval) {
        return Progress::Live;
    }
    // CAP-21: the largest host first. The others follow later, if that was not enough.
    if !receive.is_largest(&mut protocol.tables.peers, peer) && idle < 2 * timeout {
        return Progress::Live;
    }
    match entry.side {
        // A call ends when its server is silent, or at its deadline.
        Side::Client(_) => Progress::Live,
        Side::Server(_) => {
            admission.stalled_requests_given_up += 1;
            end_server(protocol, inbound, output, rpc, Ending::GivenUp);
            inbound.budget.receive.room_was_made();
            Progress::GivenUp
        }
    }
}
