//! ACK: clients do not need the state of their calls any more.

use super::acknowledge::acknowledge;
use super::confirm::note_confirmation;
use super::lookup::{Source, our_role};
use crate::drop_reason::DropReason;
use crate::lifecycle::Context;
use crate::peer::PeerId;
use apus_wire::{AckList, Flags, Header, Role};

/// The client does not need the state of these RPCs any more (HM `homa_incoming.c` `homa_ack_pkt`,
/// RPC-10).
pub(super) fn on_ack(
    cx: &mut Context<'_>,
    from: Source,
    header: &Header,
    list: &AckList,
) -> Result<(), DropReason> {
    if our_role(header) != Role::Server {
        return Err(DropReason::WrongRole);
    }
    let peer = from.peer.ok_or(DropReason::UnknownRpc)?;
    note_session(cx, peer, header);
    cx.tables.peers[peer].need_ack.answered();
    let mut known = acknowledge(cx, peer, header.sender_id.client_id());
    let port = cx.outbound.identity.port;
    for ack in list.iter().filter(|ack| ack.server_port == port) {
        known |= acknowledge(cx, peer, ack.client_id);
    }
    known.then_some(()).ok_or(DropReason::UnknownRpc)
}

/// A client that disowns the call which it was asked about has nevertheless learnt its session, and
/// makes its next calls in it (SESSION-3). Otherwise, a server that was restarted would drop the
/// session together with the call, and take itself for restarted again at the next one.
fn note_session(cx: &mut Context<'_>, peer: PeerId, header: &Header) {
    if let Some(fields) = header.udp()
        && fields.flags.contains(Flags::SESSION)
    {
        let confirmation = cx.tables.peers[peer].serving.confirm(fields.incarnation);
        note_confirmation(cx, peer, confirmation);
    }
}
