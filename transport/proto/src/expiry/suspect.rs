//! Peers reported unreachable by the system or the network: asked, and given up if they stay
//! silent.

use crate::error::{Execution, FailureKind, RpcError};
use crate::inbound::Inbound;
use crate::lifecycle::{fail_client, fail_client_with};
use crate::peer::PeerId;
use crate::protocol::Protocol;
use crate::rpc::{Rpc, RpcKey, ServerState, Side, SideState};
use crate::time::Instant;
use crate::timer::Suspicion;
use crate::tx::Output;
use apus_wire::Body;

/// Peers that one call checks.
const CHECKS_PER_CALL: usize = 16;

/// Fraction of the resend interval after which a check is repeated if unread packets remained.
const READING_PART: u64 = 4;

/// Asks a suspected peer about an RPC that the report concerns. Returns whether one exists.
pub(crate) fn ask(
    protocol: &mut Protocol,
    output: &mut Output,
    peer: PeerId,
    port: Option<u16>,
) -> bool {
    let asked = |(rpc, entry): (RpcKey, &Rpc)| concerns(entry, port).then_some(rpc);
    let Some(rpc) = protocol.tables.rpcs_with(peer).find_map(asked) else { return false };
    let now = protocol.now;
    let entry = &protocol.tables.rpcs[rpc];
    if entry.asks > 0 && entry.asked == now {
        // Asked for its silence already.
        return true;
    }
    match entry.side {
        // Whatever the server answers shows that it is alive: BUSY, DATA, RPC_UNKNOWN.
        Side::Client(_) => _ = output.request_missing(protocol, rpc),
        Side::Server(_) if entry.incoming.is_none() && entry.outgoing.is_none() => {
            output.ask_whether_known(protocol, rpc);
        }
        Side::Server(_) => {
            protocol.tables.peers[peer].need_ack.sent(now);
            protocol.tables.rpcs[rpc].ask(now);
            output.control(protocol, rpc, Body::NeedAck);
        }
    }
    true
}

/// Checks the suspected peers that are due (RPC-14).
pub(super) fn check_suspects(protocol: &mut Protocol, output: &mut Output) {
    for _ in 0..CHECKS_PER_CALL {
        let Some((peer, suspicion)) = protocol.timers.suspicions.due(protocol.now) else { return };
        if protocol.tables.peers.get_mut(peer).is_none() {
            protocol.timers.suspicions.forget(peer);
            continue;
        }
        check(protocol, output, peer, suspicion);
    }
}

fn check(protocol: &mut Protocol, output: &mut Output, peer: PeerId, suspicion: Suspicion) {
    let now = protocol.now;
    let interval = interval(protocol, peer);
    let Suspicion { port, since, asked, reason, .. } = suspicion;
    if is_heard(protocol, peer, port, since) {
        output.observation.metrics.recovery.unreachable_refuted += 1;
        protocol.timers.suspicions.forget(peer);
        return;
    }
    // Unread packets are no silence.
    if protocol.timers.arrears.read_up_to(now).since(asked) < interval {
        protocol.timers.suspicions.postpone(peer, now.plus(interval / READING_PART), None);
        return;
    }
    if !suspicion.was_asked_enough() {
        if ask(protocol, output, peer, port) {
            protocol.timers.suspicions.postpone(peer, now.plus(interval), Some(now));
        } else {
            protocol.timers.suspicions.forget(peer);
        }
        return;
    }
    protocol.timers.suspicions.forget(peer);
    // The next host at this address may not be the server that offered the session.
    protocol.tables.peers[peer].calls.forget_session();
    note_closed(protocol, peer, port);
    let ends = |(rpc, entry): (RpcKey, &Rpc)| {
        (concerns(entry, port) && entry.started <= asked).then_some(rpc)
    };
    protocol.timers.reaper.unreachable(protocol.tables.rpcs_with(peer).filter_map(ends), reason);
}

/// Records that `port` of a host of the kernel profile is closed: its calls are over (AMO-10).
pub(crate) fn note_closed(protocol: &mut Protocol, peer: PeerId, port: Option<u16>) {
    if let Some(port) = port {
        protocol.tables.peers[peer].serving.port_closed(port, protocol.now);
    }
}

/// Returns whether a packet of the peer, or of this port of it, has arrived after `since`.
fn is_heard(protocol: &Protocol, peer: PeerId, port: Option<u16>, since: Instant) -> bool {
    if port.is_none() {
        return protocol.tables.peers[peer].heard > since;
    }
    let heard = |(_, entry): (RpcKey, &Rpc)| {
        concerns(entry, port) && entry.heard > since && entry.heard > entry.started
    };
    protocol.tables.rpcs_with(peer).any(heard)
}

/// Returns for how long a peer may stay silent after a question.
pub(crate) fn interval(protocol: &Protocol, peer: PeerId) -> u64 {
    protocol.resend_interval(peer)
}

/// Returns whether a report about `port` of its peer concerns this RPC: calls, responses that the
/// client may not have, and requests in service whose client is watched (RPC-20). Other requests
/// end by other timers.
fn concerns(entry: &Rpc, port: Option<u16>) -> bool {
    let waits = match entry.state() {
        SideState::Client(_) | SideState::Server(ServerState::Outgoing) => true,
        SideState::Server(ServerState::InService) => entry.silence_place.tick != 0,
        SideState::Server(ServerState::Incoming) => false,
    };
    waits && port.is_none_or(|port| entry.peer_port == port)
}

/// Records that the network returned a DATA packet of the call `rpc`, or the system refused it. If
/// no packet of the request was sent twice, the server cannot have all of it, and a failure states
/// that (AMO-5).
pub(crate) fn note_returned(protocol: &mut Protocol, rpc: RpcKey) {
    let entry = &protocol.tables.rpcs[rpc];
    let once = entry.outgoing.as_ref().is_some_and(|message| !message.resent);
    if once && entry.client().is_some() {
        protocol.timers.suspicions.note_returned(rpc);
    }
}

/// A call fails because packets do not reach the server. If a packet of the request was returned
/// and none left twice, the server has not executed it.
pub(super) fn fail_unreached(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    kind: FailureKind,
) {
    let Some(entry) = protocol.tables.rpcs.get(rpc) else { return };
    let once = entry.outgoing.as_ref().is_some_and(|message| !message.resent);
    let unheard = entry.heard <= entry.started;
    if once && unheard && protocol.timers.suspicions.was_returned(rpc) {
        fail_client_with(
            protocol,
            inbound,
            output,
            rpc,
            RpcError { kind, execution: Execution::NotExecuted },
        );
    } else {
        fail_client(protocol, inbound, output, rpc, kind);
    }
}
