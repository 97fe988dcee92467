//! ACK: clients no longer need the state of their calls.

use super::acknowledge::acknowledge;
use super::lookup::{Source, our_role, shows_session};
use crate::drop_reason::DropReason;
use crate::inbound::Inbound;
use crate::protocol::Protocol;
use crate::tx::Output;
use apus_wire::{AckList, Header, Role};

/// Ends RPCs whose client no longer needs them (HM `homa_incoming.c` `homa_ack_pkt`, RPC-10). A
/// packet without the session ends none.
pub(super) fn on_ack(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    from: &Source<'_>,
    header: &Header,
    list: &AckList,
) -> Result<(), DropReason> {
    if our_role(header) != Role::Server {
        return Err(DropReason::WrongRole);
    }
    let peer = from.peer.ok_or(DropReason::UnknownRpc)?;
    if !shows_session(&protocol.tables.peers[peer], header) {
        return Err(DropReason::StaleSession);
    }
    let id = header.sender_id.client_id();
    let asked = protocol.tables.rpcs.find(peer, id, Role::Server);
    let asked = asked.and_then(|rpc| protocol.tables.rpcs[rpc].unanswered());
    protocol.tables.peers[peer].need_ack.answered(asked);
    let mut known = acknowledge(protocol, inbound, output, peer, id);
    let port = output.outbound.identity.port;
    for ack in list.iter().filter(|ack| ack.server_port == port) {
        known |= acknowledge(protocol, inbound, output, peer, ack.client_id);
    }
    known.then_some(()).ok_or(DropReason::UnknownRpc)
}
