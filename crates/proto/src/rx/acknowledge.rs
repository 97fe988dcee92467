//! The acknowledgment of one RPC, by an ACK packet or by an ack that rides on DATA.

use crate::lifecycle::{Context, Ending, end_server};
use crate::peer::PeerId;
use crate::rpc::ServerState;
use apus_wire::Role;

/// The client of RPC `id` is done with it: it has the response, or does not want it. Returns whether the
/// RPC was known.
///
/// No session is required: a client says this only of calls that have ended, and those do not come back.
pub(super) fn acknowledge(cx: &mut Context<'_>, peer: PeerId, id: u64) -> bool {
    let Some(rpc) = cx.tables.rpcs.find(peer, id, Role::Server) else { return false };
    let Some(server) = cx.tables.rpcs[rpc].server() else { return false };
    let ending = match server.state() {
        ServerState::Outgoing => Ending::Acknowledged,
        ServerState::Held | ServerState::Incoming | ServerState::InService => Ending::Disowned,
    };
    end_server(cx, rpc, ending);
    true
}
