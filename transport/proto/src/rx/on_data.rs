//! DATA: a piece of a request or of a response arrives.

use super::acknowledge::acknowledge;
use super::admit::admit;
use super::assemble::add_data;
use super::host_life::{end_earlier, note_host_life};
use super::lookup::{DataPacket, Proof, Source, our_role, rpc_of, shows_session};
use super::on_response::on_response;
use crate::drop_reason::DropReason;
use crate::inbound::Inbound;
use crate::peer::PeerId;
use crate::priority::announcement;
use crate::protocol::Protocol;
use crate::tx::Output;
use apus_wire::{Body, Flags, Header, Profile, Role};

pub(super) fn on_data(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    packet: &DataPacket<'_>,
) -> Result<(), DropReason> {
    let data = packet.data;
    let used = match our_role(header) {
        Role::Server => on_request(protocol, inbound, output, from, header, packet),
        Role::Client => on_response(protocol, inbound, output, from, header, packet),
    };
    // RPC-11: the ack is handled after the data is queued (HM `homa_incoming.c`
    // `homa_dispatch_pkts`), and even if the data was dropped (HM `homa_incoming.c`
    // `homa_data_pkt`). A new peer has nothing to acknowledge.
    if let Some(peer) = from.peer {
        if let Some(ack) = data.ack
            && ack.server_port == output.outbound.identity.port
            && protocol.tables.peers.get_mut(peer).is_some_and(|peer| shows_session(peer, header))
        {
            acknowledge(protocol, inbound, output, peer, ack.client_id);
        }
        if data.cutoff_version != inbound.cutoffs.announced().version && !data.is_stripped {
            announce_cutoffs(protocol, inbound, output, peer, header);
        }
    }
    used
}

/// A piece of a request that is known, or of a new one.
// Its state on the stack would be reserved for every kind of packet.
#[inline(never)]
fn on_request(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    packet: &DataPacket<'_>,
) -> Result<(), DropReason> {
    if output.outbound.identity.profile == Profile::Kernel
        && let Some(peer) = from.peer
    {
        let life = note_host_life(protocol, output, peer, header, packet);
        end_earlier(protocol, inbound, output, from, header, life);
    }
    let (peer, rpc) = match rpc_of(&protocol.tables, from, header, Proof::Session) {
        Err(DropReason::UnknownRpc) => {
            return admit(protocol, inbound, output, from, header, packet);
        }
        found => found?,
    };
    if let Some(fields) = header.udp() {
        let id = header.sender_id.client_id();
        protocol.tables.peers[peer].serving.note_low_water(id, fields);
    }
    add_data(protocol, inbound, output, rpc, packet)
}

/// PRIO-6: sends the peer this endpoint's cutoffs, because its packet had other ones (HM
/// `homa_incoming.c` `homa_data_pkt`). A client that has not proved its address receives none. The
/// packet may have ended the peer.
fn announce_cutoffs(
    protocol: &mut Protocol,
    inbound: &Inbound,
    output: &mut Output,
    peer: PeerId,
    header: &Header,
) {
    let Some(entry) = protocol.tables.peers.get_mut(peer) else { return };
    let proved = our_role(header) == Role::Client || entry.serving.is_established();
    let profile = output.outbound.identity.profile;
    if proved && let Some(cutoffs) = announcement(&inbound.cutoffs, entry, profile, protocol.now) {
        let to = entry.address;
        let room = inbound.room.share(protocol.tables.peers.len());
        output.answer(protocol, to, header, Body::Cutoffs(cutoffs), Flags::NONE, room);
    }
}
