//! The acknowledgment of one RPC, by an ACK packet or by an ack that rides on DATA.

use crate::lifecycle::{Context, Ending, end_server};
use crate::peer::PeerId;
use crate::rpc::ServerState;
use apus_wire::Role;

/// The client of RPC `id` has finished it: it has the response, or does not want it. Ends the RPC, and returns whether
/// it was known.
///
/// The packet has shown the client's session.
#[inline(always)]
pub(super) fn acknowledge(cx: &mut Context, peer: PeerId, id: u64) -> bool {
    let Some(rpc) = cx.tables.rpcs.find(peer, id, Role::Server) else { return false };
    let Some(server) = cx.tables.rpcs[rpc].server() else { return false };
    let ending = match server.state() {
        ServerState::Outgoing => Ending::Acknowledged,
        ServerState::Incoming | ServerState::InService => Ending::Discarded,
    };
    end_server(cx, rpc, ending);
    true
}
