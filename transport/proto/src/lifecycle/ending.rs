//! The ends of RPCs. All use `remove`, which takes the RPC out of every table and releases its
//! reservations.
//!
//! Requirement `RPC-6`: afterwards only its id remains, among the finished ids.

use crate::budget::SendBudget;
use crate::error::{FailureKind, RpcError};
use crate::event::Event;
use crate::inbound::Inbound;
use crate::message::CompleteMessage;
use crate::observation::exemplar;
use crate::probe::ProbeKind;
use crate::protocol::Protocol;
use crate::rpc::{RpcKey, Side};
use crate::tx::Output;
use apus_wire::{Ack, Body, Flags, Profile, Refusal};
use std::time::Duration;

/// How a server RPC ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The client has the response.
    Acknowledged,
    /// It will not be executed (again), and no client waits for it, as far as is known.
    Discarded,
    /// It was given up before it could be executed; the client may send it again.
    GivenUp,
    /// This endpoint has refused it.
    Refused,
}

/// The response is complete: gives it to the caller, and acknowledges it with the next packet to
/// the server.
#[inline(always)]
pub(crate) fn complete_client(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    response: CompleteMessage,
) {
    let entry = &protocol.tables.rpcs[rpc];
    let (nanos, selected) = (protocol.now.since(entry.started), entry.selected);
    let ack = Ack { client_id: entry.id, server_port: entry.peer_port };
    let peer = &mut protocol.tables.peers[entry.peer];
    // A response of one packet ends the call before the call records a sign of life.
    peer.hear(protocol.now);
    let overflow = peer.acks.add(ack, protocol.now);
    if !peer.acks.is_watched {
        peer.acks.is_watched = true;
        let delay = protocol.timers.resend_interval.ack_delay(&protocol.config);
        protocol.timers.idle_acks.watch(entry.peer, protocol.now.plus(delay));
    }
    if selected || output.observation.notes.is_slow(nanos) {
        note_answered(protocol, output, rpc, nanos, response.length);
    }
    if let Some(list) = overflow {
        output.observation.metrics.recovery.ack_overflows += 1;
        output.control(protocol, rpc, Body::Ack(list));
    }
    let metrics = &mut output.observation.metrics;
    metrics.calls.answered.record(nanos, 1);
    inbound.record_message(protocol.now, &response, &mut metrics.scheduling);
    metrics.progress.client_responses_done += 1;
    metrics.progress.client_response_bytes_done += u64::from(response.length);
    if let Some(cookie) = remove_client(protocol, inbound, output, rpc) {
        let payload = response.payload;
        output.observation.events.push_back(Event::Response { rpc, cookie, payload });
    }
}

/// Records a selected or slow call whose response of `length` bytes was complete after `nanos`.
#[cold]
fn note_answered(protocol: &Protocol, output: &mut Output, rpc: RpcKey, nanos: u64, length: u32) {
    if protocol.tables.rpcs[rpc].selected {
        output.observation.note(&protocol.tables, rpc, ProbeKind::Complete { rpc, length });
        let exemplar = exemplar(&protocol.tables, rpc, protocol.now, nanos);
        output.observation.metrics.calls.answered_exemplars.remember(exemplar);
    }
    if output.observation.notes.is_slow(nanos) {
        let took = Duration::from_nanos(nanos);
        output.observation.note(&protocol.tables, rpc, ProbeKind::Slow { took });
    }
}

/// Fails a call. Its state decides what the error states about the execution (AMO-5).
pub(crate) fn fail_client(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    reason: FailureKind,
) {
    let Some(entry) = protocol.tables.rpcs.get(rpc) else { return };
    let execution = entry.outcome(output.outbound.identity.profile == Profile::Udp);
    fail_client_with(protocol, inbound, output, rpc, RpcError { kind: reason, execution });
}

/// Fails a call with the execution status that the server has reported.
pub(crate) fn fail_client_with(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    error: RpcError,
) {
    let Some(started) = protocol.tables.rpcs.get(rpc).map(|entry| entry.started) else { return };
    output.observation.note(&protocol.tables, rpc, ProbeKind::Failed(error.kind));
    let Some(cookie) = remove_client(protocol, inbound, output, rpc) else { return };
    output.observation.metrics.progress.client_rpcs_failed += 1;
    output.observation.metrics.calls.fail(error.kind, protocol.now.since(started));
    output.observation.events.push_back(Event::Failed { rpc, cookie, error });
}

/// Fails a call by a decision of this endpoint, and notifies the server that no response is needed.
pub(crate) fn fail_and_disown(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    reason: FailureKind,
) {
    if protocol.tables.rpcs.get(rpc).is_some() {
        output.disown(protocol, rpc);
        fail_client(protocol, inbound, output, rpc, reason);
    }
}

/// Tells the client of a live request that it will not be served, and ends it.
pub(crate) fn refuse_live(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    refusal: Refusal,
) {
    if output.outbound.identity.profile == Profile::Udp {
        output.control_with(protocol, rpc, Body::RpcUnknown, Flags::REFUSED, refusal as u32);
    }
    output.observation.metrics.admission.refused += 1;
    end_server(protocol, inbound, output, rpc, Ending::Refused);
}

/// A server RPC ends.
#[inline(always)]
pub(crate) fn end_server(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    ending: Ending,
) {
    // Only a watched request is in service and among those whose silence is watched.
    let is_watched = protocol.tables.rpcs.get(rpc).is_some_and(|entry| {
        entry.silence_place.tick != 0 && entry.incoming.is_none() && entry.outgoing.is_none()
    });
    if remove(protocol, inbound, output, rpc, ending != Ending::GivenUp).is_none() {
        return;
    }
    if is_watched && ending != Ending::Refused {
        output.observation.events.push_back(Event::ClientGone { rpc });
    }
    let progress = &mut output.observation.metrics.progress;
    match ending {
        Ending::Acknowledged => progress.server_responses_done += 1,
        Ending::Discarded | Ending::GivenUp | Ending::Refused => {
            progress.server_rpcs_discarded += 1;
        }
    }
}

/// Removes a call, and returns its cookie.
#[inline(always)]
pub(crate) fn remove_client(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
) -> Option<u64> {
    let Side::Client(client) = remove(protocol, inbound, output, rpc, true)? else { return None };
    if let Some(deadline) = client.deadline {
        protocol.timers.deadlines.remove(deadline, rpc);
    }
    inbound.budget.room_again(&mut output.observation.events);
    Some(client.cookie)
}

/// Takes an RPC out of every table, releases its reservations, and records its id as finished if
/// `is_finished`.
#[inline(always)]
fn remove(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    is_finished: bool,
) -> Option<Side> {
    let (entry, peer) = protocol.tables.end(protocol.now, rpc)?;
    let (side, name) = (entry.side, entry.peer);
    let (mut counted, mut more_ids) = (0, false);
    match &side {
        Side::Client(_) if output.outbound.identity.profile == Profile::Udp => {
            peer.calls.end(entry.id);
        }
        Side::Server(server) if is_finished => {
            more_ids = peer.serving.finish(server.session, entry.id, protocol.now);
        }
        _ => {}
    }
    if let Some(message) = &entry.outgoing {
        peer.unscheduled.release(message.unread());
        let (bytes, events) = (u64::from(message.length()), &mut output.observation.events);
        inbound.budget.release_send(peer, entry.role(), bytes, events);
        if SendBudget::is_counted(entry.role(), bytes) {
            counted = bytes;
        }
        entry.outgoing = None;
    }
    protocol.timers.silence.forget(entry);
    output.outbound.messages.remove(rpc, entry);
    // Only a message that is arriving has anything to be granted, or reserved.
    if let Some(message) = entry.incoming.take() {
        inbound.granter.forget(rpc, entry);
        inbound.budget.receive.end(&mut protocol.tables.peers, name, message.reservation());
    }
    if counted > 0 {
        inbound.budget.send.release_for_host(&mut protocol.tables.peers, name, counted);
    }
    if more_ids {
        protocol.tables.peers.count_ids(name, protocol.now);
    }
    Some(side)
}
