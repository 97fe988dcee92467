//! DATA: a piece of a request or of a response arrives.

use super::acknowledge::acknowledge;
use super::admit::admit;
use super::assemble::add_data;
use super::host_life::{end_earlier, note_host_life};
use super::lookup::{Proof, Source, our_role, rpc_of, shows_session};
use super::on_response::on_response;
use crate::drop_reason::DropReason;
use crate::lifecycle::Context;
use crate::peer::PeerId;
use crate::priority::announcement;
use apus_wire::{Body, Data, Flags, Header, Profile, Role};

pub(super) fn on_data(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
    data: &Data,
    payload: &[u8],
) -> Result<(), DropReason> {
    let stripped = cx.outbound.identity.profile == Profile::Kernel && data.incoming == 0;
    // WIRE-26: the sender sends all of it, and understands no GRANT.
    let incoming = if stripped { data.message_length } else { data.incoming };
    let whole;
    let data = if incoming == data.incoming {
        data
    } else {
        whole = Data { incoming, ..*data };
        &whole
    };
    let used = match our_role(header) {
        Role::Server => on_request(cx, from, header, data, payload),
        Role::Client => on_response(cx, from, header, data, payload),
    };
    // RPC-11: the ack is handled after the data is queued (HM `homa_incoming.c` `homa_dispatch_pkts`), and even if the
    // data was dropped (HM `homa_incoming.c` `homa_data_pkt`). A peer that was not known before has nothing to
    // acknowledge.
    if let Some(peer) = from.peer {
        if let Some(ack) = data.ack
            && ack.server_port == cx.outbound.identity.port
            && cx.tables.peers.get_mut(peer).is_some_and(|peer| shows_session(peer, header))
        {
            acknowledge(cx, peer, ack.client_id);
        }
        if data.cutoff_version != cx.inbound.cutoffs.announced().version && !stripped {
            announce_cutoffs(cx, peer, header);
        }
    }
    used
}

/// A piece of a request that is known, or of a new one.
#[inline(never)]
fn on_request(
    cx: &mut Context,
    from: Source<'_>,
    header: &Header,
    data: &Data,
    payload: &[u8],
) -> Result<(), DropReason> {
    if cx.outbound.identity.profile == Profile::Kernel
        && let Some(peer) = from.peer
    {
        let life = note_host_life(cx, peer, header, data, payload);
        end_earlier(cx, from, header, life);
    }
    let (peer, rpc) = match rpc_of(&cx.tables, from, header, Proof::Session) {
        Err(DropReason::UnknownRpc) => return admit(cx, from, header, data, payload),
        found => found?,
    };
    if let Some(fields) = header.udp() {
        let id = header.sender_id.client_id();
        cx.tables.peers[peer].serving.note_low_water(id, fields);
    }
    add_data(cx, rpc, data, payload)
}

/// PRIO-6: sends the peer this endpoint's cutoffs: its packet shows that it does not know them
/// (HM `homa_incoming.c` `homa_data_pkt`). A client that has not proved its address receives nothing, and the packet
/// may have been the last that was known of it.
fn announce_cutoffs(cx: &mut Context, peer: PeerId, header: &Header) {
    let Some(entry) = cx.tables.peers.get_mut(peer) else { return };
    let proved = our_role(header) == Role::Client || entry.serving.is_established();
    let profile = cx.outbound.identity.profile;
    if proved && let Some(cutoffs) = announcement(&cx.inbound.cutoffs, entry, profile, cx.now) {
        let to = entry.address;
        let room = cx.inbound.room.share(cx.tables.peers.len());
        cx.sender().answer(to, header, Body::Cutoffs(cutoffs), Flags::NONE, room);
    }
}
