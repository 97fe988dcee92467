//! NEED_ACK: the server asks whether a call still needs its state, or whether it is live.

use super::lookup::{Proof, Source, find_rpc, our_role, rpc_of};
use crate::drop_reason::DropReason;
use crate::error::FailureKind;
use crate::lifecycle::{Context, fail_client};
use crate::peer::PeerId;
use crate::probe::ProbeKind;
use crate::rpc::{Binding, ClientState, RpcKey, Side, State};
use crate::tx::Sender;
use apus_wire::{AckList, Body, Flags, Header, Role};

/// The server asks whether the call still needs its state (HM `homa_timer.c` `homa_timer_check_rpc`,
/// `homa_incoming.c` `homa_need_ack_pkt`, TIME-10), or, with CONFIRM, whether a request that it holds may be executed
/// (requirement AMO-2).
pub(super) fn on_need_ack(
    cx: &mut Context<'_>,
    from: Source,
    header: &Header,
) -> Result<(), DropReason> {
    if our_role(header) != Role::Client {
        return Err(DropReason::WrongRole);
    }
    let Some((peer, rpc)) = find_rpc(cx.tables, from, header) else {
        answer_with_acks(&mut cx.sender(), from, header);
        return Ok(());
    };
    match header.udp() {
        Some(fields) if fields.flags.contains(Flags::CONFIRM) => {
            on_question(cx, peer, rpc, header, fields.incarnation);
            Ok(())
        }
        _ => {
            let (peer, rpc) = rpc_of(cx.tables, from, header, Proof::Session)?;
            let no_room = cx.tables.rpcs[rpc].state() == State::Client(ClientState::NoRoom);
            let (silence, rtt) = (cx.silence(rpc), &cx.tables.peers[peer].rtt);
            let waits = no_room || cx.in_flight().covers(rtt, silence);
            if waits || !cx.sender().request_missing(rpc) {
                // The response is probably on its way, or the server waits for this endpoint or for room in it: the
                // kernel asks every millisecond, and what would be dropped again must not take its link from
                // everything else.
                cx.sender().control(rpc, Body::Busy);
            }
            Ok(())
        }
    }
}

/// The server has a request of this endpoint in session `session` and asks whether the call is live.
fn on_question(cx: &mut Context<'_>, peer: PeerId, rpc: RpcKey, header: &Header, session: u32) {
    let entry = &mut cx.tables.rpcs[rpc];
    let Side::Client(client) = &mut entry.side else { return };
    match client.binding.session() {
        // The session in which the call may have been executed is gone.
        Some(bound) if bound != session => peer_restarted(cx, peer, session),
        bound => {
            if bound.is_none() {
                client.binding = Binding::Session(session);
            }
            cx.tables.peers[peer].calls.session = Some(session);
        }
    }
    if cx.tables.rpcs.get(rpc).is_some() {
        cx.tables.hear(cx.now, peer, rpc);
        cx.sender().control_with(rpc, Body::Busy, Flags::CONFIRM, 0);
    } else {
        let to = cx.tables.peers[peer].address;
        cx.sender().answer(to, header, Body::Ack(AckList::EMPTY), Flags::NONE, 0);
    }
}

/// The server has lost the session of the calls: it was restarted, or has forgotten this client. Calls
/// that may have been executed fail, idempotent ones go on in the new session (AMO-3).
fn peer_restarted(cx: &mut Context<'_>, peer: PeerId, session: u32) {
    cx.observation.metrics.admission.peers_restarted += 1;
    cx.tables.peers[peer].calls.session = Some(session);
    let affected: Vec<RpcKey> = cx
        .tables
        .rpcs
        .iter()
        .filter(|(_, rpc)| rpc.peer == peer)
        .filter(|(_, rpc)| {
            rpc.client()
                .is_some_and(|client| client.binding.session().is_some_and(|s| s != session))
        })
        .map(|(rpc, _)| rpc)
        .collect();
    for rpc in affected {
        cx.observation.note(cx.tables, rpc, ProbeKind::PeerRestart);
        let entry = &mut cx.tables.rpcs[rpc];
        let answered = entry.state() == State::Client(ClientState::Incoming);
        let Side::Client(client) = &mut entry.side else { continue };
        if client.idempotent && !answered {
            client.binding = Binding::Moved(session);
        } else {
            fail_client(cx, rpc, FailureKind::PeerRestarted);
        }
    }
}

/// The call is over, or was never made: releases the server's state, and takes along the acks
/// that wait for this peer.
pub(super) fn answer_with_acks(to: &mut Sender<'_>, from: Source, header: &Header) {
    let list = match from.peer {
        Some(peer) => to.tables.peers[peer].acks.take_list_beside(header.sender_id.client_id()),
        None => AckList::EMPTY,
    };
    to.answer(from.address, header, Body::Ack(list), Flags::NONE, 0);
}
