//! Reception: what a packet does.
//!
//! One file per kind, `on_<kind>`. A handler changes tables and queues packets; it never sends, and calls no other
//! kind's handler. Its parameters are what it may touch. A packet that cannot be used ends as a
//! [`DropReason`](crate::DropReason) that is counted here and nowhere else.
//!
//! A request in one packet goes straight: [`receive`], `on_data`, `admit`, `assemble`, event.

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
mod unproven;

use crate::drop_reason::DropReason;
use crate::lifecycle::Context;
use crate::peer::{Address, Variant, peer_address};
use apus_wire::{Body, Data, Packet, Profile};
pub(crate) use establish::establish_session;
use lookup::{Source, note_variant};
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
pub(crate) fn receive(cx: &mut Context, from: &Address, packet: &Packet<'_>) {
    let header = &packet.header;
    let profile = cx.outbound.identity.profile;
    if header.dport != cx.outbound.identity.port {
        // WIRE-4
        drop_packet(cx, *from, packet, DropReason::WrongPort);
        return;
    }
    cx.observation.metrics.count_received(packet.body.kind());
    let other;
    let address = if profile == Profile::Udp && from.is_ipv4() {
        from
    } else {
        other = peer_address(profile, *from);
        &other
    };
    let peers = &mut cx.tables.peers;
    // WIRE-26
    let variant = if profile == Profile::Kernel { Variant::shown_by(&packet.body) } else { None };
    let from = Source { address, peer: peers.find(address), variant };
    cx.observation.notes.arrival(address, packet);
    if let Some(peer) = from.peer {
        note_variant(peers, peer, variant);
    }
    let used = match &packet.body {
        Body::Data(data, payload) => on_data(cx, from, header, data, payload),
        Body::Grant(grant) => {
            on_grant(cx.now, &mut cx.tables, &mut cx.outbound.messages, from, header, grant)
        }
        Body::Resend(resend) => on_resend(cx, from, header, resend),
        Body::RpcUnknown => on_rpc_unknown(cx, from, header),
        Body::Busy => on_busy(cx, from, header),
        Body::Cutoffs(cutoffs) => on_cutoffs(&mut cx.tables.peers, from, header, cutoffs),
        Body::NeedAck => on_need_ack(cx, from, header),
        Body::Ack(list) => on_ack(cx, from, header, list),
        Body::Freeze => on_freeze(&cx.tables.peers, &mut cx.observation.notes, from, header),
    };
    if let Err(reason) = used {
        count_needless_resend(cx, packet, reason);
        drop_packet(cx, *address, packet, reason);
    }
}

/// Counts DATA that was sent again although it had arrived: its bytes are there, or its RPC has ended.
fn count_needless_resend(cx: &mut Context, packet: &Packet<'_>, reason: DropReason) {
    if let Body::Data(Data { retransmit: true, .. }, _) = &packet.body
        && matches!(reason, DropReason::Duplicate | DropReason::UnknownRpc | DropReason::Finished)
    {
        cx.observation.metrics.recovery.resent_discards += 1;
    }
}

/// Counts and notes a packet that is not used.
#[cold]
fn drop_packet(cx: &mut Context, from: Address, packet: &Packet<'_>, reason: DropReason) {
    cx.observation.metrics.count_drop(reason);
    cx.observation.notes.dropped(from, packet, reason);
}
