//! What does an ACK do?

use super::{Source, our_role};
use crate::drop_reason::DropReason;
use crate::peer::PeerId;
use crate::rpc::ServerState;
use crate::transport::{Ending, Transport};
use apus_wire::{AckList, Flags, Header, Role};

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
        self.note_session(peer, header);
        let mut known = self.acknowledge(peer, header.sender_id.client_id());
        let port = self.identity.port;
        for ack in list.iter().filter(|ack| ack.server_port == port) {
            known |= self.acknowledge(peer, ack.client_id);
        }
        known.then_some(()).ok_or(DropReason::UnknownRpc)
    }

    /// A client that disowns the call which it was asked about has learnt its session all the same, and
    /// makes its next calls in it (S3). Without this, a server that was restarted would drop the
    /// session together with the call, and take itself for restarted again at the next one.
    fn note_session(&mut self, peer: PeerId, header: &Header) {
        if let Some(fields) = header.udp()
            && fields.flags.contains(Flags::SESSION)
        {
            let confirmation = self.peers[peer].serving.confirm(fields.incarnation);
            self.note_confirmation(peer, confirmation);
        }
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
