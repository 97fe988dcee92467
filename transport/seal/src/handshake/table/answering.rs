//! Handshakes that other endpoints start: admits them under load, answers, and installs the keys.

use super::Handshakes;
use super::host::Host;
use super::output::{Datagram, SealEvent};
use super::peers::PeerLife;
use super::rates::Admission;
use super::servers::{CompleteHandshake, Key};
use crate::association::{Sealer, association};
use crate::cipher::TAG_LEN;
use crate::failure::{Failure, FoundBy};
use crate::handshake::flight::{Flight, Hello, PADDED, failed, retry};
use crate::handshake::server::ServerHandshake;
use crate::handshake::stream::MAX_PIECE;
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use std::net::IpAddr;
use std::time::Duration;

impl Handshakes {
    /// Handles a client's HELLO of `len` bytes.
    pub(super) fn server_hello(
        &mut self,
        now: Duration,
        key: Key,
        to: Option<IpAddr>,
        len: usize,
        hello: &Hello<'_>,
    ) {
        // A short HELLO is a server's answer: two servers would answer each other without end if
        // they took answers to unknown handshakes for requests (SEAL-9).
        if len < PADDED || self.servers.is_over(&key) {
            return;
        }
        let ready_bytes = self.send_known(key, to);
        // HANDSHAKE-3
        if self.clients.get(&key.0).is_some_and(|client| client.proceeds(now, key.1)) {
            return;
        }
        if !self.servers.in_progress.contains_key(&key) && !self.start_server(now, key, to, hello) {
            return;
        }
        let Some(server) = self.servers.in_progress.get_mut(&key) else { return };
        server.receive(len);
        server.spend(ready_bytes);
        match server.flight.handle_hello(hello) {
            Ok(_) => {
                let packets = server.answer();
                self.output.send(key.0, to, packets);
            }
            Err(cause) => self.refuse_as_server(key, cause),
        }
    }

    /// Has a READY sealed with the present keys of the client of handshake `key`, if it has some
    /// (HANDSHAKE-5). Returns the packet's length.
    fn send_known(&mut self, key: Key, from: Option<IpAddr>) -> usize {
        let (to, id) = key;
        let Some(known) = self.peers.get(to) else { return 0 };
        let packet = ready_header(self.local.ports_to(to), id);
        let bytes = packet.len() + TAG_LEN;
        let ready = Datagram { to, from, packet };
        self.output.events.push_back(SealEvent::Known { ready, session: known.session });
        bytes
    }

    /// Admits a handshake that a client starts. Returns whether it proceeds.
    ///
    /// Checks run from the cheapest to the most expensive, and what is no start of a handshake
    /// costs no token.
    fn start_server(
        &mut self,
        now: Duration,
        key: Key,
        to: Option<IpAddr>,
        hello: &Hello<'_>,
    ) -> bool {
        let (peer, id) = key;
        let life = self.life(now);
        let Self { local, servers, output, .. } = self;
        let (ports, limits, negotiator) = (local.ports_to(peer), local.limits, &*local.negotiator);
        if hello.offset > 0 || !negotiator.is_hello(hello.piece) {
            local.counters.hellos_dropped.add(1);
            return false;
        }
        let must_prove = servers.places() >= limits.cookies_from;
        let cookie = hello.cookie;
        let is_validated =
            cookie.is_some_and(|cookie| servers.cookies.check(negotiator, peer, id, now, cookie));
        match servers.rates.admit(now, Host::of(peer.ip()), is_validated, must_prove) {
            Admission::Start => {}
            Admission::AskForCookie => {
                let cookie = servers.cookies.make(negotiator, peer, id, now);
                local.counters.cookies_sent.add(1);
                output.send(peer, to, vec![retry(ports, id, &cookie)]);
                return false;
            }
            Admission::Drop => {
                local.counters.hellos_dropped.add(1);
                return false;
            }
        }
        if let Some(client) = self.clients.get_mut(&peer)
            && !client.is_complete
        {
            client.rest(now);
        }
        if !self.peers.has_room_for(peer, limits.peers) {
            local.counters.hellos_dropped.add(1);
            output.send(peer, to, vec![failed(ports, id, Failure::Overloaded)]);
            return false;
        }
        let Ok(negotiation) = negotiator.accept(peer, life) else {
            local.counters.count_failure(Failure::Internal);
            return false;
        };
        let flight = Flight::new(id, ports, negotiation);
        let server = ServerHandshake::new(flight, to, is_validated, now);
        servers.insert(key, server, limits.in_progress);
        true
    }

    /// Handles a client's FINISH.
    pub(super) fn server_finish(&mut self, now: Duration, key: Key, packet: &mut [u8]) {
        if let Some(CompleteHandshake { ready, from }) = self.servers.complete.get(&key) {
            self.output.send(key.0, *from, vec![ready.clone()]);
            return;
        }
        let Some(server) = self.servers.in_progress.get_mut(&key) else { return };
        match server.flight.handle_finish(packet) {
            Ok(true) => {
                // Only the receiver of our HELLO has the keys that opened it.
                server.validate();
                self.complete_server(now, key);
            }
            Ok(false) => {}
            Err(cause) => self.refuse_as_server(key, cause),
        }
    }

    /// Installs the keys of the server's handshake `key`, if it is complete, and sends READY.
    fn complete_server(&mut self, now: Duration, key: Key) {
        let Some(server) = self.servers.in_progress.get_mut(&key) else { return };
        let Some((keys, schedule)) = server.flight.take_application() else { return };
        let (peer, id) = key;
        let began = server.began;
        if self.peers.is_newer(peer, began) {
            // HANDSHAKE-4. The FINISH was late: the client uses the later keys as well.
            self.servers.in_progress.remove(&key);
            return;
        }
        let negotiation = &server.flight.negotiation;
        let is_resumed = negotiation.is_resumed();
        let life = PeerLife::OfClient(negotiation.peer_life());
        let proved = negotiation.identity().and_then(|it| Ok((it, negotiation.session()?)));
        let (from, tickets) = (server.from, std::mem::take(&mut server.flight.tickets));
        let (identity, session) = match proved {
            Ok(proved) => proved,
            Err(cause) => return self.refuse_as_server(key, cause),
        };
        self.servers.in_progress.remove(&key);
        self.local.counters.handshakes_as_server.add(1);
        self.local.counters.handshakes_resumed.add(u64::from(is_resumed));
        let (mut sealer, opener) = association(session, false, keys, schedule, now);
        if let Some(ready) = ready(self.local.ports_to(peer), id, &tickets, &mut sealer) {
            self.output.send(peer, from, vec![ready.clone()]);
            self.servers.complete.insert(key, CompleteHandshake { ready, from });
        }
        if self.clients.get(&peer).is_some_and(|client| !client.is_complete) {
            self.clients.remove(&peer);
        }
        self.establish((peer, began), identity, (sealer, opener), life);
    }

    /// Ends the server's handshake `key` and sends the client the cause.
    fn refuse_as_server(&mut self, key: Key, cause: Failure) {
        if let Some(server) = self.servers.fail(key) {
            self.output.send(key.0, server.from, vec![server.flight.failed(cause)]);
        }
        self.failures.fail_server(key.0, cause, FoundBy::Us);
    }
}

/// Returns the header of a READY packet for handshake `id`.
fn ready_header(ports: (u16, u16), id: u64) -> Vec<u8> {
    let mut packet = vec![0; HEADER_LEN];
    SealedHeader::emit(SealKind::Ready, ports, 0, id, &mut packet);
    packet
}

/// Returns the READY packet of handshake `id`, the first packet sealed with its keys.
fn ready(ports: (u16, u16), id: u64, tickets: &[u8], sealer: &mut Sealer) -> Option<Vec<u8>> {
    let mut packet = ready_header(ports, id);
    if tickets.len() <= MAX_PIECE {
        packet.extend(tickets);
    }
    let (head, body) = packet.split_at_mut(HEADER_LEN);
    let tag = sealer.seal(head, body).ok()?;
    packet.extend(tag);
    Some(packet)
}
