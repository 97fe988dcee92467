//! Handshakes that this endpoint starts: repeats packets, reads answers, and installs the keys.

use super::Handshakes;
use super::peers::PeerLife;
use crate::association::association;
use crate::failure::{Failure, FoundBy, HandshakeError};
use crate::handshake::client::{ANSWERED_WAIT, ClientHandshake, REPEATED_WAIT};
use crate::handshake::flight::Flight;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

impl Handshakes {
    /// Starts a handshake with `peer`, unless one is in progress. Its first packet leaves after
    /// `wait`.
    pub(super) fn start_client(
        &mut self,
        now: Duration,
        wait: Duration,
        peer: SocketAddr,
        from: Option<IpAddr>,
    ) -> Result<(), HandshakeError> {
        let limit = self.local.limits.in_progress;
        if self.clients.contains_key(&peer) || self.clients.len() >= limit {
            return Ok(());
        }
        if let Some(error) = self.failures.hold(now, peer) {
            return Err(error);
        }
        let mut id = [0; 8];
        self.local.negotiator.fill_random(&mut id);
        // Even, as the RPC ids of a client, so that decoders can tell the sender's role.
        let id = u64::from_be_bytes(id) & !1;
        let life = self.life(now);
        let negotiation = match self.local.negotiator.connect(peer, life) {
            Ok(negotiation) => negotiation,
            Err(cause) => return Err(self.failures.fail_client(now, peer, cause, FoundBy::Us)),
        };
        let mut flight = Flight::new(id, self.local.ports_to(peer), negotiation);
        flight.write();
        self.local.counters.handshakes_begun.add(1);
        let mut client = ClientHandshake::new(flight, from, now);
        // HANDSHAKE-5: only packets that arrive from now on count.
        self.peers.take_heard(peer);
        client.rest_until(now + wait);
        if let Some(began) = self.servers.latest_start(peer) {
            // HANDSHAKE-3
            client.rest_until(began + REPEATED_WAIT + ANSWERED_WAIT);
        }
        self.clients.insert(peer, client);
        self.send_due(now);
        Ok(())
    }

    /// Sends the packets of client handshakes that are due. Handshakes without an answer fail.
    pub(super) fn send_due(&mut self, now: Duration) {
        let mut silent = Vec::new();
        let Self { clients, output, peers, .. } = self;
        // HANDSHAKE-5
        clients.retain(|peer, client| {
            client.is_complete || client.due > now || !peers.take_heard(*peer)
        });
        for (peer, client) in clients.iter_mut().filter(|(_, client)| client.due <= now) {
            match client.attempt(now) {
                Some(packets) => output.send(*peer, client.from, packets),
                None => silent.push(*peer),
            }
        }
        for peer in silent {
            let client = self.clients.remove(&peer);
            // A complete handshake without READY is no failure: the server has the keys, or its
            // NO_KEY reports that it has not.
            if client.is_some_and(|client| !client.is_complete) {
                self.failures.fail_client(now, peer, Failure::Timeout, FoundBy::Us);
            }
        }
    }

    /// Continues the client's handshake with `peer` with the packet that `read` passes to it.
    pub(super) fn client_reads(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        read: impl FnOnce(&mut Flight) -> Result<bool, Failure>,
    ) {
        let Some(client) = self.clients.get_mut(&peer) else { return };
        if client.is_complete || client.is_resting(now) {
            return;
        }
        if self.peers.take_heard(peer) {
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

    /// Installs the keys of the client's handshake with `peer`, if it is complete.
    fn complete_client(&mut self, now: Duration, peer: SocketAddr) {
        let Some(client) = self.clients.get_mut(&peer) else { return };
        let Some((keys, schedule)) = client.flight.take_application() else { return };
        client.is_complete = true;
        let began = client.began;
        let negotiation = &client.flight.negotiation;
        let is_resumed = negotiation.is_resumed();
        let life = PeerLife::OfServer(negotiation.peer_life());
        let proved = negotiation.identity().and_then(|it| Ok((it, negotiation.session()?)));
        match proved {
            Ok((identity, session)) => {
                let counters = &self.local.counters;
                counters.handshakes_as_client.add(1);
                counters.handshakes_resumed.add(u64::from(is_resumed));
                let keys = association(session, true, keys, schedule, now);
                self.establish((peer, began), identity, keys, life);
            }
            Err(cause) => self.refuse_as_client(now, peer, cause),
        }
    }

    /// Ends the client's handshake with `peer` and sends the server the cause.
    fn refuse_as_client(&mut self, now: Duration, peer: SocketAddr, cause: Failure) {
        if let Some(client) = self.clients.remove(&peer) {
            self.output.send(peer, client.from, vec![client.flight.failed(cause)]);
        }
        self.failures.fail_client(now, peer, cause, FoundBy::Us);
    }
}
