//! The check of an RPC whose peer should be sending: requests the missing bytes, and gives up in
//! the end.

use super::client::{check_client, is_watched_in_service};
use super::progress::{Progress, check_progress};
use super::suspect::{fail_unreached, interval};
use crate::budget::SendBudget;
use crate::error::FailureKind;
use crate::inbound::Inbound;
use crate::lifecycle::{Ending, end_server};
use crate::limits::MAX_NEED_ACK_INTERVAL;
use crate::peer::PeerId;
use crate::protocol::Protocol;
use crate::rpc::{ClientState, RpcKey, Rpcs, ServerState, Side, SideState};
use crate::time::{Instant, USEC};
use crate::timer::MIN_RESENDS;
use crate::tx::Output;
use apus_wire::{Body, Profile, Role};

/// Checks an RPC whose peer should be talking.
pub(super) fn check(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
) {
    let now = protocol.now;
    if is_orphan(protocol, rpc) {
        // AMO-4: it waits for the reaper, and its client would not understand a question.
        return end_server(protocol, inbound, output, rpc, Ending::Discarded);
    }
    if !waits_for_peer(&protocol.tables.rpcs, rpc) {
        if is_left(protocol, rpc) {
            return end_server(protocol, inbound, output, rpc, Ending::GivenUp);
        }
        if is_doubtful(protocol, rpc) {
            protocol.timers.resend_lines.join(&mut protocol.tables.rpcs, rpc);
            ask_in_turn(protocol, inbound, output, protocol.tables.rpcs[rpc].peer);
        }
        let entry = &mut protocol.tables.rpcs[rpc];
        entry.hear(now);
        if let Some(message) = &mut entry.incoming {
            message.note_waiting(now);
        }
        return;
    }
    match protocol.tables.rpcs[rpc].state() {
        SideState::Client(_) | SideState::Server(ServerState::Incoming) => {
            check_receiver(protocol, inbound, output, rpc);
        }
        SideState::Server(ServerState::Outgoing) => {
            check_response(protocol, inbound, output, rpc, now);
        }
        SideState::Server(ServerState::InService) => check_client(protocol, inbound, output, rpc),
    }
}

/// Whether `rpc` is a request of an earlier life of its client.
fn is_orphan(protocol: &Protocol, rpc: RpcKey) -> bool {
    let entry = &protocol.tables.rpcs[rpc];
    protocol.config.profile() == Profile::Udp
        && entry.server().is_some_and(|server| {
            !protocol.tables.peers[entry.peer].serving.is_current(server.session)
        })
}

/// Checks an RPC that waits for DATA: requests it, and gives up in the end (HM `homa_timer.c`
/// `homa_timer_check_rpc`; TIME-3, TIME-4).
///
/// Silence is measured up to the last instant at which the socket was known to be empty: unread
/// packets are no silence. Each BUSY from the peer halves the rate of requests to it.
fn check_receiver(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
) {
    if check_progress(protocol, inbound, output, rpc) == Progress::GivenUp {
        return;
    }
    let (silent, timeout) = (protocol.silence(rpc), protocol.config.timeout_usecs() * USEC);
    if silent >= timeout && asks(protocol, rpc, timeout) >= MIN_RESENDS {
        give_up(protocol, inbound, output, rpc, silent);
        return;
    }
    if !is_due(protocol, rpc) {
        return;
    }
    protocol.timers.resend_lines.join(&mut protocol.tables.rpcs, rpc);
    ask_in_turn(protocol, inbound, output, protocol.tables.rpcs[rpc].peer);
}

/// Returns the number of requests to the peer about `rpc`, or about other RPCs while this one
/// waited for its turn and no packet arrived: among thousands, its own turn follows after the
/// timeout (TIME-4).
fn asks(protocol: &Protocol, rpc: RpcKey, timeout: u64) -> u32 {
    let entry = &protocol.tables.rpcs[rpc];
    let read_up_to = protocol.timers.arrears.read_up_to(protocol.now);
    entry.asks.max(protocol.tables.peers[entry.peer].resends.unanswered_for(read_up_to, timeout))
}

/// Sends RESENDs to `peer` for the RPCs in its line, as many as its burst has room for (TIME-6).
pub(super) fn ask_in_turn(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    peer: PeerId,
) {
    let read_up_to = protocol.timers.arrears.read_up_to(protocol.now);
    let (interval, most) = (interval(protocol, peer), protocol.timers.resend_interval.most());
    while protocol.tables.peers[peer].resends.may_ask(read_up_to, interval, most) {
        let rpcs = &mut protocol.tables.rpcs;
        let Some(rpc) = protocol.timers.resend_lines.take_first(rpcs, peer) else { return };
        let receives = matches!(
            rpcs[rpc].state(),
            SideState::Client(_) | SideState::Server(ServerState::Incoming)
        );
        // The missing bytes may have arrived in the meantime.
        if receives && waits_for_peer(&protocol.tables.rpcs, rpc) && is_due(protocol, rpc) {
            output.request_missing(protocol, rpc);
            inbound.granter.silence(&mut protocol.tables.rpcs, rpc);
        } else if is_doubtful(protocol, rpc) || is_watched_in_service(protocol, rpc) {
            output.ask_whether_known(protocol, rpc);
        }
    }
}

/// Whether `rpc` is a request that waits for grants of this endpoint, and its client has not
/// answered about its other requests for the timeout (TIME-4). Otherwise each request in turn would
/// receive a GRANT and wait as long.
fn is_left(protocol: &Protocol, rpc: RpcKey) -> bool {
    protocol.tables.rpcs[rpc].state() == SideState::Server(ServerState::Incoming)
        && asks(protocol, rpc, protocol.config.timeout_usecs() * USEC) >= MIN_RESENDS
}

/// Whether `rpc` is a request that waits for grants of this endpoint, and its client has disclaimed
/// another one since the last question about this one (TIME-15). The client may have restarted;
/// without the question, each of its requests would be granted needlessly, for a resend interval.
fn is_doubtful(protocol: &Protocol, rpc: RpcKey) -> bool {
    let entry = &protocol.tables.rpcs[rpc];
    entry.state() == SideState::Server(ServerState::Incoming)
        && protocol.tables.peers[entry.peer].disclaimed.is_some_and(|at| entry.asked < at)
        && !waits_for_peer(&protocol.tables.rpcs, rpc)
}

/// Whether the peer has been silent about `rpc` for long enough, and the last request to it was not
/// recent (TIME-3).
pub(super) fn is_due(protocol: &Protocol, rpc: RpcKey) -> bool {
    let entry = &protocol.tables.rpcs[rpc];
    let since = protocol.timers.arrears.read_up_to(protocol.now).since(entry.asked);
    let asked_lately = entry.asks > 0 && since < interval(protocol, entry.peer);
    protocol.silence(rpc) >= protocol.rto(rpc) && !asked_lately
}

/// Ends an RPC after `silent` nanoseconds of silence, in which the peer did not answer requests.
fn give_up(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    silent: u64,
) {
    output.observation.metrics.recovery.rpc_timeouts += 1;
    let entry = &protocol.tables.rpcs[rpc];
    match &entry.side {
        Side::Client(_) => {
            let silent_ms = u32::try_from(silent / 1_000_000).unwrap_or(u32::MAX);
            let resends = asks(protocol, rpc, protocol.config.timeout_usecs() * USEC);
            // The next host at this address may be another server.
            let peer = entry.peer;
            protocol.tables.peers[peer].calls.forget_session();
            if output.outbound.identity.profile == Profile::Kernel {
                // If the server returned, it would wait for grants forever.
                output.disown(protocol, rpc);
            }
            // The last RESEND did not leave this host.
            let refused =
                protocol.timers.suspicions.is_refused_since(peer, protocol.tables.rpcs[rpc].asked);
            let silent = FailureKind::PeerSilent { silent_ms, resends };
            fail_unreached(
                protocol,
                inbound,
                output,
                rpc,
                if refused { FailureKind::NotPermitted } else { silent },
            );
        }
        // BAD-6: part of a request. It was not executed, and may be sent again.
        Side::Server(_) => end_server(protocol, inbound, output, rpc, Ending::GivenUp),
    }
}

/// Checks a response that waits for its acknowledgment (HM `homa_timer.c` `homa_timer_check_rpc`,
/// TIME-9), or for GRANTs of a client that may have disappeared: asks the client, at growing
/// intervals, and finally forgets the response (docs/reference/homa-module.md, *Known holes*).
fn check_response(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    now: Instant,
) {
    let entry = &protocol.tables.rpcs[rpc];
    let Some(message) = &entry.outgoing else { return };
    let read_up_to = protocol.timers.arrears.read_up_to(now);
    let since = message.last_sent.max(entry.heard);
    let limit = u32::try_from(protocol.config.need_ack_limit()).unwrap_or(u32::MAX);
    if inbound.budget.send.is_waited_for()
        && is_response_given_up(protocol, inbound, rpc, read_up_to)
    {
        output.observation.metrics.admission.responses_given_up += 1;
        end_server(protocol, inbound, output, rpc, Ending::Discarded);
        return;
    }
    let entry = &protocol.tables.rpcs[rpc];
    let peer = &mut protocol.tables.peers[entry.peer];
    // NEED_ACKs about other RPCs of the peer count, since they are sent in turn.
    let asks = entry.asks.max(peer.need_ack.rounds());
    if asks >= limit && read_up_to.since(since) >= protocol.config.timeout_usecs() * USEC {
        output.observation.metrics.recovery.need_acks_exhausted += 1;
        end_server(protocol, inbound, output, rpc, Ending::Discarded);
        return;
    }
    let first = protocol.timers.resend_interval.least(protocol.config.need_ack_usecs());
    let most = protocol.timers.resend_interval.most();
    let rto = peer.rtt.rto(first, most);
    let asked_before = entry.asks.saturating_add(entry.put_off);
    let wait = rto.saturating_mul(1 << asked_before.min(16)).min(MAX_NEED_ACK_INTERVAL);
    let last = if entry.asks == 0 { since } else { entry.asked };
    if read_up_to.since(last) >= wait && peer.need_ack.may_ask(read_up_to, rto) {
        peer.need_ack.sent(now);
        protocol.tables.rpcs[rpc].ask(now);
        output.control(protocol, rpc, Body::NeedAck);
    }
}

/// Whether a response that has made no progress for `timeout_usecs` ends now, because others wait
/// for room: a response to the host that has most. The other hosts have twice the time (CAP-21).
fn is_response_given_up(
    protocol: &mut Protocol,
    inbound: &Inbound,
    rpc: RpcKey,
    read_up_to: Instant,
) -> bool {
    let entry = &protocol.tables.rpcs[rpc];
    let Some(message) = &entry.outgoing else { return false };
    let idle = read_up_to.since(message.standing_since());
    let timeout = protocol.config.timeout_usecs() * USEC;
    let is_counted = SendBudget::is_counted(Role::Server, message.length().into());
    is_counted
        && idle >= timeout
        && (idle >= 2 * timeout
            || inbound.budget.send.takes_from(&mut protocol.tables.peers, entry.peer))
}

/// Whether the peer should be sending something for `rpc`, so that its silence counts
/// (HM `homa_timer.c` `homa_timer_check_rpc`, TIME-2).
fn waits_for_peer(rpcs: &Rpcs, rpc: RpcKey) -> bool {
    let entry = &rpcs[rpc];
    match (entry.state(), &entry.outgoing, &entry.incoming) {
        // This endpoint's own bytes have not all left.
        (_, Some(message), _) if message.is_sendable() || message.has_resend() => false,
        // A message whose granted bytes have all arrived waits for grants of this endpoint.
        (SideState::Client(ClientState::Incoming), _, Some(message))
        | (SideState::Server(_), None, Some(message)) => {
            message.gaps(message.granted()).next().is_some()
        }
        _ => true,
    }
}
