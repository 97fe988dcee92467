//! Handshakes that other endpoints begin: who may begin one under load, what is answered, and the keys in the end.

use super::{Answered, Datagram, Handshakes, Key, SealEvent, send};
use crate::association::{Sealer, association};
use crate::cipher::TAG_LEN;
use crate::failure::{Failure, FoundBy, HandshakeError};
use crate::handshake::flight::{Flight, Hello, PADDED, failed, retry};
use crate::handshake::server::ServerHandshake;
use crate::handshake::stream::MAX_PIECE;
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use std::net::IpAddr;

impl Handshakes {
    /// Handles a client's HELLO of `len` bytes.
    pub(super) fn server_hello(
        &mut self,
        now: u64,
        key: Key,
        to: Option<IpAddr>,
        len: usize,
        hello: &Hello<'_>,
    ) {
        // A client pads its HELLO; a server's would be answered without end by an end that does not know the handshake (SEAL-9).
        if len < PADDED || self.answered.contains_key(&key) {
            return;
        }
        let shown = self.show_keys(key, to);
        // HANDSHAKE-3
        if self.clients.get(&key.0).is_some_and(|client| client.goes_on(now, key.1)) {
            return;
        }
        if !self.servers.contains_key(&key) && !self.begin_server(now, key, to, hello) {
            return;
        }
        let Some(server) = self.servers.get_mut(&key) else { return };
        server.receive(len);
        server.spend(shown);
        match server.flight.handle_hello(hello) {
            Ok(_) => {
                let packets = server.answer();
                send(&mut self.outbox, key.0, to, packets);
            }
            Err(cause) => self.refuse_as_server(key, cause),
        }
    }

    /// Has a READY sealed with the present keys of the client of handshake `key`, if there are some (HANDSHAKE-5). Returns its bytes.
    fn show_keys(&mut self, key: Key, from: Option<IpAddr>) -> usize {
        let (to, id) = key;
        let Some(known) = self.peers.get(&to) else { return 0 };
        let packet = ready_header((self.port, to.port()), id);
        let bytes = packet.len() + TAG_LEN;
        let ready = Datagram { to, from, packet };
        self.events.push_back(SealEvent::Known { ready, session: known.session });
        bytes
    }

    /// Makes room for a handshake that a client begins. Returns whether it may go on.
    fn begin_server(&mut self, now: u64, key: Key, to: Option<IpAddr>, hello: &Hello<'_>) -> bool {
        let (peer, id) = key;
        let ports = (self.port, peer.port());
        let under_load = self.servers.len() >= self.limits.cookies_from;
        let negotiator = self.negotiator.clone();
        let mut is_validated = false;
        if let Some(cookie) = hello.cookie {
            is_validated = self.cookies.check(&*negotiator, peer, id, now, cookie);
        }
        if under_load && !is_validated {
            let cookie = self.cookies.make(&*negotiator, peer, id, now);
            self.counters.cookies_sent.add(1);
            send(&mut self.outbox, peer, to, vec![retry(ports, id, &cookie)]);
            return false;
        }
        if let Some(client) = self.clients.get_mut(&peer)
            && !client.is_complete
        {
            client.wait_for_other(now);
        }
        if !self.peers.contains_key(&peer) {
            if self.peers.len() >= self.limits.peers {
                self.counters.hellos_dropped.add(1);
                send(&mut self.outbox, peer, to, vec![failed(ports, id, Failure::Overloaded)]);
                return false;
            }
            if !self.take_token(now) {
                self.counters.hellos_dropped.add(1);
                return false;
            }
        }
        let Ok(negotiation) = negotiator.accept(peer) else {
            self.counters.count_failure(Failure::Internal);
            return false;
        };
        while self.servers.len() >= self.limits.in_progress
            && let Some((_, oldest)) = self.ends.pop_front()
        {
            self.answered.remove(&oldest);
            self.servers.remove(&oldest);
        }
        let flight = Flight::new(id, ports, negotiation);
        let server = ServerHandshake::new(flight, to, is_validated, now);
        self.ends.push_back((server.ends, key));
        self.servers.insert(key, server);
        true
    }

    fn take_token(&mut self, now: u64) -> bool {
        const TOKEN: u64 = 1_000_000_000;
        let rate = self.limits.unknown_per_second;
        let gained = now.saturating_sub(self.filled).saturating_mul(rate);
        self.tokens = self.tokens.saturating_add(gained).min(rate.saturating_mul(TOKEN));
        self.filled = now;
        let has_one = self.tokens >= TOKEN;
        self.tokens -= if has_one { TOKEN } else { 0 };
        has_one
    }

    /// Handles a client's FINISH.
    pub(super) fn server_finish(&mut self, now: u64, key: Key, packet: &mut [u8]) {
        if let Some(Answered { ready, from }) = self.answered.get(&key) {
            send(&mut self.outbox, key.0, *from, vec![ready.clone()]);
            return;
        }
        let Some(server) = self.servers.get_mut(&key) else { return };
        match server.flight.handle_finish(packet) {
            Ok(true) => {
                // It is sealed with keys that only the receiver of our HELLO has.
                server.validate();
                self.complete_server(now, key);
            }
            Ok(false) => {}
            Err(cause) => self.refuse_as_server(key, cause),
        }
    }

    /// Uses the keys of the server's handshake `key`, if it is complete, and tells the client.
    fn complete_server(&mut self, now: u64, key: Key) {
        let Some(server) = self.servers.get_mut(&key) else { return };
        let Some((keys, schedule)) = server.flight.take_application() else { return };
        let (peer, id) = key;
        let began = server.began;
        if self.peers.get(&peer).is_some_and(|known| known.began > began) {
            // HANDSHAKE-4. Its FINISH has come late: the client uses the later keys, too.
            self.servers.remove(&key);
            return;
        }
        let negotiation = &server.flight.negotiation;
        let is_resumed = negotiation.is_resumed();
        let shown = negotiation.identity().and_then(|it| Ok((it, negotiation.session()?)));
        let (from, tickets) = (server.from, std::mem::take(&mut server.flight.tickets));
        let (identity, session) = match shown {
            Ok(shown) => shown,
            Err(cause) => return self.refuse_as_server(key, cause),
        };
        self.servers.remove(&key);
        self.counters.handshakes_as_server.add(1);
        self.counters.handshakes_resumed.add(u64::from(is_resumed));
        let (mut sealer, opener) = association(session, false, keys, schedule, now);
        if let Some(ready) = ready((self.port, peer.port()), id, &tickets, &mut sealer) {
            send(&mut self.outbox, peer, from, vec![ready.clone()]);
            self.answered.insert(key, Answered { ready, from });
        }
        if self.clients.get(&peer).is_some_and(|client| !client.is_complete) {
            self.clients.remove(&peer);
        }
        self.establish((peer, began), identity, sealer, opener);
    }

    /// The client of handshake `key` is refused, and learns why.
    fn refuse_as_server(&mut self, key: Key, cause: Failure) {
        if let Some(server) = self.servers.remove(&key) {
            send(&mut self.outbox, key.0, server.from, vec![server.flight.failed(cause)]);
        }
        // What this end would send to it is not held up: its address may be forged.
        self.counters.count_failure(cause);
        self.refusals.add(HandshakeError { cause, found_by: FoundBy::Us }, key.0);
    }
}

/// Returns the header of a READY packet for handshake `id`.
fn ready_header(ports: (u16, u16), id: u64) -> Vec<u8> {
    let mut packet = vec![0; HEADER_LEN];
    SealedHeader::emit(SealKind::Ready, ports, 0, id, &mut packet);
    packet
}

/// Returns the READY packet of handshake `id`: the first that is sealed with its keys.
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
