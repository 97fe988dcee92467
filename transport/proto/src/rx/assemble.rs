//! Assembly: the bytes of DATA packets become a message, and the message an event.
//!
//! A message that fits into one packet takes a short cut: no [`MessageIn`](crate::message::MessageIn) is made for it.

use crate::drop_reason::DropReason;
use crate::event::Event;
use crate::inbound::Inbound;
use crate::lifecycle::{Context, complete_client};
use crate::message::{CompleteMessage, Inserted};
use crate::peer::Address;
use crate::probe::ProbeKind;
use crate::rpc::{RpcKey, ServerState, Side, State, Step};
use apus_wire::Data;

/// The message that this packet is the whole of, if it is; there is room for it.
#[inline(always)]
pub(super) fn in_one_packet(
    inbound: &mut Inbound,
    data: &Data,
    payload: &[u8],
) -> Option<CompleteMessage> {
    let message = CompleteMessage::in_one_packet(data, payload, inbound.keep)?;
    inbound.budget.receive.hold(message.payload.len());
    Some(message)
}

/// Puts the bytes of a packet into the incoming message of its RPC.
pub(super) fn add_data(
    cx: &mut Context,
    rpc: RpcKey,
    data: &Data,
    payload: &[u8],
) -> Result<(), DropReason> {
    let entry = &mut cx.tables.rpcs[rpc];
    let peer = entry.peer;
    // Without a message, it is a request that the application has already.
    let Some(message) = &mut entry.incoming else { return Err(DropReason::Duplicate) };
    if message.length() != data.message_length {
        return Err(DropReason::LengthMismatch);
    }
    let positions = message.received().saturating_add(payload.len() as u32).min(message.extent());
    if positions > message.reservation().positions {
        let (budget, peers) = (&mut cx.inbound.budget.receive, &mut cx.tables.peers);
        if budget.extend(cx.now, &cx.config, peers, peer, message, positions).is_err() {
            // Its sender is alive, and is asked again.
            cx.tables.hear(cx.now, peer, rpc);
            return Err(DropReason::NoBuffers);
        }
    }
    let inserted = message.insert(data.offset, payload);
    message.note_progress(cx.now);
    cx.tables.hear(cx.now, peer, rpc);
    let recovery = &mut cx.observation.metrics.recovery;
    match inserted {
        Inserted::New { bytes, gap } => {
            recovery.gaps_created += u64::from(gap);
            recovery.resent_packets_used += u64::from(data.retransmit);
            if gap && cx.observation.notes.wanted {
                note_gap(cx, rpc, data.offset);
            }
            cx.inbound.granter.count_mark(&cx.tables.rpcs, rpc, data.offset, bytes);
            cx.inbound.granter.data_arrived(&mut cx.tables.rpcs, rpc, bytes, data.waiting);
            finish_if_complete(cx, rpc);
            Ok(())
        }
        Inserted::Duplicate => Err(DropReason::Duplicate),
        Inserted::TooManyGaps => Err(DropReason::TooManyGaps),
    }
}

/// Notes the gap that ends at `offset`, if there is one: the packets before it may only have been reordered.
#[cold]
fn note_gap(cx: &mut Context, rpc: RpcKey, offset: u32) {
    let Some(message) = &cx.tables.rpcs[rpc].incoming else { return };
    if let Some(gap) = message.gaps(offset).last().filter(|gap| gap.end == offset) {
        let gap = ProbeKind::Gap { offset: gap.start, length: gap.end - gap.start };
        cx.observation.note(&cx.tables, rpc, gap);
    }
}

/// Hands a message over if it is complete.
fn finish_if_complete(cx: &mut Context, rpc: RpcKey) {
    let Some(entry) = cx.tables.rpcs.get_mut(rpc) else { return };
    let Some(message) = entry.incoming.take_if(|message| message.is_complete()) else { return };
    cx.inbound.granter.forget(rpc, entry);
    let is_client = matches!(entry.side, Side::Client(_));
    let (memory, reservation) = (message.memory(), message.reservation());
    let message = CompleteMessage::in_pieces(*message);
    cx.inbound.budget.receive.complete(&mut cx.tables.peers, entry.peer, reservation, &message);
    cx.inbound.buffers.keep(&message.payload, memory);
    if is_client {
        complete_client(cx, rpc, message);
    } else {
        complete_request(cx, rpc, message);
    }
}

/// A request that arrived in several packets is complete.
fn complete_request(cx: &mut Context, rpc: RpcKey, request: CompleteMessage) {
    cx.timers.silence.forget(&mut cx.tables.rpcs[rpc]);
    let entry = &mut cx.tables.rpcs[rpc];
    entry.step(Step::RequestComplete);
    let (from, selected) = (cx.tables.peers[entry.peer].address, entry.selected);
    deliver_request(cx, rpc, from, selected, request);
}

/// Gives the request to the application (RPC-4). From now on until its reply, the client may be silent
/// (HM `homa_timer.c` `homa_timer_check_rpc`). `selected` says whether that is noted.
#[inline(always)]
pub(super) fn deliver_request(
    cx: &mut Context,
    rpc: RpcKey,
    from: Address,
    selected: bool,
    request: CompleteMessage,
) {
    let in_service = State::Server(ServerState::InService);
    debug_assert_eq!(cx.tables.rpcs[rpc].state(), in_service, "STATE-1: it is complete");
    if selected {
        let complete = ProbeKind::Complete { rpc, length: request.length };
        cx.observation.note(&cx.tables, rpc, complete);
    }
    let metrics = &mut cx.observation.metrics;
    cx.inbound.record_message(cx.now, &request, &mut metrics.scheduling);
    metrics.progress.server_requests_done += 1;
    metrics.progress.server_request_bytes_done += u64::from(request.length);
    let payload = request.payload;
    cx.observation.events.push_back(Event::Request { rpc, from, payload });
}
