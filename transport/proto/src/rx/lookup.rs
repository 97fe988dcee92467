//! Lookup of a packet's RPC, and the check that the packet may affect it.

use crate::drop_reason::DropReason;
use crate::peer::{Address, Peer, PeerId, Peers, Variant};
use crate::rpc::{RpcKey, Tables};
use crate::time::Instant;
use apus_wire::{Body, Data, Flags, Header, Role};

/// The source of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) address: &'a Address,
    /// The peer at that address, if it was known when the packet arrived.
    pub(super) peer: Option<PeerId>,
}

/// The body of a DATA packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataPacket<'a> {
    pub(super) data: &'a Data,
    pub(super) payload: &'a [u8],
    /// Whether a switch has marked it (GRANT-18).
    pub(super) is_marked: bool,
}

/// The session that a packet must carry (udp profile).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// It carries that session: only the other end, in its present life, can have sent it.
    Session,
    /// It carries that session, or the call has none yet. For statements of a server about a
    /// request that it does not have.
    SessionIfAny,
}

/// This endpoint's role in the RPC that a packet is about.
pub(super) const fn our_role(header: &Header) -> Role {
    header.sender_id.sender().peer()
}

/// BAD-8: the peer and the RPC that a packet is about, if both are known and the packet agrees
/// with the RPC's session.
#[inline(always)]
pub(super) fn rpc_of(
    tables: &Tables,
    from: &Source<'_>,
    header: &Header,
    proof: Proof,
) -> Result<(PeerId, RpcKey), DropReason> {
    let (peer, rpc) = find_rpc(tables, from, header).ok_or(DropReason::UnknownRpc)?;
    let session = tables.rpcs[rpc].session();
    let agrees = match header.udp() {
        None => true,
        Some(fields) => match session {
            Some(session) => fields.flags.contains(Flags::SESSION) && fields.incarnation == session,
            None => proof == Proof::SessionIfAny,
        },
    };
    if agrees { Ok((peer, rpc)) } else { Err(DropReason::StaleSession) }
}

/// The peer and the RPC of a packet, if both are known, without a check of its session.
#[inline(always)]
pub(super) fn find_rpc(
    tables: &Tables,
    from: &Source<'_>,
    header: &Header,
) -> Option<(PeerId, RpcKey)> {
    let peer = from.peer?;
    let id = header.sender_id;
    let rpc = tables.rpcs.find(peer, id.client_id(), id.sender().peer())?;
    Some((peer, rpc))
}

/// Whether a packet of a client's present session is about a request that was finished in it.
pub(super) fn was_finished(peers: &Peers, from: &Source<'_>, header: &Header) -> bool {
    let (Some(peer), Some(fields)) = (from.peer, header.udp()) else { return false };
    let serving = &peers[peer].serving;
    fields.flags.contains(Flags::SESSION)
        && serving.is_current(fields.incarnation)
        && serving.is_finished(header.sender_id.client_id())
}

/// Whether a packet carries the session that its sender has with this endpoint, as client or as
/// server. For packets that concern no RPC. The kernel profile has no sessions: packets from any
/// host are accepted there.
pub(super) fn shows_session(peer: &Peer, header: &Header) -> bool {
    let Some(fields) = header.udp() else { return true };
    fields.flags.contains(Flags::SESSION)
        && match header.sender_id.sender() {
            Role::Client => peer.serving.is_current(fields.incarnation),
            Role::Server => peer.calls.knows(fields.incarnation),
        }
}

/// WIRE-26: records the variant of the peer's module, if a packet has revealed it.
#[cold]
pub(super) fn note_variant(peer: &mut Peer, body: &Body<'_>) {
    if let Some(variant) = Variant::shown_by(body) {
        peer.variant = variant;
    }
}

/// Records that the server has its session: a packet about a live call, other than the offer, shows
/// it. DATA need not answer the challenge any more.
#[inline]
pub(super) fn note_known(server: &mut Peer, header: &Header, now: Instant) {
    if let Some(fields) = header.udp() {
        server.calls.note_known(fields.incarnation, now);
    }
}
