//! The acknowledgment of one RPC, by an ACK packet or by an ack that rides on DATA.

use crate::lifecycle::{Context, Ending, end_server};
use crate::peer::PeerId;
use crate::rpc::ServerState;
use apus_wire::Role;

/// The client of RPC `id` has finished it: it has the response, or does not want it. Ends the RPC, and returns whether
/// it was known.
///
/// No session is required: a client acknowledges only calls that have ended, and an ended call does not resume.
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
