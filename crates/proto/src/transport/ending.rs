//! How does an RPC end?
//!
//! All ends go through [`Transport::remove`], which takes the RPC out of every table. Requirement
//! `RPC-6`: after that nothing of it is left but its id among the finished ones.

use super::{Event, Transport};
use crate::error::{FailureKind, RpcError};
use crate::message::{Arrived, MessageOut};
use crate::peer::PeerId;
use crate::probe::ProbeKind;
use crate::rpc::{RpcKey, Side};
use apus_wire::{Ack, Body, Profile};

/// How a server RPC ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The client has the response.
    Acknowledged,
    /// It will not be executed (again), and nobody waits for it.
    Discarded,
    /// It was given up before it could be executed; the client may send it again.
    GivenUp,
    /// Its client says that no such call lives: a late duplicate, or a call that was cancelled.
    Disowned,
}

/// What is still of interest when an RPC has been removed.
struct Removed {
    peer: PeerId,
    id: u64,
    side: Side,
}

impl Transport {
    /// The response is complete: the caller gets it, and the server will be told.
    pub(crate) fn complete_client(&mut self, rpc: RpcKey, response: Arrived) {
        let entry = &self.rpcs[rpc];
        let nanos = self.now.since(entry.started);
        let ack = Ack { client_id: entry.id, server_port: entry.peer_port };
        let started = entry.started;
        let overflow = self.peers[entry.peer].acks.add(ack);
        self.note_selected(rpc, ProbeKind::Complete { rpc, length: response.length });
        self.note_duration(rpc, started);
        if let Some(list) = overflow {
            self.metrics.recovery.ack_overflows += 1;
            self.send_control(rpc, Body::Ack(list));
        }
        self.metrics.calls.answered.record(nanos, 1);
        self.record_message(&response);
        self.metrics.progress.client_responses_done += 1;
        self.metrics.progress.client_response_bytes_done += u64::from(response.length);
        if let Some(cookie) = self.remove_client(rpc) {
            self.events.push_back(Event::Response { rpc, cookie, payload: response.payload });
        }
    }

    /// The call fails. What is known about its execution follows from its state (AMO-5).
    pub(crate) fn fail_client(&mut self, rpc: RpcKey, reason: FailureKind) {
        let Some(entry) = self.rpcs.get(rpc) else { return };
        let outcome = entry.outcome(self.identity.profile == Profile::Udp);
        self.fail_client_with(rpc, RpcError { kind: reason, execution: outcome });
    }

    /// The call fails, and the server has said what became of the request.
    pub(crate) fn fail_client_with(&mut self, rpc: RpcKey, error: RpcError) {
        let started = self.rpcs.get(rpc).map_or(self.now, |entry| entry.started);
        if self.rpcs.get(rpc).is_some() {
            self.note(rpc, ProbeKind::Failed(error.kind));
        }
        let Some(cookie) = self.remove_client(rpc) else { return };
        self.metrics.progress.client_rpcs_failed += 1;
        self.metrics.calls.fail(error.kind, self.now.since(started));
        self.events.push_back(Event::Failed { rpc, cookie, error });
    }

    /// The call fails by our own decision: the server is told that nobody waits any more.
    pub(crate) fn fail_and_disown(&mut self, rpc: RpcKey, reason: FailureKind) {
        if self.rpcs.get(rpc).is_some() {
            self.disown(rpc);
            self.fail_client(rpc, reason);
        }
    }

    /// A server RPC ends.
    pub(crate) fn end_server(&mut self, rpc: RpcKey, ending: Ending) {
        let Some(removed) = self.remove(rpc) else { return };
        let Side::Server(server) = removed.side else { return };
        let serving = &mut self.peers[removed.peer].serving;
        match ending {
            Ending::Acknowledged => self.metrics.progress.server_responses_done += 1,
            Ending::Discarded | Ending::GivenUp => {
                self.metrics.progress.server_rpcs_discarded += 1;
            }
            Ending::Disowned if server.confirmed => {
                self.metrics.progress.server_rpcs_discarded += 1;
            }
            Ending::Disowned => self.metrics.admission.disowned += 1,
        }
        if ending != Ending::GivenUp {
            serving.finish(server.session, removed.id);
        }
        if !server.confirmed {
            self.drop_held(removed.peer, server.session);
        }
    }

    /// Removes a call, notes that its id is finished, and returns its cookie.
    pub(super) fn remove_client(&mut self, rpc: RpcKey) -> Option<u64> {
        let removed = self.remove(rpc)?;
        let Side::Client(client) = removed.side else { return None };
        if let Some(deadline) = client.deadline {
            self.deadlines.remove(deadline, rpc);
        }
        if self.identity.profile == Profile::Udp {
            self.peers[removed.peer].calls.end(removed.id);
        }
        self.room_again();
        Some(client.cookie)
    }

    /// Takes an RPC out of every table and gives back what it had reserved.
    fn remove(&mut self, rpc: RpcKey) -> Option<Removed> {
        self.rpcs.get(rpc)?;
        self.silence.forget(&mut self.rpcs, rpc);
        let entry = &mut self.rpcs[rpc];
        self.granter.forget(rpc, entry);
        self.outbox.messages.remove(rpc, entry);
        let removed = Removed { peer: entry.peer, id: entry.id, side: entry.side };
        let (peer, ours) = (entry.peer, entry.role());
        let outgoing = entry.outgoing.as_ref().map(MessageOut::length);
        let incoming =
            entry.incoming.as_ref().map(|message| (message.length(), message.received()));
        let may_receive = entry.may_receive();
        self.rpcs.remove(rpc);
        if let Some(length) = outgoing {
            self.release_send(peer, ours, u64::from(length));
        }
        if !may_receive {
            self.release_unconfirmed(incoming.map_or(0, |(_, received)| u64::from(received)));
        } else if let Some((length, _)) = incoming {
            self.release_receive(peer, length, 0);
        }
        let now = self.now();
        let entry = &mut self.peers[peer];
        entry.live_rpcs -= 1;
        entry.last_used = now;
        Some(removed)
    }

    /// A held request has gone. With a peer's last one goes the session that was proposed, and with
    /// that the peer, if nothing else is known of it: strangers leave no trace.
    fn drop_held(&mut self, peer: PeerId, session: u32) {
        self.peers[peer].held -= 1;
        if self.peers[peer].held == 0 {
            self.peers[peer].serving.withdraw(session);
            self.peers.forget_stranger(peer);
        }
    }
}
