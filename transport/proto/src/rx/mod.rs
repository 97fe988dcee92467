//! Reception: the effects of a packet.
//!
//! One file per kind, `on_<kind>`. A handler changes tables and queues packets; it never sends, and
//! calls no other kind's handler. It may change what its parameters permit
//! (`tests/permissions.rs`). A packet that cannot be used ends as a
//! [`DropReason`](crate::DropReason) that is counted here and nowhere else.
//!
//! The path of a request in one packet: [`receive`], `on_data`, `admit`, `assemble`, event.

mod acknowledge;
mod admit;
mod assemble;
mod challenge;
mod establish;
mod host_life;
mod lookup;
mod on_ack;
mod on_busy;
mod on_cutoffs;
mod on_data;
mod on_freeze;
mod on_grant;
mod on_need_ack;
mod on_resend;
mod on_response;
mod on_rpc_unknown;
mod send_again;
mod unproven;

use crate::datagram::Datagram;
use crate::drop_reason::DropReason;
use crate::inbound::Inbound;
use crate::peer::{Address, peer_address};
use crate::protocol::Protocol;
use crate::tx::Output;
use apus_wire::{Body, Data, Packet, Profile};
pub(crate) use establish::establish_session;
use lookup::{DataPacket, Source, note_variant};
use on_ack::on_ack;
use on_busy::on_busy;
use on_cutoffs::on_cutoffs;
use on_data::on_data;
use on_freeze::on_freeze;
use on_grant::on_grant;
use on_need_ack::on_need_ack;
use on_resend::on_resend;
use on_rpc_unknown::on_rpc_unknown;

/// Gives a packet to its handler.
pub(crate) fn receive(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    datagram: &Datagram<'_>,
    packet: &Packet<'_>,
) {
    let (from, header) = (&datagram.from, &packet.header);
    let profile = output.outbound.identity.profile;
    if header.dport != output.outbound.identity.port {
        // WIRE-4
        drop_packet(output, *from, packet, DropReason::WrongPort);
        return;
    }
    output.observation.metrics.count_received(packet.body.kind());
    let other;
    let address = if profile == Profile::Udp && from.is_ipv4() {
        from
    } else {
        other = peer_address(profile, *from);
        &other
    };
    let peers = &mut protocol.tables.peers;
    let from = &Source { address, peer: peers.find(address) };
    output.observation.notes.arrival(address, packet);
    if profile == Profile::Kernel
        && let Some(peer) = from.peer
    {
        note_variant(&mut peers[peer], &packet.body);
    }
    let used = match &packet.body {
        Body::Data(data, payload) => {
            let packet = DataPacket { data, payload, is_marked: datagram.is_marked };
            on_data(protocol, inbound, output, from, header, &packet)
        }
        Body::Grant(grant) => on_grant(
            protocol.now,
            &mut protocol.tables,
            &mut output.outbound.messages,
            from,
            header,
            grant,
        ),
        Body::Resend(resend) => on_resend(protocol, output, from, header, resend),
        Body::RpcUnknown => on_rpc_unknown(protocol, inbound, output, from, header),
        Body::Busy => on_busy(protocol, from, header),
        Body::Cutoffs(cutoffs) => on_cutoffs(&mut protocol.tables.peers, from, header, cutoffs),
        Body::NeedAck => on_need_ack(protocol, inbound, output, from, header),
        Body::Ack(list) => on_ack(protocol, inbound, output, from, header, list),
        Body::Freeze => {
            on_freeze(&protocol.tables.peers, &mut output.observation.notes, from, header)
        }
    };
    if let Err(reason) = used {
        count_needless_resend(output, packet, reason);
        drop_packet(output, *address, packet, reason);
    }
}

/// Counts DATA that was sent again although it had arrived: its bytes are there, or its RPC has
/// ended.
fn count_needless_resend(output: &mut Output, packet: &Packet<'_>, reason: DropReason) {
    if let Body::Data(Data { retransmit: true, .. }, _) = &packet.body
        && matches!(reason, DropReason::Duplicate | DropReason::UnknownRpc | DropReason::Finished)
    {
        output.observation.metrics.recovery.resent_discards += 1;
    }
}

/// Counts and notes a packet that is not used.
#[cold]
fn drop_packet(output: &mut Output, from: Address, packet: &Packet<'_>, reason: DropReason) {
    output.observation.metrics.count_drop(reason);
    output.observation.notes.dropped(from, packet, reason);
}
