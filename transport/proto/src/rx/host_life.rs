//! Kernel profile: a client host whose call counter restarts (AMO-10).

use super::challenge::end_life;
use super::lookup::{DataPacket, Source, find_rpc};
use crate::inbound::Inbound;
use crate::lifecycle::{Ending, end_server};
use crate::peer::{PeerId, RequestSign, digest};
use crate::protocol::Protocol;
use crate::tx::Output;
use apus_wire::Header;

/// Records a packet of a request from `peer`, a host of the kernel profile. If it shows that the
/// host was restarted, the requests of its earlier life end (a few per call, TIME-12), and their
/// ids lose their meaning. Returns the number of the present life.
pub(super) fn note_host_life(
    protocol: &mut Protocol,
    output: &mut Output,
    peer: PeerId,
    header: &Header,
    packet: &DataPacket<'_>,
) -> u64 {
    let DataPacket { data, payload, .. } = *packet;
    let sign = RequestSign {
        id: header.sender_id.client_id(),
        port: header.sport,
        version: data.cutoff_version,
        digest: digest(header.sport, data.message_length, data.offset, payload),
        arrived: protocol.timers.in_flight(&protocol.config, protocol.now).arrived(protocol.now),
    };
    let (life, ended) = protocol.tables.peers[peer].serving.note_request(sign);
    if let Some(ended) = ended {
        end_life(protocol, output, peer, ended);
    }
    life
}

/// Ends the request that the packet names if it belongs to an earlier life of its host: a reply to
/// it would be taken for one to the new request.
pub(super) fn end_earlier(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    life: u64,
) {
    if let Some((_, rpc)) = find_rpc(&protocol.tables, from, header)
        && protocol.tables.rpcs[rpc].session() != Some(life)
    {
        end_server(protocol, inbound, output, rpc, Ending::Discarded);
    }
}
