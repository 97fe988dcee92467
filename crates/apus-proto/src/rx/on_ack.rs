//! What does an ACK do?

use super::{Source, our_role};
use crate::drop_reason::DropReason;
use crate::peer::PeerId;
use crate::rpc::ServerState;
use crate::transport::{Ending, Transport};
use apus_wire::{AckList, Header, Role};

impl Transport {
    /// The client does not need the state of these RPCs any more (row P-19, RPC-10).
    pub(super) fn on_ack(
        &mut self,
        from: Source,
        header: &Header,
        list: &AckList,
    ) -> Result<(), DropReason> {
        if our_role(header) != Role::Server {
            return Err(DropReason::WrongRole);
        }
        let peer = from.peer.ok_or(DropReason::UnknownRpc)?;
        let mut known = self.acknowledge(peer, header.sender_id.client_id());
        let port = self.identity.port;
        for ack in list.iter().filter(|ack| ack.server_port == port) {
            known |= self.acknowledge(peer, ack.client_id);
        }
        known.then_some(()).ok_or(DropReason::UnknownRpc)
    }

    /// The client of RPC `id` is done with it: it has the response, or does not want it. Whether the
    /// RPC was known.
    ///
    /// No session is asked for: a client says this only of calls that are over, and over they stay.
    pub(super) fn acknowledge(&mut self, peer: PeerId, id: u64) -> bool {
        let Some(rpc) = self.rpcs.find(peer, id, Role::Server) else { return false };
        let Some(server) = self.rpcs[rpc].server() else { return false };
        let ending = match server.state {
            ServerState::Outgoing => Ending::Acknowledged,
            ServerState::Incoming | ServerState::InService => Ending::Disowned,
        };
        self.end_server(rpc, ending);
        true
    }
}
