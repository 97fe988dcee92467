//! Handshakes that this endpoint begins: what is due, what a server answers, and the keys in the end.

use super::{Handshakes, Peer, send};
use crate::association::association;
use crate::failure::{Failure, FoundBy};
use crate::handshake::flight::Flight;
use std::collections::BTreeMap;
use std::net::SocketAddr;

impl Handshakes {
    /// Sends the packets of client handshakes that are due. Those that were not answered fail.
    pub(super) fn send_due(&mut self, now: u64) {
        let mut silent = Vec::new();
        let Self { clients, outbox, peers, .. } = self;
        // HANDSHAKE-5
        clients.retain(|peer, client| {
            client.is_complete || client.due > now || !is_heard(peers, peer)
        });
        for (peer, client) in clients.iter_mut().filter(|(_, client)| client.due <= now) {
            match client.attempt(now) {
                Some(packets) => send(outbox, *peer, client.from, packets),
                None => silent.push(*peer),
            }
        }
        for peer in silent {
            let client = self.clients.remove(&peer);
            // Complete, and no READY has come: the server works, or its NO_KEY will say what is wrong.
            if client.is_some_and(|client| !client.is_complete) {
                self.fail(now, peer, Failure::Timeout, FoundBy::Us);
            }
        }
    }

    /// The client's handshake with `peer` goes on by what `read` takes from a packet.
    pub(super) fn client_reads(
        &mut self,
        now: u64,
        peer: SocketAddr,
        read: impl FnOnce(&mut Flight) -> Result<bool, Failure>,
    ) {
        let Some(client) = self.clients.get_mut(&peer) else { return };
        if client.is_complete || client.rests(now) {
            return;
        }
        if is_heard(&self.peers, &peer) {
            // HANDSHAKE-5
            self.clients.remove(&peer);
            return;
        }
        match read(&mut client.flight) {
            Ok(false) => {}
            Ok(true) => {
                if client.flight.has_finish() {
                    client.answered(now);
                }
                self.complete_client(now, peer);
                self.send_due(now);
            }
            Err(cause) => self.refuse_as_client(now, peer, cause),
        }
    }

    /// Uses the keys of the client's handshake with `peer`, if it is complete.
    fn complete_client(&mut self, now: u64, peer: SocketAddr) {
        let Some(client) = self.clients.get_mut(&peer) else { return };
        let Some((keys, schedule)) = client.flight.take_application() else { return };
        client.is_complete = true;
        let began = client.began;
        let negotiation = &client.flight.negotiation;
        let is_resumed = negotiation.is_resumed();
        let shown = negotiation.identity().and_then(|it| Ok((it, negotiation.session()?)));
        match shown {
            Ok((identity, session)) => {
                self.counters.handshakes_as_client.add(1);
                self.counters.handshakes_resumed.add(u64::from(is_resumed));
                let (sealer, opener) = association(session, true, keys, schedule, now);
                self.establish((peer, began), identity, sealer, opener);
            }
            Err(cause) => self.refuse_as_client(now, peer, cause),
        }
    }

    /// The server at `peer` is refused, and learns why.
    fn refuse_as_client(&mut self, now: u64, peer: SocketAddr, cause: Failure) {
        if let Some(client) = self.clients.remove(&peer) {
            send(&mut self.outbox, peer, client.from, vec![client.flight.failed(cause)]);
        }
        self.fail(now, peer, cause, FoundBy::Us);
    }
}

/// Returns whether there are keys with `peer`, and it has used them since a handshake with it began.
fn is_heard(peers: &BTreeMap<SocketAddr, Peer>, peer: &SocketAddr) -> bool {
    peers.get(peer).is_some_and(|known| known.phases.take_heard())
}
