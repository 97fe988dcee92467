//! Admission: the first packet of a request.
//!
//! A DATA packet of an unknown request is refused with a reason, dropped, answered by a session
//! challenge, or admitted. Checks run from the cheapest to the most expensive; no state is created
//! for an unknown client (requirement `BAD-4`).

use super::assemble::{add_data, deliver_request, in_one_packet};
use super::challenge::{Shown, enter, shown};
use super::host_life::note_host_life;
use super::lookup::{DataPacket, Source, note_variant, was_finished};
use super::unproven::count_answer;
use crate::budget::{Beginning, Lack};
use crate::drop_reason::DropReason;
use crate::inbound::Inbound;
use crate::lifecycle::{end_stalled_response, peer_for_client};
use crate::message::{MessageIn, Reservation};
use crate::peer::PeerId;
use crate::protocol::Protocol;
use crate::rpc::{NewRpc, RpcKey, Server, Side};
use crate::tx::Output;
use apus_wire::{Body, Data, Features, Flags, Header, Profile, Refusal, Role, UdpFields};

/// Decides about a packet of an unknown request, and uses it if the request is admitted.
pub(super) fn admit(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    packet: &DataPacket<'_>,
) -> Result<(), DropReason> {
    let data = packet.data;
    let (peer, session) = match header.udp() {
        Some(fields) => {
            match pass_challenge(protocol, inbound, output, from, header, fields, data)? {
                Some(peer) => (peer, fields.incarnation),
                None => return Ok(()),
            }
        }
        None => pass_as_host(protocol, output, from, header, packet)?,
    };
    let from = &Source { peer: Some(peer), ..*from };
    refuse_unwanted(protocol, inbound, output, from, header, data)?;
    admit_confirmed(protocol, inbound, output, peer, header, packet, session)
}

/// The client of a request that shows its session, and has not finished it. `None` if it was
/// answered by a session challenge.
fn pass_challenge(
    protocol: &mut Protocol,
    inbound: &Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    fields: &UdpFields,
    data: &Data,
) -> Result<Option<PeerId>, DropReason> {
    let id = header.sender_id.client_id();
    if let Some(peer) = from.peer
        && let Some(is_finished) = protocol.tables.peers[peer].serving.check_current(id, fields)
    {
        return if is_finished { Err(DropReason::Finished) } else { Ok(Some(peer)) };
    }
    let shown = shown(protocol, from, id, fields, data.retransmit)?;
    if let Shown::Nothing { offer } = shown {
        if !fields.features.contains(Features::LONG_SESSIONS) {
            // WIRE-33: a session that such a client understands could be guessed.
            let too_old = Refusal::ClientTooOld;
            return Err(refuse(protocol, output, from, header, too_old, DropReason::ClientTooOld));
        }
        if !fields.flags.contains(Flags::SESSION) {
            refuse_unwanted(protocol, inbound, output, from, header, data)?;
            refuse_without_room(protocol, output, from, header)?;
        }
        // A client that shows another session must be notified first that it is no longer valid:
        // the fate of its call in that session is not known here.
        count_answer(protocol, from, header)?;
        output.observation.metrics.admission.challenges_sent += 1;
        output.challenge(protocol.now, *from.address, header, fields, offer);
        return Ok(None);
    }
    // Without room for the peer it is not refused: the refusal would not be remembered, and a copy
    // of the packet would be executed later. Its client sends it again.
    let peer = enter(protocol, output, from, fields, shown)?;
    let is_finished = protocol.tables.peers[peer].serving.check_current(id, fields);
    if is_finished == Some(true) { Err(DropReason::Finished) } else { Ok(Some(peer)) }
}

/// The host of a request that is not known to be finished, and the number of its life (kernel
/// profile, AMO-7).
fn pass_as_host(
    protocol: &mut Protocol,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    packet: &DataPacket<'_>,
) -> Result<(PeerId, u64), DropReason> {
    let peer = match from.peer {
        Some(peer) => peer,
        None => {
            let peer = peer_for_client(protocol, output, from.address)?;
            let body = Body::Data(*packet.data, packet.payload);
            note_variant(&mut protocol.tables.peers[peer], &body);
            // The host may have called before it was forgotten.
            note_host_life(protocol, output, peer, header, packet);
            peer
        }
    };
    let id = header.sender_id.client_id();
    match protocol.tables.peers[peer].serving.admit_kernel(id) {
        Some(life) => Ok((peer, life)),
        None => {
            // It is remembered as long as copies arrive.
            let arrived =
                protocol.timers.in_flight(&protocol.config, protocol.now).arrived(protocol.now);
            protocol.tables.peers[peer].serving.touch(id, arrived, protocol.now);
            Err(DropReason::Finished)
        }
    }
}

/// Refuses a request of an unknown client whose host is at its limit of peers, all of them busy
/// (CAP-18). A later copy of it is answered by a session challenge, and by then its client has
/// dropped the call.
fn refuse_without_room(
    protocol: &mut Protocol,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    if from.peer.is_some() || protocol.tables.peers.may_have_room(*from.address) {
        return Ok(());
    }
    Err(refuse(protocol, output, from, header, Refusal::Overloaded, DropReason::HostPeers))
}

/// Refuses a request that this endpoint does not execute for any client.
fn refuse_unwanted(
    protocol: &mut Protocol,
    inbound: &Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    data: &Data,
) -> Result<(), DropReason> {
    if inbound.shut_down || !inbound.serving {
        let shut_down = inbound.shut_down;
        let refusal = if shut_down { Refusal::ShuttingDown } else { Refusal::NotServing };
        return Err(refuse(protocol, output, from, header, refusal, DropReason::NotServing));
    }
    if u64::from(data.message_length) > protocol.config.max_message() {
        return Err(refuse(
            protocol,
            output,
            from,
            header,
            Refusal::TooLarge,
            DropReason::TooLarge,
        ));
    }
    Ok(())
}

/// Creates the RPC of a request that may be executed, and uses its first packet.
fn admit_confirmed(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    peer: PeerId,
    header: &Header,
    packet: &DataPacket<'_>,
    session: u64,
) -> Result<(), DropReason> {
    let DataPacket { data, payload, .. } = *packet;
    let beginning = Beginning::of(&protocol.config, data, payload.len());
    let mut made_room = false;
    let room = loop {
        match room_for(protocol, inbound, output, peer, beginning) {
            Ok(room) => break room,
            Err(DropReason::NoBuffers) => return Err(DropReason::NoBuffers),
            // A response of its host that makes no progress makes room, once.
            Err(DropReason::HostResponses) if !made_room => {
                made_room = true;
                if end_stalled_response(protocol, inbound, output, peer) {
                    continue;
                }
                return Err(refuse_for(protocol, output, peer, header, DropReason::HostResponses));
            }
            Err(why) => return Err(refuse_for(protocol, output, peer, header, why)),
        }
    };
    inbound.request_room = inbound.request_room.saturating_sub(1);
    let selected = output.observation.notes.are_wanted_of(header.sender_id.client_id());
    if let Some(request) = in_one_packet(inbound, data, payload) {
        let entry = &mut protocol.tables.peers[peer];
        entry.resends.answered();
        let from = entry.address;
        let server = Server::in_service(session, data.response_limit.bytes());
        let rpc = create_server(protocol, output, peer, header, server, selected, None);
        deliver_request(protocol, inbound, output, rpc, from, selected, request);
        return Ok(());
    }
    let server = Server::incoming(session, data.response_limit.bytes());
    let message = inbound.message_in(protocol.now, data, beginning.announced, room);
    let rpc = create_server(protocol, output, peer, header, server, selected, Some(message));
    add_data(protocol, inbound, output, rpc, packet)
}

/// Refuses a request of `peer` for lack of room.
#[cold]
fn refuse_for(
    protocol: &mut Protocol,
    output: &mut Output,
    peer: PeerId,
    header: &Header,
    why: DropReason,
) -> DropReason {
    let address = protocol.tables.peers[peer].address;
    let from = &Source { address: &address, peer: Some(peer) };
    refuse(protocol, output, from, header, Refusal::Overloaded, why)
}

/// Reserves the room for a request of `peer` that begins so, or returns the limit that it exceeds.
/// Without buffers the packet is dropped and the client waits, because the shortage is temporary;
/// the other limits are refusals.
#[inline]
fn room_for(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    peer: PeerId,
    beginning: Beginning,
) -> Result<Reservation, DropReason> {
    if protocol.tables.rpcs.count(Role::Server) as u64 >= protocol.config.max_server_rpcs() {
        return Err(DropReason::TooManyRpcs);
    }
    let all = protocol.tables.rpcs.count(Role::Server);
    let host = protocol.tables.peers.host_of(peer);
    if u64::from(host.server_rpcs) >= protocol.config.max_server_rpcs_per_host() {
        return Err(DropReason::HostRpcs);
    }
    // A host without others waits for itself alone (CAP-21).
    if host.server_rpcs as usize != all {
        // Its response could not be sent.
        if inbound.budget.send.is_host_full(host.responses.bytes) {
            return Err(DropReason::HostResponses);
        }
        // A reply that waits for room of its host now keeps others waiting.
        if host.server_rpcs == 0 {
            inbound.budget.room_again(&mut output.observation.events);
        }
    }
    if inbound.request_room == 0 && !inbound.waiting.accepts(&protocol.tables.peers[peer].address) {
        return Err(DropReason::Overloaded);
    }
    let (budget, peers) = (&mut inbound.budget.receive, &mut protocol.tables.peers);
    budget.begin(protocol.now, &protocol.config, peers, peer, beginning).map_err(
        |lack| match lack {
            Lack::Memory | Lack::Peer => DropReason::NoBuffers,
            Lack::Host => DropReason::HostBytes,
        },
    )
}

/// Creates the RPC of a request. If the request is complete, its client's silence is not watched.
#[inline(always)]
fn create_server(
    protocol: &mut Protocol,
    output: &mut Output,
    peer: PeerId,
    header: &Header,
    server: Server,
    selected: bool,
    incoming: Option<Box<MessageIn>>,
) -> RpcKey {
    let (id, side) = (header.sender_id.client_id(), Side::Server(server));
    let new = NewRpc { peer, id, peer_port: header.sport, side, selected };
    let rpc = protocol.tables.create(protocol.now, new);
    if incoming.is_some() {
        protocol.tables.rpcs[rpc].incoming = incoming;
        protocol.timers.silence.watch(&mut protocol.tables.rpcs, rpc, protocol.now);
    }
    output.observation.metrics.progress.server_requests_started += 1;
    rpc
}

/// Refuses an unknown request (RPC-13). That is final: a duplicate must not be executed later.
/// (Without a session its client would be asked first.)
///
/// AMO-5: a late duplicate of an executed request is not called "not executed", but dropped.
/// Returns why the packet is not used.
fn refuse(
    protocol: &mut Protocol,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    refusal: Refusal,
    reason: DropReason,
) -> DropReason {
    if was_finished(&protocol.tables.peers, from, header) {
        return DropReason::Finished;
    }
    if output.outbound.identity.profile == Profile::Kernel {
        // It has no word for a refusal. RPC_UNKNOWN would bring the request again at once, and
        // again.
        return reason;
    }
    if let Err(unanswered) = count_answer(protocol, from, header) {
        return unanswered;
    }
    output.observation.metrics.admission.refused += 1;
    output.observation.metrics.admission.refused_of_host += u64::from(reason.is_of_host());
    if let (Some(peer), Some(fields)) = (from.peer, header.udp())
        && fields.flags.contains(Flags::SESSION)
    {
        let id = header.sender_id.client_id();
        let serving = &mut protocol.tables.peers[peer].serving;
        if serving.finish(fields.incarnation, id, protocol.now) {
            protocol.tables.peers.count_ids(peer, protocol.now);
        }
    }
    let body = Body::RpcUnknown;
    output.answer(protocol, *from.address, header, body, Flags::REFUSED, refusal as u32);
    reason
}
