//! Assembly: the bytes of DATA packets become a message, and the message an event.
//!
//! A message that fits into one packet takes a short cut: no
//! [`MessageIn`](crate::message::MessageIn) is made for it.

use super::lookup::DataPacket;
use crate::drop_reason::DropReason;
use crate::event::Event;
use crate::inbound::Inbound;
use crate::lifecycle::complete_client;
use crate::message::{CompleteMessage, Inserted};
use crate::peer::Address;
use crate::probe::ProbeKind;
use crate::protocol::Protocol;
use crate::rpc::{RpcKey, RpcStep, ServerState, Side, SideState};
use crate::tx::Output;
use apus_wire::Data;

/// Returns the complete message of this packet, if the packet holds all of it; there is room for
/// it.
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
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    packet: &DataPacket<'_>,
) -> Result<(), DropReason> {
    let DataPacket { data, payload, .. } = *packet;
    let entry = &mut protocol.tables.rpcs[rpc];
    let peer = entry.peer;
    // Without a message, it is a request that the application has already.
    let Some(message) = &mut entry.incoming else { return Err(DropReason::Duplicate) };
    if message.length() != data.message_length {
        return Err(DropReason::LengthMismatch);
    }
    let positions = message.received().saturating_add(payload.len() as u32).min(message.extent());
    if positions > message.reservation().positions {
        let (budget, peers) = (&mut inbound.budget.receive, &mut protocol.tables.peers);
        if budget.extend(protocol.now, &protocol.config, peers, peer, message, positions).is_err() {
            // Its sender is alive, and will be asked again.
            protocol.tables.hear(protocol.now, peer, rpc);
            return Err(DropReason::NoBuffers);
        }
    }
    let inserted = message.insert(data.offset, payload);
    let progress = message.note_progress(protocol.now).then_some(protocol.now);
    protocol.tables.hear(protocol.now, peer, rpc);
    let recovery = &mut output.observation.metrics.recovery;
    match inserted {
        Inserted::New { bytes, gap } => {
            recovery.gaps_created += u64::from(gap);
            recovery.resent_packets_used += u64::from(data.retransmit);
            if gap && output.observation.notes.wanted {
                note_gap(protocol, output, rpc, data.offset);
            }
            inbound.granter.count_mark(
                &protocol.tables.rpcs,
                rpc,
                data.offset,
                bytes,
                packet.is_marked,
            );
            inbound.granter.data_arrived(&mut protocol.tables, rpc, bytes, data.waiting, progress);
            finish_if_complete(protocol, inbound, output, rpc);
            Ok(())
        }
        Inserted::Duplicate => Err(DropReason::Duplicate),
        Inserted::TooManyGaps => Err(DropReason::TooManyGaps),
    }
}

/// Records the gap that ends at `offset`, if there is one: the packets before it may only have been
/// reordered.
#[cold]
fn note_gap(protocol: &Protocol, output: &mut Output, rpc: RpcKey, offset: u32) {
    let Some(message) = &protocol.tables.rpcs[rpc].incoming else { return };
    if let Some(gap) = message.gap_before(offset) {
        let gap = ProbeKind::Gap { offset: gap.start, length: gap.end - gap.start };
        output.observation.note(&protocol.tables, rpc, gap);
    }
}

/// Hands a message over if it is complete.
fn finish_if_complete(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
) {
    let Some(entry) = protocol.tables.rpcs.get_mut(rpc) else { return };
    let Some(message) = entry.incoming.take_if(|message| message.is_complete()) else { return };
    inbound.granter.forget(rpc, entry);
    let is_client = matches!(entry.side, Side::Client(_));
    let (memory, reservation) = (message.memory(), message.reservation());
    let message = CompleteMessage::in_pieces(*message);
    inbound.budget.receive.complete(&mut protocol.tables.peers, entry.peer, reservation, &message);
    inbound.buffers.keep(&message.payload, memory);
    if is_client {
        complete_client(protocol, inbound, output, rpc, message);
    } else {
        complete_request(protocol, inbound, output, rpc, message);
    }
}

/// A request that arrived in several packets is complete.
fn complete_request(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    request: CompleteMessage,
) {
    protocol.timers.silence.forget(&mut protocol.tables.rpcs[rpc]);
    let entry = &mut protocol.tables.rpcs[rpc];
    entry.step(RpcStep::RequestComplete);
    let (from, selected) = (protocol.tables.peers[entry.peer].address, entry.selected);
    deliver_request(protocol, inbound, output, rpc, from, selected, request);
}

/// Delivers the request to the application (RPC-4). From now on until its reply, the client may be
/// silent (HM `homa_timer.c` `homa_timer_check_rpc`). `selected` states whether that is noted.
#[inline(always)]
pub(super) fn deliver_request(
    protocol: &Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    rpc: RpcKey,
    from: Address,
    selected: bool,
    request: CompleteMessage,
) {
    let in_service = SideState::Server(ServerState::InService);
    debug_assert_eq!(protocol.tables.rpcs[rpc].state(), in_service, "STATE-1: it is complete");
    if selected {
        let complete = ProbeKind::Complete { rpc, length: request.length };
        output.observation.note(&protocol.tables, rpc, complete);
    }
    let metrics = &mut output.observation.metrics;
    inbound.record_message(protocol.now, &request, &mut metrics.scheduling);
    metrics.progress.server_requests_done += 1;
    metrics.progress.server_request_bytes_done += u64::from(request.length);
    let payload = request.payload;
    output.observation.events.push_back(Event::Request { rpc, from, payload });
}
