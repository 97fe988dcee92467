//! All handshakes and peers of one endpoint.
//!
//! `calling` has the handshakes that this endpoint begins, `answering` those that it answers. Both end in
//! `Handshakes::establish`, or in a failure that this file keeps.

mod answering;
mod calling;

use super::client::{ANSWERED_WAIT, ClientHandshake, REPEATED_WAIT};
use super::cookie::Cookies;
use super::flight::{Flight, Hello};
use super::refusals::{RefusalList, Refusals};
use super::server::ServerHandshake;
use crate::association::{Opener, Phases, Sealer};
use crate::counters::SealCounters;
use crate::failure::{Failure, FoundBy, HandshakeError};
use crate::identity::Identity;
use crate::negotiation::Negotiator;
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Time for which no new handshake with a peer is begun after one has failed, in nanoseconds.
const HOLD_AFTER_FAILURE: u64 = 1_000_000_000;

/// Time from a NO_KEY that is believed to the HELLO, in nanoseconds: what shows that both have the keys arrives meanwhile (SEAL-17).
const DOUBT_WAIT: u64 = 1_000_000;

/// Least time between two NO_KEY packets to one address, and between two that are believed, in nanoseconds.
const NO_KEY_INTERVAL: u64 = 100_000_000;

/// Time from the beginning of a handshake for which packets of the association before may be on their way, in nanoseconds (SEAL-16).
const LATE: u64 = 200_000_000;

/// A peer of which nothing was opened for one to two of these, in nanoseconds, is forgotten: half an hour.
const SWEEP: u64 = 1_800_000_000_000;

/// Bounds of what handshakes may take (HANDSHAKE-2).
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Handshakes in progress, as client and as server each. Beyond that, the server forgets the oldest.
    pub in_progress: usize,
    /// Handshakes in progress as server from which on a client must show a cookie.
    pub cookies_from: usize,
    /// Peers with keys.
    pub peers: usize,
    /// Handshakes with unknown peers that the server begins in a second: 400 take a tenth of a core.
    pub unknown_per_second: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { in_progress: 1_024, cookies_from: 256, peers: 65_536, unknown_per_second: 400 }
    }
}

/// A packet of a handshake, to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Destination.
    pub to: SocketAddr,
    /// Local address to send from; `None` lets the system choose.
    pub from: Option<IpAddr>,
    /// The packet, from its header on.
    pub packet: Vec<u8>,
}

/// Keys with a peer, after a complete handshake. They replace those that there were.
#[derive(Debug)]
pub struct Established {
    /// The peer.
    pub peer: SocketAddr,
    /// Seals what is sent to it.
    pub sealer: Sealer,
    /// Opens what it sends.
    pub opener: Opener,
}

/// What has become of a peer.
#[derive(Debug)]
pub enum SealEvent {
    /// There are new keys.
    Established(Box<Established>),
    /// The peer's keys of this session must not be used any more.
    Removed {
        /// The peer.
        peer: SocketAddr,
        /// The session of the keys.
        session: u64,
    },
    /// A READY packet, to be sealed with the keys of the peer's present session, and sent before the datagrams of
    /// [`Handshakes::poll_transmit`]: the peer begins a handshake although this end has keys.
    Known {
        /// The packet, without its tag.
        ready: Datagram,
        /// The session of the keys.
        session: u64,
    },
}

/// A peer with keys.
#[derive(Debug)]
struct Peer {
    session: u64,
    identity: Arc<Identity>,
    phases: Arc<Phases>,
    /// When the handshake that led to the keys began at this end.
    began: u64,
    /// The session before this one, whose requests may still be with the application.
    before: Option<(u64, Arc<Identity>)>,
    /// Whether nothing was opened before the last sweep.
    is_idle: bool,
    /// When a NO_KEY of it was believed last.
    asked: Option<u64>,
}

/// A complete handshake of the server, kept for repeated FINISH packets.
#[derive(Debug)]
struct Answered {
    ready: Vec<u8>,
    from: Option<IpAddr>,
}

type Key = (SocketAddr, u64);

/// The handshakes of one endpoint with all its peers.
#[derive(Debug)]
pub struct Handshakes {
    negotiator: Arc<dyn Negotiator>,
    port: u16,
    limits: Limits,
    counters: Arc<SealCounters>,
    clients: BTreeMap<SocketAddr, ClientHandshake>,
    servers: BTreeMap<Key, ServerHandshake>,
    answered: BTreeMap<Key, Answered>,
    /// When entries of `servers` and `answered` end, the first one first.
    ends: VecDeque<(u64, Key)>,
    peers: BTreeMap<SocketAddr, Peer>,
    failed: BTreeMap<SocketAddr, (HandshakeError, u64)>,
    refusals: RefusalList,
    /// When a NO_KEY was sent to an address last.
    no_keys: BTreeMap<SocketAddr, u64>,
    cookies: Cookies,
    /// Handshakes with unknown peers that may begin now, in billionths.
    tokens: u64,
    filled: u64,
    swept: u64,
    outbox: VecDeque<Datagram>,
    events: VecDeque<SealEvent>,
}

impl Handshakes {
    /// Returns the handshakes of the endpoint at `port`, at `now` in nanoseconds of any clock that does not go back.
    #[must_use]
    pub fn new(negotiator: Arc<dyn Negotiator>, port: u16, limits: Limits, now: u64) -> Self {
        Self {
            cookies: Cookies::new(&*negotiator, now),
            negotiator,
            port,
            limits,
            counters: Arc::default(),
            clients: BTreeMap::new(),
            servers: BTreeMap::new(),
            answered: BTreeMap::new(),
            ends: VecDeque::new(),
            peers: BTreeMap::new(),
            failed: BTreeMap::new(),
            refusals: RefusalList::default(),
            no_keys: BTreeMap::new(),
            tokens: limits.unknown_per_second.saturating_mul(1_000_000_000),
            filled: now,
            swept: now,
            outbox: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Arc<SealCounters> {
        &self.counters
    }

    /// Returns the number of peers with keys.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Returns the number of handshakes in progress.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.clients.len() + self.servers.len()
    }

    /// Returns the identity that the peer has shown in the handshake that led to `session`; `None` if it is not the present one or
    /// the one before.
    #[must_use]
    pub fn identity(&self, peer: SocketAddr, session: u64) -> Option<Arc<Identity>> {
        let peer = self.peers.get(&peer)?;
        if peer.session == session {
            return Some(peer.identity.clone());
        }
        let (_, identity) = peer.before.as_ref().filter(|(before, _)| *before == session)?;
        Some(identity.clone())
    }

    /// Returns the identities of all peers with keys.
    pub fn identities(&self) -> impl Iterator<Item = (SocketAddr, &Arc<Identity>)> {
        self.peers.iter().map(|(address, peer)| (*address, &peer.identity))
    }

    /// Begins a handshake with `peer`, which the caller wants to send to from the local address `from`, unless one is in progress.
    ///
    /// # Errors
    ///
    /// One has failed within the last second.
    pub fn want(
        &mut self,
        now: u64,
        peer: SocketAddr,
        from: Option<IpAddr>,
    ) -> Result<(), HandshakeError> {
        self.begin(now, 0, peer, from)
    }

    /// Begins a handshake with `peer`, whose first packet is sent after `wait`.
    fn begin(
        &mut self,
        now: u64,
        wait: u64,
        peer: SocketAddr,
        from: Option<IpAddr>,
    ) -> Result<(), HandshakeError> {
        if self.clients.contains_key(&peer) || self.clients.len() >= self.limits.in_progress {
            return Ok(());
        }
        if let Some((error, until)) = self.failed.get(&peer)
            && *until > now
        {
            return Err(*error);
        }
        let mut id = [0; 8];
        self.negotiator.fill_random(&mut id);
        // As RPC ids: even, so that the type of its sender shows.
        let id = u64::from_be_bytes(id) & !1;
        match self.negotiator.connect(peer) {
            Ok(negotiation) => {
                let mut flight = Flight::new(id, (self.port, peer.port()), negotiation);
                flight.write();
                self.counters.handshakes_begun.add(1);
                let mut client = ClientHandshake::new(flight, from, now);
                if let Some(known) = self.peers.get(&peer) {
                    // HANDSHAKE-5
                    known.phases.take_heard();
                }
                client.wait_until(now + wait);
                let of_peer = self.servers.range((peer, 0)..=(peer, u64::MAX));
                if let Some(began) = of_peer.map(|(_, server)| server.began).max() {
                    // HANDSHAKE-3
                    client.wait_until(began + REPEATED_WAIT + ANSWERED_WAIT);
                }
                self.clients.insert(peer, client);
                self.send_due(now);
                Ok(())
            }
            Err(cause) => Err(self.fail(now, peer, cause, FoundBy::Us)),
        }
    }

    /// Handles a packet of a handshake from `peer`, sent to the local address `to`. Other packets are ignored.
    pub fn handle(&mut self, now: u64, peer: SocketAddr, to: Option<IpAddr>, packet: &mut [u8]) {
        let Some(header) = SealedHeader::parse(packet) else { return };
        let id = header.id;
        match header.kind {
            Some(SealKind::Hello) => {
                let len = packet.len();
                let Some(hello) = Hello::parse(packet) else { return };
                if self.clients.get(&peer).is_some_and(|client| client.flight.id == id) {
                    self.client_reads(now, peer, |flight| flight.handle_hello(&hello));
                } else {
                    self.server_hello(now, (peer, id), to, len, &hello);
                }
            }
            Some(SealKind::Finish) => {
                if self.clients.get(&peer).is_some_and(|client| client.flight.id == id) {
                    self.client_reads(now, peer, |flight| flight.handle_finish(packet));
                } else {
                    self.server_finish(now, (peer, id), packet);
                }
            }
            Some(SealKind::Retry) => {
                if let Some(client) = self.clients.get_mut(&peer)
                    && client.flight.id == id
                    && !client.rests(now)
                    && client.take_cookie(&packet[HEADER_LEN..], now)
                {
                    self.send_due(now);
                }
            }
            Some(SealKind::Failed) => self.handle_failed(now, peer, id, header.sequence),
            Some(SealKind::NoKey) => self.handle_no_key(now, peer, to, header.number),
            Some(SealKind::Ready) | None => {}
        }
    }

    /// Handles the content of a READY packet that was opened with the present keys of `peer`: the handshake is complete at both
    /// ends, or the peer shows that it has these keys, so that this end needs no others (HANDSHAKE-5).
    pub fn handle_ready(&mut self, peer: SocketAddr, id: u64, content: &[u8]) {
        let Some(client) = self.clients.get_mut(&peer) else { return };
        if client.is_complete {
            if client.flight.id != id {
                return;
            }
            if !content.is_empty() {
                // A ticket that is damaged costs a full handshake later.
                let _ = client.flight.negotiation.read(content);
            }
        }
        self.clients.remove(&peer);
    }

    /// A sealed packet has come from an address without keys, or with keys that do not open it: asks its sender for a new
    /// handshake (SEAL-13).
    pub fn without_key(&mut self, now: u64, peer: SocketAddr, to: Option<IpAddr>, packet: &[u8]) {
        let Some(header) = SealedHeader::parse(packet) else { return };
        // A handshake that the peer seems to have begun is no reason to be silent: its HELLO may be another's, or an old one. A peer that
        // is in one does not believe NO_KEY. Nor is one of this end whose keys are in use here, and are not those of the packet.
        let is_busy = self.clients.get(&peer).is_some_and(|client| !client.is_complete);
        let is_recent = |at: &u64| now.saturating_sub(*at) < NO_KEY_INTERVAL;
        if is_busy || self.no_keys.get(&peer).is_some_and(is_recent) {
            return;
        }
        if self.no_keys.len() >= self.limits.in_progress {
            self.no_keys.retain(|_, at| is_recent(at));
            if self.no_keys.len() >= self.limits.in_progress {
                return;
            }
        }
        self.no_keys.insert(peer, now);
        self.send_no_key(peer, to, header.number, header.id);
    }

    /// Returns whether the present keys of `peer` are so new that packets of the association before may still be on their way. Those that come
    /// later show that the two ends disagree about which keys are the present ones (SEAL-16).
    #[must_use]
    pub fn is_new(&self, now: u64, peer: SocketAddr) -> bool {
        self.peers.get(&peer).is_some_and(|known| now.saturating_sub(known.began) < LATE)
    }

    /// The protocol does not know the session of `peer` any more, which has sent something in it: the keys end, and the peer
    /// is asked for a new handshake, whose session is a new one (AMO-3).
    pub fn forget(&mut self, peer: SocketAddr) {
        if let Some(known) = self.peers.remove(&peer) {
            self.events.push_back(SealEvent::Removed { peer, session: known.session });
        }
    }

    /// Does what is due at `now`.
    pub fn handle_timeout(&mut self, now: u64) {
        self.send_due(now);
        while let Some((ends, key)) = self.ends.front().copied()
            && ends <= now
        {
            self.ends.pop_front();
            self.answered.remove(&key);
            if self.servers.remove(&key).is_some() {
                self.counters.count_failure(Failure::Timeout);
            }
        }
        self.failed.retain(|_, (_, until)| *until + HOLD_AFTER_FAILURE > now);
        if now.saturating_sub(self.swept) >= SWEEP {
            self.sweep(now);
        }
    }

    /// Returns when [`Handshakes::handle_timeout`] is due, in nanoseconds.
    #[must_use]
    pub fn next_timeout(&self) -> Option<u64> {
        let attempts = self.clients.values().map(|client| client.due);
        let ends = self.ends.front().map(|(ends, _)| *ends);
        let sweep = (!self.peers.is_empty()).then_some(self.swept + SWEEP);
        attempts.chain(ends).chain(sweep).min()
    }

    /// Returns the next packet to be sent.
    pub fn poll_transmit(&mut self) -> Option<Datagram> {
        self.outbox.pop_front()
    }

    /// Returns what has become of a peer next.
    pub fn poll_event(&mut self) -> Option<SealEvent> {
        self.events.pop_front()
    }

    /// Uses another identity and trust from now on. Peers that are not admitted by it lose their keys; the others keep
    /// them. Returns the number of those that were removed.
    pub fn replace_negotiator(&mut self, negotiator: Arc<dyn Negotiator>) -> usize {
        self.negotiator = negotiator;
        self.recheck()
    }

    /// Removes the peers that are not admitted any more, for example because their certificates have expired. Returns their number.
    pub fn recheck(&mut self) -> usize {
        let Self { peers, negotiator, events, counters, .. } = self;
        let before = peers.len();
        peers.retain(|address, peer| match negotiator.recheck(&peer.identity, *address) {
            Ok(()) => true,
            Err(_) => {
                events.push_back(SealEvent::Removed { peer: *address, session: peer.session });
                counters.peers_revoked.add(1);
                false
            }
        });
        before - peers.len()
    }

    /// Uses the keys of a handshake that began at this end at the time `began`.
    fn establish(
        &mut self,
        (peer, began): (SocketAddr, u64),
        identity: Identity,
        sealer: Sealer,
        opener: Opener,
    ) {
        let entry = Peer {
            session: sealer.session(),
            identity: Arc::new(identity),
            phases: sealer.phases().clone(),
            began,
            before: self.peers.remove(&peer).map(|known| (known.session, known.identity)),
            is_idle: false,
            asked: None,
        };
        self.peers.insert(peer, entry);
        self.failed.remove(&peer);
        let established = Established { peer, sealer, opener };
        self.events.push_back(SealEvent::Established(Box::new(established)));
    }

    /// The peer says that a handshake has failed at its end.
    fn handle_failed(&mut self, now: u64, peer: SocketAddr, id: u64, code: u32) {
        let cause = Failure::from_code(u8::try_from(code).unwrap_or(0));
        if self.servers.remove(&(peer, id)).is_some() {
            self.counters.count_failure(cause);
            self.refusals.add(HandshakeError { cause, found_by: FoundBy::Peer }, peer);
        }
        if self.clients.get(&peer).is_some_and(|client| client.flight.id == id)
            && let Some(client) = self.clients.remove(&peer)
        {
            if client.is_complete {
                self.forget(peer);
            }
            self.fail(now, peer, cause, FoundBy::Peer);
        }
    }

    /// The peer has no key for a packet with this number. That may be forged: it ends nothing, and is a reason to ask (SEAL-13).
    fn handle_no_key(&mut self, now: u64, peer: SocketAddr, to: Option<IpAddr>, number: u64) {
        let Some(known) = self.peers.get_mut(&peer) else { return };
        let is_recent = |at: u64| now.saturating_sub(at) < 10 * NO_KEY_INTERVAL;
        if !known.phases.may_have_sealed(number) || known.asked.is_some_and(is_recent) {
            return;
        }
        if self.clients.get(&peer).is_some_and(|client| !client.is_overdue()) {
            return;
        }
        known.asked = Some(now);
        self.clients.remove(&peer);
        self.counters.no_keys_believed.add(1);
        let _ = self.begin(now, DOUBT_WAIT, peer, to);
    }

    fn send_no_key(&mut self, peer: SocketAddr, to: Option<IpAddr>, number: u64, id: u64) {
        let mut packet = vec![0; HEADER_LEN];
        SealedHeader::emit(SealKind::NoKey, (self.port, peer.port()), 0, id ^ 1, &mut packet);
        SealedHeader::seal(&mut packet, number, false);
        self.counters.no_keys_sent.add(1);
        send(&mut self.outbox, peer, to, vec![packet]);
    }

    fn fail(
        &mut self,
        now: u64,
        peer: SocketAddr,
        cause: Failure,
        found_by: FoundBy,
    ) -> HandshakeError {
        self.counters.count_failure(cause);
        let error = HandshakeError { cause, found_by };
        if self.failed.len() < self.limits.in_progress {
            self.failed.insert(peer, (error, now + HOLD_AFTER_FAILURE));
        }
        error
    }

    /// Takes the handshakes as server that have failed since the last call, for a log.
    pub fn take_refusals(&mut self) -> Vec<Refusals> {
        self.refusals.take()
    }

    /// Returns why the last handshake with `peer` has failed, if that was within the last two seconds or so.
    #[must_use]
    pub fn failure(&self, peer: SocketAddr) -> Option<HandshakeError> {
        self.failed.get(&peer).map(|(error, _)| *error)
    }

    fn sweep(&mut self, now: u64) {
        self.swept = now;
        let Self { peers, events, .. } = self;
        peers.retain(|address, peer| {
            let was_idle = std::mem::replace(&mut peer.is_idle, !peer.phases.take_used());
            let keeps = !(was_idle && peer.is_idle);
            if !keeps {
                events.push_back(SealEvent::Removed { peer: *address, session: peer.session });
            }
            keeps
        });
        self.recheck();
    }
}

fn send(
    outbox: &mut VecDeque<Datagram>,
    to: SocketAddr,
    from: Option<IpAddr>,
    packets: Vec<Vec<u8>>,
) {
    outbox.extend(packets.into_iter().map(|packet| Datagram { to, from, packet }));
}
