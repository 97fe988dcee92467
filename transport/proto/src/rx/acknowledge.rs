//! The acknowledgment of one RPC, by an ACK packet or by an ack that rides on DATA.

use crate::inbound::Inbound;
use crate::lifecycle::{Ending, end_server};
use crate::peer::PeerId;
use crate::protocol::Protocol;
use crate::rpc::ServerState;
use crate::tx::Output;
use apus_wire::{Profile, Role};

/// The client of RPC `id` has finished it: it has the response, or does not want it. Ends the RPC,
/// and returns whether it was known.
///
/// The packet has shown the client's session.
#[inline(always)]
pub(super) fn acknowledge(
    protocol: &mut Protocol,
    inbound: &mut Inbound,
    output: &mut Output,
    peer: PeerId,
    id: u64,
) -> bool {
    let Some(rpc) = protocol.tables.rpcs.find(peer, id, Role::Server) else { return false };
    let entry = &protocol.tables.rpcs[rpc];
    let Some(server) = entry.server() else { return false };
    let ending = match server.state() {
        ServerState::Outgoing => {
            if let Some(response) = &entry.outgoing {
                protocol.tables.peers[peer].size.note_arrived(response.longest_packet());
            }
            Ending::Acknowledged
        }
        ServerState::Incoming | ServerState::InService => Ending::Discarded,
    };
    end_server(protocol, inbound, output, rpc, ending);
    if output.outbound.identity.profile == Profile::Kernel {
        protocol.tables.peers[peer].serving.acked(id, protocol.now);
    }
    true
}
