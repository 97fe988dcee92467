//! DATA of a response.

use super::assemble::{add_data, in_one_packet};
use super::lookup::{Proof, Source, note_known, rpc_of};
use super::on_need_ack::answer_with_acks;
use crate::budget::Beginning;
use crate::drop_reason::DropReason;
use crate::error::FailureKind;
use crate::lifecycle::{Context, complete_client, fail_and_disown};
use crate::peer::PeerId;
use crate::rpc::{RpcKey, Step};
use apus_wire::{Data, Header, Profile, Role};

#[inline(never)]
pub(super) fn on_response(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
    data: &Data,
    payload: &[u8],
) -> Result<(), DropReason> {
    let (peer, rpc) = match rpc_of(&cx.tables, from, header, Proof::Session) {
        Ok(found) => found,
        Err(reason) => {
            let kernel = cx.outbound.identity.profile == Profile::Kernel;
            if kernel && data.incoming < data.message_length {
                // RPC-5: the call is over, and its server waits for grants: it never gives up by itself.
                answer_with_acks(&mut cx.sender(), from, header);
            }
            return Err(reason);
        }
    };
    note_known(&mut cx.tables.peers[peer], header);
    if cx.tables.rpcs[rpc].incoming.is_none() {
        let length = u64::from(data.message_length);
        if length > cx.config.max_message() {
            begin_response(cx, peer, rpc, data.retransmit);
            let length = data.message_length;
            fail_and_disown(cx, rpc, FailureKind::ResponseTooLarge { length });
            return Err(DropReason::TooLarge);
        }
        let (budget, peers) = (&mut cx.inbound.budget.receive, &mut cx.tables.peers);
        let Ok(room) =
            budget.begin(cx.now, &cx.config, peers, peer, Beginning::of(data, payload.len()))
        else {
            // The server is alive; it is asked again when there may be room.
            cx.tables.hear(cx.now, peer, rpc);
            cx.tables.rpcs[rpc].step(Step::NoRoom);
            return Err(DropReason::NoBuffers);
        };
        begin_response(cx, peer, rpc, data.retransmit);
        if let Some(response) = in_one_packet(&mut cx.inbound, data, payload) {
            complete_client(cx, rpc, response);
            return Ok(());
        }
        cx.tables.rpcs[rpc].incoming = Some(cx.inbound.message_in(cx.now, data, room));
    }
    add_data(cx, rpc, data, payload)
}

/// The server has the whole request: its bytes are not needed any more.
///
/// If it was asked and the response comes first, the RESEND still waits there: the server is behind, and the response
/// time says by how much (TIME-11). `again` says that the response was sent again, so that the RESEND had an effect.
#[inline(always)]
fn begin_response(cx: &mut Context, peer: PeerId, rpc: RpcKey, again: bool) {
    let entry = &mut cx.tables.rpcs[rpc];
    let in_flight = entry.unanswered().map(|_| cx.timers.in_flight(&cx.config, cx.now));
    cx.outbound.messages.remove(rpc, entry);
    entry.step(Step::ResponseBegins);
    let Some(request) = &entry.outgoing else { return };
    let peer = &mut cx.tables.peers[peer];
    if !request.resent {
        let elapsed = cx.now.since(request.last_sent);
        let unanswered = cx.now.since(entry.asked);
        let is_behind =
            !again && in_flight.is_some_and(|in_flight| !in_flight.covers(&peer.rtt, unanswered));
        if is_behind {
            peer.rtt.sample(cx.now, elapsed);
        } else {
            peer.rtt.sample_response(cx.now, elapsed);
        }
    }
    peer.unscheduled.release(request.unread());
    let bytes = u64::from(request.length());
    let events = &mut cx.observation.events;
    cx.inbound.budget.release_send(peer, Role::Client, bytes, events);
    entry.outgoing = None;
}
