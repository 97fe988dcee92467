//! NEED_ACK: the server asks whether a call still needs its state, or offers a session for it.

use super::lookup::{Proof, Source, find_rpc, our_role, rpc_of, shows_session};
use super::unproven::count_answer;
use crate::drop_reason::DropReason;
use crate::error::FailureKind;
use crate::inbound::Inbound;
use crate::lifecycle::fail_client;
use crate::peer::{Birth, Offer, PeerId};
use crate::probe::ProbeKind;
use crate::protocol::Protocol;
use crate::rpc::{Binding, ClientState, Rpc, RpcKey, Side, SideState};
use crate::time::Instant;
use crate::tx::Output;
use apus_wire::{AckList, Body, Features, Flags, Header, Role, UdpFields};

/// The server asks whether the call still needs its state (HM `homa_timer.c`
/// `homa_timer_check_rpc`, `homa_incoming.c` `homa_need_ack_pkt`, TIME-10), or, with CONFIRM,
/// offers a session in which it would execute the request (requirement AMO-1).
pub(super) fn on_need_ack(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
) -> Result<(), DropReason> {
    if our_role(header) != Role::Client {
        return Err(DropReason::WrongRole);
    }
    let question = header.udp().filter(|fields| fields.flags.contains(Flags::CONFIRM));
    match (find_rpc(&protocol.tables, from, header), question) {
        (Some((peer, rpc)), Some(fields)) => {
            let birth = birth_of(protocol, rpc, header);
            on_offer(protocol, inbound, output, (peer, rpc), fields, birth)
        }
        // The call is over. An offering server has kept nothing of it.
        (None, Some(_)) => Err(DropReason::UnknownRpc),
        (None, None) => {
            let knows = |peer| shows_session(&protocol.tables.peers[peer], header);
            if header.udp().is_some() && !from.peer.is_some_and(knows) {
                return Err(DropReason::StaleSession);
            }
            // In the kernel profile, where there are no sessions, any host may ask.
            count_answer(protocol, from, header)?;
            answer_with_acks(protocol, output, from, header);
            Ok(())
        }
        (Some(_), None) => {
            let (peer, rpc) = rpc_of(&protocol.tables, from, header, Proof::Session)?;
            let no_room =
                protocol.tables.rpcs[rpc].state() == SideState::Client(ClientState::NoRoom);
            let (silence, rtt) = (protocol.silence(rpc), &protocol.tables.peers[peer].rtt);
            let waits = no_room
                || protocol.timers.in_flight(&protocol.config, protocol.now).covers(rtt, silence);
            if waits || !output.request_missing(protocol, rpc) {
                // The response is probably in flight, or the server waits for this endpoint or for
                // room in it: the kernel asks every millisecond, and bytes that would be dropped
                // again must not take its link from everything else.
                output.control(protocol, rpc, Body::Busy);
            }
            Ok(())
        }
    }
}

/// Handles the offer of a session for a live call. The server has kept nothing of the request,
/// which is sent again.
///
/// The offer repeats the claim of the packet that it answers. An offer for a packet from before the
/// call was bound is late, and ignored; an offer for a packet of the call's session shows that the
/// server has lost it.
fn on_offer(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    (peer, rpc): (PeerId, RpcKey),
    fields: &UdpFields,
    birth: Option<Birth>,
) -> Result<(), DropReason> {
    let session = fields.incarnation;
    // WIRE-33: the offers of an older server repeat no claim, and it keeps the request.
    let repeats = fields.features.contains(Features::LONG_SESSIONS);
    let answers = |claim| !repeats || fields.low_water == UdpFields::claim(claim);
    let offer = Offer { session, claim: Some(fields.low_water) };
    let incarnation = u64::from(output.outbound.identity.incarnation);
    let Side::Client(client) = protocol.tables.rpcs[rpc].side else {
        return Err(DropReason::WrongRole);
    };
    match client.binding.session() {
        None if answers(incarnation) => {
            sample_round_trip(protocol, peer, rpc);
            if repeats {
                begin_session(protocol, output, peer, offer);
            } else {
                protocol.tables.peers[peer].calls.accept(offer, protocol.now);
                bind(protocol, rpc, Binding::Session(session));
                repeat(protocol, output, rpc);
            }
        }
        Some(bound) if bound == session => {
            if !repeats {
                repeat(protocol, output, rpc);
            }
        }
        // WIRE-33: a server that has offered 48 bits repeats claims. Without one, the id of the
        // call would be the only secret.
        Some(bound) if !repeats && bound >> 32 != 0 => return Err(DropReason::StaleSession),
        Some(bound) if answers(bound) => {
            peer_restarted(protocol, inbound, output, peer, offer, birth);
        }
        _ => return Err(DropReason::StaleSession),
    }
    if protocol.tables.rpcs.get(rpc).is_some() {
        protocol.tables.hear(protocol.now, peer, rpc);
    }
    Ok(())
}

/// Moves the calls to a server without a session into the one that it offers. It has kept nothing
/// of them.
///
/// Offers of two time slots may cross: all calls continue in the same session.
pub(super) fn begin_session(
    protocol: &mut Protocol,
    output: &mut Output,
    peer: PeerId,
    offer: Offer,
) {
    let calls = &mut protocol.tables.peers[peer].calls;
    if calls.session().is_none() {
        calls.accept(offer, protocol.now);
    }
    let binding = Binding::new(calls.session());
    let unbound = |entry: &Rpc| entry.client().is_some_and(|c| c.binding == Binding::None);
    let affected = protocol.tables.rpcs_with(peer).filter(|(_, entry)| unbound(entry));
    let affected: Vec<RpcKey> = affected.map(|(rpc, _)| rpc).collect();
    for rpc in affected {
        bind(protocol, rpc, binding);
        start_over(protocol, output, rpc);
    }
}

fn bind(protocol: &mut Protocol, rpc: RpcKey, binding: Binding) {
    if let Side::Client(client) = &mut protocol.tables.rpcs[rpc].side {
        client.binding = binding;
    }
}

/// Offers are sent at once: the time since the request has left is a round trip.
fn sample_round_trip(protocol: &mut Protocol, peer: PeerId, rpc: RpcKey) {
    let entry = &protocol.tables.rpcs[rpc];
    if let Some(request) = entry.outgoing.as_ref().filter(|request| request.sent() > 0)
        && !request.resent
        && entry.asks == 0
    {
        let elapsed = protocol.now.since(request.first_sent);
        protocol.tables.peers[peer].rtt.sample(protocol.now, elapsed);
    }
}

/// Sends the request as if none of it had left.
fn start_over(protocol: &mut Protocol, output: &mut Output, rpc: RpcKey) {
    let Some(request) = &mut protocol.tables.rpcs[rpc].outgoing else { return };
    request.start_over();
    output.outbound.messages.update(&mut protocol.tables.rpcs, rpc);
}

/// Sends the sent part of the request again, to a server that may have kept it.
fn repeat(protocol: &mut Protocol, output: &mut Output, rpc: RpcKey) {
    let highest = protocol.config.highest_priority();
    let entry = &mut protocol.tables.rpcs[rpc];
    let cutoffs = &protocol.tables.peers[entry.peer].cutoffs;
    let Some(request) = &mut entry.outgoing else { return };
    let priority = cutoffs.level(request.length(), highest);
    request.request_resend(0..request.sent(), priority, |_| false);
    output.queue_resend(protocol, rpc);
}

/// Handles a server that has lost the session of the calls: it was restarted, or has forgotten this
/// client. Calls that it has certainly not executed continue in the new session, as if they had not
/// been sent (AMO-11), and so do idempotent ones, whose fate is unknown; the others fail (AMO-3).
pub(super) fn peer_restarted(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    peer: PeerId,
    offer: Offer,
    birth: Option<Birth>,
) {
    output.observation.metrics.admission.peers_restarted += 1;
    let calls = &mut protocol.tables.peers[peer].calls;
    let shown = calls.shown();
    calls.accept(offer, protocol.now);
    let bound_before = |entry: &Rpc| {
        let bound = entry.client().and_then(|client| client.binding.session());
        bound.is_some_and(|bound| bound != offer.session)
    };
    let affected = protocol.tables.rpcs_with(peer).filter(|(_, entry)| bound_before(entry));
    let affected: Vec<RpcKey> = affected.map(|(rpc, _)| rpc).collect();
    for rpc in affected {
        output.observation.note(&protocol.tables, rpc, ProbeKind::PeerRestart);
        let entry = &protocol.tables.rpcs[rpc];
        let answered = entry.state() == SideState::Client(ClientState::Incoming);
        let Some(client) = entry.client() else { continue };
        let is_moved = client.binding.is_moved();
        if !answered && !is_moved && is_unexecuted(entry, shown, birth) {
            output.observation.metrics.admission.calls_sent_again += 1;
            bind(protocol, rpc, Binding::Session(offer.session));
            start_over(protocol, output, rpc);
        } else if client.idempotent && !answered {
            bind(protocol, rpc, Binding::Moved(offer.session));
            start_over(protocol, output, rpc);
        } else {
            fail_client(protocol, inbound, output, rpc, FailureKind::PeerRestarted);
        }
    }
}

/// The birth of the server that answers packets of the call `rpc` with this offer (AMO-11).
fn birth_of(protocol: &Protocol, rpc: RpcKey, header: &Header) -> Option<Birth> {
    let request =
        protocol.tables.rpcs[rpc].outgoing.as_ref().filter(|request| request.sent() > 0)?;
    Birth::of_stated(header.sequence, request.first_sent, protocol.now)
}

/// Whether the request of a call in a session that was last shown at `shown` was certainly not
/// executed: the server cannot have all of it, or was born after that and before the request left.
fn is_unexecuted(entry: &Rpc, shown: Instant, birth: Option<Birth>) -> bool {
    entry.outgoing.as_ref().is_some_and(|request| {
        !request.is_sent() || birth.is_some_and(|birth| birth.excludes(shown, request.first_sent))
    })
}

/// The call is over, or was never made: releases the server's state, and takes along the acks that
/// wait for this peer.
pub(super) fn answer_with_acks(
    protocol: &mut Protocol,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
) {
    let list = match from.peer {
        Some(peer) => {
            protocol.tables.peers[peer].acks.take_list_beside(header.sender_id.client_id())
        }
        None => AckList::EMPTY,
    };
    output.echo(*from.address, header, Body::Ack(list), Flags::NONE);
}
