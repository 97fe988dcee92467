//! Kernel profile: a client host that counts its calls anew (AMO-10).

use super::challenge::end_life;
use super::lookup::{Source, find_rpc};
use crate::lifecycle::{Context, Ending, end_server};
use crate::peer::{PeerId, RequestSign, digest};
use apus_wire::{Data, Header};

/// Notes a packet of a request from `peer`, a host of the kernel profile. If it shows that the host was restarted, the
/// requests of its earlier life end (a few per call, TIME-12), and their ids mean nothing any more. Returns the number of
/// the present life.
pub(super) fn note_host_life(
    cx: &mut Context,
    peer: PeerId,
    header: &Header,
    data: &Data,
    payload: &[u8],
) -> u64 {
    let sign = RequestSign {
        id: header.sender_id.client_id(),
        version: data.cutoff_version,
        digest: digest(header.sport, data.message_length, data.offset, payload),
        arrived: cx.timers.in_flight(&cx.config, cx.now).arrived(cx.now),
    };
    let (life, ended) = cx.tables.peers[peer].serving.note_request(sign);
    if let Some(ended) = ended {
        end_life(cx, peer, ended);
    }
    life
}

/// Ends the request that the packet names if it belongs to an earlier life of its host: a reply to it would be taken for one
/// to the new request.
pub(super) fn end_earlier(cx: &mut Context, from: Source<'_>, header: &Header, life: u64) {
    if let Some((_, rpc)) = find_rpc(&cx.tables, from, header)
        && cx.tables.rpcs[rpc].session() != Some(life)
    {
        end_server(cx, rpc, Ending::Discarded);
    }
}
