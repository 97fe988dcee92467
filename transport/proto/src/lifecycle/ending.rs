//! The ends of RPCs. All go through `remove`, which takes the RPC out of every table and returns what it had reserved.
//!
//! Requirement `RPC-6`: after that nothing of it is left but its id among the finished ones.

use super::Context;
use crate::error::{FailureKind, RpcError};
use crate::event::Event;
use crate::message::CompleteMessage;
use crate::observation::exemplar;
use crate::probe::ProbeKind;
use crate::rpc::{RpcKey, Side};
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
}

/// The response is complete: gives it to the caller, and acknowledges it with the next packet to the server.
#[inline(always)]
pub(crate) fn complete_client(cx: &mut Context, rpc: RpcKey, response: CompleteMessage) {
    let entry = &cx.tables.rpcs[rpc];
    let (nanos, selected) = (cx.now.since(entry.started), entry.selected);
    let ack = Ack { client_id: entry.id, server_port: entry.peer_port };
    let peer = &mut cx.tables.peers[entry.peer];
    // A response of one packet ends the call before it counts as heard.
    peer.hear(cx.now);
    let overflow = peer.acks.add(ack, cx.now);
    if !peer.acks.is_watched {
        peer.acks.is_watched = true;
        let delay = cx.timers.resend_interval.ack_delay(&cx.config);
        cx.timers.idle_acks.watch(entry.peer, cx.now.plus(delay));
    }
    if selected || cx.observation.notes.is_slow(nanos) {
        note_answered(cx, rpc, nanos, response.length);
    }
    if let Some(list) = overflow {
        cx.observation.metrics.recovery.ack_overflows += 1;
        cx.sender().control(rpc, Body::Ack(list));
    }
    let metrics = &mut cx.observation.metrics;
    metrics.calls.answered.record(nanos, 1);
    cx.inbound.record_message(cx.now, &response, &mut metrics.scheduling);
    metrics.progress.client_responses_done += 1;
    metrics.progress.client_response_bytes_done += u64::from(response.length);
    if let Some(cookie) = remove_client(cx, rpc) {
        let payload = response.payload;
        cx.observation.events.push_back(Event::Response { rpc, cookie, payload });
    }
}

/// Notes a call that is selected, or slow, and has taken `nanos` until its response of `length` bytes was complete.
#[cold]
fn note_answered(cx: &mut Context, rpc: RpcKey, nanos: u64, length: u32) {
    if cx.tables.rpcs[rpc].selected {
        cx.observation.note(&cx.tables, rpc, ProbeKind::Complete { rpc, length });
        let exemplar = exemplar(&cx.tables, rpc, cx.now, nanos);
        cx.observation.metrics.calls.answered_exemplars.remember(exemplar);
    }
    if cx.observation.notes.is_slow(nanos) {
        let took = Duration::from_nanos(nanos);
        cx.observation.note(&cx.tables, rpc, ProbeKind::Slow { took });
    }
}

/// The call fails. What is known about its execution follows from its state (AMO-5).
pub(crate) fn fail_client(cx: &mut Context, rpc: RpcKey, reason: FailureKind) {
    let Some(entry) = cx.tables.rpcs.get(rpc) else { return };
    let execution = entry.outcome(cx.outbound.identity.profile == Profile::Udp);
    fail_client_with(cx, rpc, RpcError { kind: reason, execution });
}

/// The call fails, and the server has said what became of the request.
pub(crate) fn fail_client_with(cx: &mut Context, rpc: RpcKey, error: RpcError) {
    let Some(started) = cx.tables.rpcs.get(rpc).map(|entry| entry.started) else { return };
    cx.observation.note(&cx.tables, rpc, ProbeKind::Failed(error.kind));
    let Some(cookie) = remove_client(cx, rpc) else { return };
    cx.observation.metrics.progress.client_rpcs_failed += 1;
    cx.observation.metrics.calls.fail(error.kind, cx.now.since(started));
    cx.observation.events.push_back(Event::Failed { rpc, cookie, error });
}

/// The call fails by a decision of this endpoint: the server learns that its response is not wanted.
pub(crate) fn fail_and_disown(cx: &mut Context, rpc: RpcKey, reason: FailureKind) {
    if cx.tables.rpcs.get(rpc).is_some() {
        cx.sender().disown(rpc);
        fail_client(cx, rpc, reason);
    }
}

/// Tells the client of a live request that it will not be served, and ends it.
pub(crate) fn refuse_live(cx: &mut Context, rpc: RpcKey, refusal: Refusal) {
    if cx.outbound.identity.profile == Profile::Udp {
        cx.sender().control_with(rpc, Body::RpcUnknown, Flags::REFUSED, refusal as u32);
    }
    cx.observation.metrics.admission.refused += 1;
    end_server(cx, rpc, Ending::Discarded);
}

/// A server RPC ends.
#[inline(always)]
pub(crate) fn end_server(cx: &mut Context, rpc: RpcKey, ending: Ending) {
    if remove(cx, rpc, ending != Ending::GivenUp).is_none() {
        return;
    }
    let progress = &mut cx.observation.metrics.progress;
    match ending {
        Ending::Acknowledged => progress.server_responses_done += 1,
        Ending::Discarded | Ending::GivenUp => progress.server_rpcs_discarded += 1,
    }
}

/// Removes a call, and returns its cookie.
#[inline(always)]
pub(crate) fn remove_client(cx: &mut Context, rpc: RpcKey) -> Option<u64> {
    let Side::Client(client) = remove(cx, rpc, true)? else { return None };
    if let Some(deadline) = client.deadline {
        cx.timers.deadlines.remove(deadline, rpc);
    }
    cx.inbound.budget.room_again(&mut cx.observation.events);
    Some(client.cookie)
}

/// Takes an RPC out of every table, returns what it had reserved, and notes that its id is finished if it `is_finished`.
#[inline(always)]
fn remove(cx: &mut Context, rpc: RpcKey, is_finished: bool) -> Option<Side> {
    let (entry, peer) = cx.tables.end(cx.now, rpc)?;
    let side = entry.side;
    match &side {
        Side::Client(_) if cx.outbound.identity.profile == Profile::Udp => peer.calls.end(entry.id),
        Side::Server(server) if is_finished => {
            peer.serving.finish(server.session, entry.id, cx.now);
        }
        _ => {}
    }
    if let Some(message) = &entry.outgoing {
        peer.unscheduled.release(message.unread());
        let (bytes, events) = (u64::from(message.length()), &mut cx.observation.events);
        cx.inbound.budget.release_send(peer, entry.role(), bytes, events);
        entry.outgoing = None;
    }
    cx.timers.silence.forget(entry);
    cx.outbound.messages.remove(rpc, entry);
    // Only a message that is arriving has anything to be granted, or reserved.
    if let Some(message) = entry.incoming.take() {
        cx.inbound.granter.forget(rpc, entry);
        let (peer, peers) = (entry.peer, &mut cx.tables.peers);
        cx.inbound.budget.receive.end(peers, peer, message.reservation());
    }
    Some(side)
}
