//! What does a NEED_ACK do?

use super::{Proof, Source, our_role};
use crate::drop_reason::DropReason;
use crate::error::FailureKind;
use crate::peer::PeerId;
use crate::probe::ProbeKind;
use crate::rpc::{ClientState, RpcKey, Side};
use crate::transport::Transport;
use apus_wire::{AckList, Body, Flags, Header, Role};

impl Transport {
    /// The server asks whether the call still needs its state (rows P-17, P-18, TIME-10), or, with
    /// CONFIRM, whether a request that it holds may be executed (requirement AMO-2).
    pub(super) fn on_need_ack(&mut self, from: Source, header: &Header) -> Result<(), DropReason> {
        if our_role(header) != Role::Client {
            return Err(DropReason::WrongRole);
        }
        let Some((peer, rpc)) = self.find_rpc(from, header) else {
            self.answer_with_acks(from, header);
            return Ok(());
        };
        match header.udp() {
            Some(fields) if fields.flags.contains(Flags::CONFIRM) => {
                self.on_question(peer, rpc, header, fields.incarnation);
                Ok(())
            }
            _ => {
                self.rpc_of(from, header, Proof::Session)?;
                if self.rpcs[rpc].no_room || !self.request_missing(rpc) {
                    // It is we who let the server wait; for room, too: the kernel asks every millisecond, and
                    // what would be dropped again must not take its link from everything else.
                    self.send_control(rpc, Body::Busy);
                }
                Ok(())
            }
        }
    }

    /// The server has a request of ours in session `session` and asks whether the call lives.
    fn on_question(&mut self, peer: PeerId, rpc: RpcKey, header: &Header, session: u32) {
        let entry = &mut self.rpcs[rpc];
        let Side::Client(client) = &mut entry.side else { return };
        if client.session.is_some_and(|bound| bound != session) {
            // The session in which the call may have been executed is gone.
            self.peer_restarted(peer, session);
        } else {
            client.session = Some(session);
            self.peers[peer].calls.session = Some(session);
        }
        if self.rpcs.get(rpc).is_some() {
            self.hear(peer, rpc);
            self.send_flagged(rpc, Body::Busy, Flags::CONFIRM);
        } else {
            let to = self.peers[peer].address;
            self.answer(to, header, Body::Ack(AckList::EMPTY), Flags::NONE, None);
        }
    }

    /// The server has lost the session of our calls: it was restarted, or has forgotten us. Calls
    /// that may have been executed fail, idempotent ones go on in the new session (AMO-3).
    fn peer_restarted(&mut self, peer: PeerId, session: u32) {
        self.metrics.admission.peers_restarted += 1;
        self.peers[peer].calls.session = Some(session);
        let affected: Vec<RpcKey> = self
            .rpcs
            .iter()
            .filter(|(_, rpc)| rpc.peer == peer)
            .filter(|(_, rpc)| {
                rpc.client().is_some_and(|client| client.session.is_some_and(|s| s != session))
            })
            .map(|(rpc, _)| rpc)
            .collect();
        for rpc in affected {
            self.note(rpc, ProbeKind::PeerRestart);
            let Side::Client(client) = &mut self.rpcs[rpc].side else { continue };
            if client.idempotent && client.state == ClientState::Outgoing {
                client.session = Some(session);
                client.moved = true;
            } else {
                self.fail_client(rpc, FailureKind::PeerRestarted);
            }
        }
    }

    /// The call is over, or we never heard of it: release the server's state, and take the acks along
    /// that wait for this peer.
    pub(super) fn answer_with_acks(&mut self, from: Source, header: &Header) {
        let list = match from.peer {
            Some(peer) => self.peers[peer].acks.take_list_beside(header.sender_id.client_id()),
            None => AckList::EMPTY,
        };
        self.answer(from.address, header, Body::Ack(list), Flags::NONE, None);
    }
}
