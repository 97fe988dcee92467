//! Admission: how a request begins.
//!
//! A DATA packet of an unknown request is refused with a reason, dropped, answered by a session challenge, or
//! admitted. Checks run from the cheapest to the most expensive; no state is created for an unknown client (requirement `BAD-4`).

use super::assemble::{add_data, deliver_request, in_one_packet};
use super::challenge::{Shown, enter, shown};
use super::host_life::note_host_life;
use super::lookup::{Source, note_variant, was_finished};
use super::unproven::count_answer;
use crate::budget::{Beginning, Lack};
use crate::drop_reason::DropReason;
use crate::lifecycle::Context;
use crate::message::{MessageIn, Reservation};
use crate::peer::PeerId;
use crate::rpc::{NewRpc, RpcKey, Server, Side};
use apus_wire::{Body, Data, Features, Flags, Header, Profile, Refusal, Role, UdpFields};

/// Decides about a packet of an unknown request, and uses it if the request is admitted.
pub(super) fn admit(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
    data: &Data,
    payload: &[u8],
) -> Result<(), DropReason> {
    let (peer, session) = match header.udp() {
        Some(fields) => match pass_challenge(cx, from, header, fields, data)? {
            Some(peer) => (peer, fields.incarnation),
            None => return Ok(()),
        },
        None => pass_as_host(cx, from, header, data, payload)?,
    };
    let from = Source { peer: Some(peer), ..from };
    refuse_unwanted(cx, from, header, data)?;
    admit_confirmed(cx, peer, header, data, payload, session)
}

/// The client of a request that shows its session, and has not finished it. `None` if it was answered by a session challenge.
fn pass_challenge(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
    fields: &UdpFields,
    data: &Data,
) -> Result<Option<PeerId>, DropReason> {
    let id = header.sender_id.client_id();
    if let Some(peer) = from.peer
        && let Some(is_finished) = cx.tables.peers[peer].serving.check_current(id, fields)
    {
        return if is_finished { Err(DropReason::Finished) } else { Ok(Some(peer)) };
    }
    let shown = shown(cx, from, id, fields, data.retransmit)?;
    if let Shown::Nothing { offer } = shown {
        if !fields.features.contains(Features::LONG_SESSIONS) {
            // WIRE-33: a session that such a client understands could be guessed.
            let too_old = Refusal::ClientTooOld;
            return Err(refuse(cx, from, header, too_old, DropReason::ClientTooOld));
        }
        if !fields.flags.contains(Flags::SESSION) {
            refuse_unwanted(cx, from, header, data)?;
            refuse_without_room(cx, from, header)?;
        }
        // A client that shows another session must learn first that it is not good any more: what became of its call in
        // that session is not known here.
        count_answer(cx, from, header)?;
        cx.observation.metrics.admission.challenges_sent += 1;
        cx.sender().challenge(*from.address, header, fields, offer);
        return Ok(None);
    }
    // Without room for the peer it is not refused: nothing would remember that, and a copy of the packet would be executed
    // later. Its client sends it again.
    let peer = enter(cx, from, fields, shown)?;
    let is_finished = cx.tables.peers[peer].serving.check_current(id, fields);
    if is_finished == Some(true) { Err(DropReason::Finished) } else { Ok(Some(peer)) }
}

/// The host of a request that is not known to be finished, and the number of its life (kernel profile, AMO-7).
fn pass_as_host(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
    data: &Data,
    payload: &[u8],
) -> Result<(PeerId, u64), DropReason> {
    let peer = match from.peer {
        Some(peer) => peer,
        None => {
            let peer = cx.peer_for_client(*from.address)?;
            note_variant(&mut cx.tables.peers, peer, from.variant);
            // The host may have called before it was forgotten.
            note_host_life(cx, peer, header, data, payload);
            peer
        }
    };
    let id = header.sender_id.client_id();
    match cx.tables.peers[peer].serving.admit_kernel(id) {
        Some(life) => Ok((peer, life)),
        None => {
            // As long as copies come, it is remembered.
            let arrived = cx.timers.in_flight(&cx.config, cx.now).arrived(cx.now);
            cx.tables.peers[peer].serving.touch(id, arrived, cx.now);
            Err(DropReason::Finished)
        }
    }
}

/// Refuses a request of an unknown client whose host has as many peers as it may have, all of them busy (CAP-18). A copy of it is
/// answered by a session challenge later, and its client does not know the call any more.
fn refuse_without_room(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    if from.peer.is_some() || cx.tables.peers.may_have_room(*from.address) {
        return Ok(());
    }
    Err(refuse(cx, from, header, Refusal::Overloaded, DropReason::HostPeers))
}

/// Refuses a request that this endpoint does not execute for any client.
fn refuse_unwanted(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
    data: &Data,
) -> Result<(), DropReason> {
    if cx.inbound.shut_down || !cx.inbound.serving {
        let shut_down = cx.inbound.shut_down;
        let refusal = if shut_down { Refusal::ShuttingDown } else { Refusal::NotServing };
        return Err(refuse(cx, from, header, refusal, DropReason::NotServing));
    }
    if u64::from(data.message_length) > cx.config.max_message() {
        return Err(refuse(cx, from, header, Refusal::TooLarge, DropReason::TooLarge));
    }
    Ok(())
}

/// Creates the RPC of a request that may be executed, and uses its first packet.
fn admit_confirmed(
    cx: &mut Context,
    peer: PeerId,
    header: &Header,
    data: &Data,
    payload: &[u8],
    session: u64,
) -> Result<(), DropReason> {
    let room = match room_for(cx, peer, data, payload) {
        Ok(room) => room,
        Err(DropReason::NoBuffers) => return Err(DropReason::NoBuffers),
        Err(why) => {
            let address = cx.tables.peers[peer].address;
            let from = Source { address: &address, peer: Some(peer), variant: None };
            return Err(refuse(cx, from, header, Refusal::Overloaded, why));
        }
    };
    cx.inbound.request_room -= 1;
    let selected = cx.observation.notes.are_wanted_of(header.sender_id.client_id());
    if let Some(request) = in_one_packet(&mut cx.inbound, data, payload) {
        let entry = &mut cx.tables.peers[peer];
        entry.resends.answered();
        let from = entry.address;
        let server = Server::in_service(session, data.response_limit.bytes());
        let rpc = create_server(cx, peer, header, server, selected, None);
        deliver_request(cx, rpc, from, selected, request);
        return Ok(());
    }
    let server = Server::incoming(session, data.response_limit.bytes());
    let message = cx.inbound.message_in(cx.now, data, room);
    let rpc = create_server(cx, peer, header, server, selected, Some(message));
    add_data(cx, rpc, data, payload)
}

/// The room for a request of `peer`, or what there is too much of. Without buffers the packet is dropped and the
/// client waits, because that passes; the other limits are refusals.
fn room_for(
    cx: &mut Context,
    peer: PeerId,
    data: &Data,
    payload: &[u8],
) -> Result<Reservation, DropReason> {
    if cx.tables.rpcs.count(Role::Server) as u64 >= cx.config.max_server_rpcs() {
        return Err(DropReason::TooManyRpcs);
    }
    let of_host = u64::from(cx.tables.peers.host_of(peer).server_rpcs);
    if of_host >= cx.config.max_server_rpcs_per_host() {
        return Err(DropReason::HostRpcs);
    }
    if cx.inbound.request_room == 0 {
        return Err(DropReason::Overloaded);
    }
    let (budget, peers) = (&mut cx.inbound.budget.receive, &mut cx.tables.peers);
    budget.begin(cx.now, &cx.config, peers, peer, Beginning::of(data, payload.len())).map_err(
        |lack| match lack {
            Lack::Memory | Lack::Peer => DropReason::NoBuffers,
            Lack::Host => DropReason::HostBytes,
        },
    )
}

/// Creates the RPC of a request. If nothing more is to arrive, its client's silence is not watched.
#[inline(always)]
fn create_server(
    cx: &mut Context,
    peer: PeerId,
    header: &Header,
    server: Server,
    selected: bool,
    incoming: Option<Box<MessageIn>>,
) -> RpcKey {
    let (id, side) = (header.sender_id.client_id(), Side::Server(server));
    let new = NewRpc { peer, id, peer_port: header.sport, side, selected };
    let rpc = cx.tables.create(cx.now, new);
    if incoming.is_some() {
        cx.tables.rpcs[rpc].incoming = incoming;
        cx.timers.silence.watch(&mut cx.tables.rpcs, rpc, cx.now);
    }
    cx.observation.metrics.progress.server_requests_started += 1;
    rpc
}

/// Tells the client of an unknown request that it will not be served (RPC-13). That is final: a
/// duplicate must not be executed later. (Without a session its client would be asked first.)
///
/// AMO-5: a late duplicate of what was executed here is not called "not executed", but dropped. Returns
/// why the packet is not used.
fn refuse(
    cx: &mut Context,
    from: Source<'_>,
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
    if let Err(unanswered) = count_answer(cx, from, header) {
        return unanswered;
    }
    cx.observation.metrics.admission.refused += 1;
    cx.observation.metrics.admission.refused_of_host += u64::from(reason.is_of_host());
    if let (Some(peer), Some(fields)) = (from.peer, header.udp())
        && fields.flags.contains(Flags::SESSION)
    {
        let id = header.sender_id.client_id();
        cx.tables.peers[peer].serving.finish(fields.incarnation, id, cx.now);
    }
    let body = Body::RpcUnknown;
    cx.sender().answer(*from.address, header, body, Flags::REFUSED, refusal as u32);
    reason
}
