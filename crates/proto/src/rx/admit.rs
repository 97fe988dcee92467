//! Admission: how a request begins.
//!
//! A DATA packet of an unknown request is refused with a reason, dropped, kept until its client has confirmed it, or
//! admitted. Checks run from the cheapest to the most expensive; no state is created for an unknown client before its
//! request has passed all limits (requirement `BAD-4`).

use super::assemble::{add_data, deliver_request, in_one_packet};
use super::confirm::note_confirmation;
use super::lookup::{Source, note_variant, takes_empty, was_finished};
use crate::drop_reason::DropReason;
use crate::lifecycle::Context;
use crate::message::MessageIn;
use crate::peer::{Admission, PeerId};
use crate::rpc::{NewRpc, RpcKey, Server, Side};
use apus_wire::{Body, Data, Flags, Header, Profile, Refusal, Role};

/// Decides about a packet of an unknown request, and uses it if the request is admitted.
pub(super) fn admit(
    cx: &mut Context<'_>,
    from: Source,
    header: &Header,
    data: &Data,
    payload: &[u8],
) -> Result<(), DropReason> {
    let id = header.sender_id.client_id();
    if cx.inbound.shut_down || !cx.inbound.serving {
        if from.peer.is_some_and(|peer| cx.tables.peers[peer].serving.is_finished(id)) {
            // No refusal: it would say that the request was not executed. Unlike in `refuse`, the
            // packet need not show the session: a copy from before the first confirmation has none.
            return Err(DropReason::Finished);
        }
        let shut_down = cx.inbound.shut_down;
        let refusal = if shut_down { Refusal::ShuttingDown } else { Refusal::NotServing };
        return Err(refuse(cx, from, header, refusal, DropReason::NotServing));
    }
    if u64::from(data.message_length) > cx.config.max_message() {
        return Err(refuse(cx, from, header, Refusal::TooLarge, DropReason::TooLarge));
    }
    let peer = admitting_peer(cx, from)?;
    let young = 4 * cx.timers.resend_interval.least(cx.config.resend_interval_usecs());
    let sessions = &mut cx.inbound.sessions;
    let serving = &mut cx.tables.peers[peer].serving;
    match serving.admit(id, header.udp(), cx.now, young, || sessions.draw() as u32) {
        Admission::Fresh { session, confirmation } => {
            note_confirmation(cx, peer, confirmation);
            admit_confirmed(cx, peer, header, data, payload, session)
        }
        Admission::Confirm { session } => {
            admit_unconfirmed(cx, peer, header, data, payload, session)
        }
        Admission::Finished => Err(DropReason::Finished),
        Admission::Occupied => Err(DropReason::TooManyUnconfirmed),
    }
}

/// The peer that sends the request, made if there is room for an unknown client.
fn admitting_peer(cx: &mut Context<'_>, from: Source) -> Result<PeerId, DropReason> {
    if let Some(peer) = from.peer {
        return Ok(peer);
    }
    if cx.inbound.budget.unconfirmed_rpcs >= cx.config.max_unconfirmed_rpcs() {
        return Err(DropReason::TooManyUnconfirmed);
    }
    let peer = cx.peer_for(from.address).ok_or(DropReason::TooManyPeers)?;
    note_variant(&mut cx.tables.peers, peer, from.variant);
    Ok(peer)
}

/// Creates the RPC of a request that may be executed, and uses its first packet.
fn admit_confirmed(
    cx: &mut Context<'_>,
    peer: PeerId,
    header: &Header,
    data: &Data,
    payload: &[u8],
    session: u32,
) -> Result<(), DropReason> {
    let too_many = cx.tables.rpcs.count(Role::Server) as u64 >= cx.config.max_server_rpcs();
    if too_many || cx.inbound.request_room == 0 {
        let address = cx.tables.peers[peer].address;
        let from = Source { address, peer: Some(peer), variant: None };
        let why = if too_many { DropReason::TooManyRpcs } else { DropReason::Overloaded };
        return Err(refuse(cx, from, header, Refusal::Overloaded, why));
    }
    let length = u64::from(data.message_length);
    let entry = &mut cx.tables.peers[peer];
    if !cx.inbound.budget.reserve_receive(cx.config, entry, length) {
        return Err(DropReason::NoBuffers);
    }
    cx.inbound.request_room -= 1;
    if let Some(request) = in_one_packet(cx.inbound, entry, data, payload) {
        let server = Server::in_service(session);
        let rpc = create_server(cx, peer, header, server, None);
        deliver_request(cx, rpc, request);
        return Ok(());
    }
    let server = Server::incoming(session);
    let message = cx.inbound.message_in(data);
    let rpc = create_server(cx, peer, header, server, Some(message));
    add_data(cx, rpc, data, payload)
}

/// Creates the RPC of a request that must be confirmed, uses its first packet, and asks for the confirmation (BAD-5).
fn admit_unconfirmed(
    cx: &mut Context<'_>,
    peer: PeerId,
    header: &Header,
    data: &Data,
    payload: &[u8],
    session: u32,
) -> Result<(), DropReason> {
    let budget = &mut cx.inbound.budget;
    let fits = budget.fits_unconfirmed(payload.len(), cx.config.max_unconfirmed_bytes())
        && budget.reserve_unconfirmed(cx.config);
    if !fits {
        cx.tables.peers.forget_unknown(peer);
        return Err(DropReason::TooManyUnconfirmed);
    }
    cx.tables.peers[peer].held += 1;
    let server = Server::held(session);
    // An unknown client gets no memory but for the bytes that it sends.
    let message = MessageIn::new(data.message_length, data.incoming).keeping(cx.inbound.keep);
    let rpc = create_server(cx, peer, header, server, Some(Box::new(message)));
    cx.sender().ask_for_confirmation(rpc);
    add_data(cx, rpc, data, payload)
}

/// Creates the RPC of a request. If nothing more is to arrive, its client's silence is not watched.
fn create_server(
    cx: &mut Context<'_>,
    peer: PeerId,
    header: &Header,
    server: Server,
    incoming: Option<Box<MessageIn>>,
) -> RpcKey {
    let watch = incoming.is_some();
    let new = NewRpc {
        peer,
        id: header.sender_id.client_id(),
        peer_port: header.sport,
        side: Side::Server(server.with_client(takes_empty(header))),
        incoming,
        outgoing: None,
    };
    let rpc = cx.tables.create(cx.now, new);
    if watch {
        cx.timers.silence.watch(&mut cx.tables.rpcs, rpc, cx.now);
    }
    cx.observation.metrics.progress.server_requests_started += 1;
    rpc
}

/// Tells the client of an unknown request that it will not be served (RPC-13). That is final: a
/// duplicate must not be executed later. (Without a session it would have to be confirmed first.)
///
/// AMO-5: a late duplicate of what was executed here is not called "not executed", but dropped. Returns
/// why the packet is not used.
fn refuse(
    cx: &mut Context<'_>,
    from: Source,
    header: &Header,
    refusal: Refusal,
    reason: DropReason,
) -> DropReason {
    if was_finished(&cx.tables.peers, from, header) {
        return DropReason::Finished;
    }
    if cx.outbound.identity.profile == Profile::Kernel {
        // It has no word for a refusal. RPC_UNKNOWN would bring the request again at once, and again.
        return reason;
    }
    cx.observation.metrics.admission.refused += 1;
    if let (Some(peer), Some(fields)) = (from.peer, header.udp())
        && fields.flags.contains(Flags::SESSION)
    {
        let id = header.sender_id.client_id();
        cx.tables.peers[peer].serving.finish(fields.incarnation, id);
    }
    let body = Body::RpcUnknown;
    cx.sender().answer(from.address, header, body, Flags::REFUSED, refusal as u32);
    reason
}
