//! DATA of a response.

use super::assemble::{add_data, in_one_packet};
use super::lookup::{DataPacket, Proof, Source, note_known, rpc_of};
use super::on_need_ack::answer_with_acks;
use crate::budget::Beginning;
use crate::drop_reason::DropReason;
use crate::error::FailureKind;
use crate::inbound::Inbound;
use crate::lifecycle::{complete_client, fail_and_disown};
use crate::peer::PeerId;
use crate::protocol::Protocol;
use crate::rpc::{RpcKey, RpcStep};
use crate::tx::Output;
use apus_wire::{Header, Profile, Role};

// Its state on the stack would be reserved for every kind of packet.
#[inline(never)]
pub(super) fn on_response(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    packet: &DataPacket<'_>,
) -> Result<(), DropReason> {
    let DataPacket { data, payload, .. } = *packet;
    let (peer, rpc) = match rpc_of(&protocol.tables, from, header, Proof::Session) {
        Ok(found) => found,
        Err(reason) => {
            let kernel = output.outbound.identity.profile == Profile::Kernel;
            if kernel && data.incoming < data.message_length {
                // RPC-5: the call is over, and its server waits for grants: it never gives up
                // without an answer.
                answer_with_acks(protocol, output, from, header);
            }
            return Err(reason);
        }
    };
    note_known(&mut protocol.tables.peers[peer], header, protocol.now);
    if protocol.tables.rpcs[rpc].incoming.is_none() {
        let length = u64::from(data.message_length);
        if length > protocol.config.max_message() {
            begin_response(protocol, inbound, output, peer, rpc, data.retransmit);
            let (length, limit) = (data.message_length, protocol.config.max_message());
            let too_large = FailureKind::ResponseTooLarge { length, limit };
            fail_and_disown(protocol, inbound, output, rpc, too_large);
            return Err(DropReason::TooLarge);
        }
        let (budget, peers) = (&mut inbound.budget.receive, &mut protocol.tables.peers);
        let config = &protocol.config;
        let beginning = Beginning::of(config, data, payload.len());
        let Ok(room) = budget.begin(protocol.now, config, peers, peer, beginning) else {
            // The server is alive; it is asked again when there may be room.
            protocol.tables.hear(protocol.now, peer, rpc);
            protocol.tables.rpcs[rpc].step(RpcStep::NoRoom);
            return Err(DropReason::NoBuffers);
        };
        begin_response(protocol, inbound, output, peer, rpc, data.retransmit);
        if let Some(response) = in_one_packet(inbound, data, payload) {
            complete_client(protocol, inbound, output, rpc, response);
            return Ok(());
        }
        let message = inbound.message_in(protocol.now, data, beginning.announced, room);
        protocol.tables.rpcs[rpc].incoming = Some(message);
    }
    add_data(protocol, inbound, output, rpc, packet)
}

/// Releases the request: the server has all of it.
///
/// If the response overtakes the answer to a RESEND, the RESEND still waits at the server: the
/// server is behind, and the response time shows by how much (TIME-11). `again` states that the
/// response was sent again, so that the RESEND had an effect.
#[inline(always)]
fn begin_response(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    peer: PeerId,
    rpc: RpcKey,
    again: bool,
) {
    let entry = &mut protocol.tables.rpcs[rpc];
    let in_flight =
        entry.unanswered().map(|_| protocol.timers.in_flight(&protocol.config, protocol.now));
    output.outbound.messages.remove(rpc, entry);
    entry.step(RpcStep::ResponseBegins);
    let Some(request) = &entry.outgoing else { return };
    let peer = &mut protocol.tables.peers[peer];
    peer.size.note_arrived(request.longest_packet());
    if !request.resent {
        let elapsed = protocol.now.since(request.last_sent);
        let unanswered = protocol.now.since(entry.asked);
        let is_behind =
            !again && in_flight.is_some_and(|in_flight| !in_flight.covers(&peer.rtt, unanswered));
        if is_behind {
            peer.rtt.sample(protocol.now, elapsed);
        } else {
            peer.rtt.sample_response(protocol.now, elapsed);
        }
    }
    peer.unscheduled.release(request.unread());
    let bytes = u64::from(request.length());
    let events = &mut output.observation.events;
    inbound.budget.release_send(peer, Role::Client, bytes, events);
    entry.outgoing = None;
}
