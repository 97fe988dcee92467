//! All handshakes and peers of one endpoint.
//!
//! Packets and timers enter here. `calling` drives the handshakes that this endpoint starts,
//! `answering` the handshakes that its peers start; both end in `establish` or in `failures`.

mod answering;
mod calling;
mod failures;
mod host;
mod limits;
mod local_end;
mod no_key;
mod output;
mod peers;
mod rates;
mod servers;

pub use limits::Limits;
pub use output::{Datagram, Established, SealEvent, ServerLife};

use super::client::ClientHandshake;
use super::cookie::Cookies;
use super::flight::Hello;
use super::refusals::Refusals;
use crate::association::{Opener, Sealer};
use crate::counters::SealCounters;
use crate::failure::{Failure, FoundBy, HandshakeError};
use crate::identity::Identity;
use crate::negotiation::{Life, Negotiator};
use apus_wire::{HEADER_LEN, SealKind, SealedHeader};
use failures::Failures;
use local_end::LocalEnd;
use output::Output;
use peers::{PeerLife, Peers};
use rates::{HandshakeRates, NoKeyTimes};
use servers::Servers;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// The handshakes of one endpoint with all its peers.
#[derive(Debug)]
pub struct Handshakes {
    local: LocalEnd,
    /// A random number of this life of the endpoint, and when the life began.
    life: u64,
    born: Duration,
    /// Handshakes that this endpoint starts, at most one per peer.
    clients: BTreeMap<SocketAddr, ClientHandshake>,
    servers: Servers,
    peers: Peers,
    failures: Failures,
    no_keys: NoKeyTimes,
    output: Output,
}

impl Handshakes {
    /// Creates the handshakes of the endpoint at `port`. `now` and all later times are durations
    /// since an origin that the caller chooses; they never decrease.
    #[must_use]
    pub fn new(negotiator: Arc<dyn Negotiator>, port: u16, limits: Limits, now: Duration) -> Self {
        let counters = Arc::<SealCounters>::default();
        let cookies = Cookies::new(&*negotiator, now);
        let mut life = [0; 8];
        negotiator.fill_random(&mut life);
        let life = u64::from_be_bytes(life);
        let Limits { unproven_per_second, proven_per_second, .. } = limits;
        let rates = HandshakeRates::new(unproven_per_second, proven_per_second, now);
        Self {
            clients: BTreeMap::new(),
            servers: Servers::new(cookies, rates),
            peers: Peers::new(now),
            life,
            born: now,
            failures: Failures::new(counters.clone(), limits.in_progress),
            no_keys: NoKeyTimes::default(),
            output: Output::default(),
            local: LocalEnd { negotiator, port, limits, counters },
        }
    }

    /// Returns the counters.
    #[must_use]
    pub const fn counters(&self) -> &Arc<SealCounters> {
        &self.local.counters
    }

    /// Returns the number of peers with keys.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.peers.len()
    }

    /// Returns the number of handshakes in progress.
    #[must_use]
    pub fn in_progress(&self) -> usize {
        self.clients.len() + self.servers.in_progress.len()
    }

    /// Returns the identity that the peer proved in the handshake that led to `session`, or `None`
    /// if that is neither its present nor its previous session.
    #[must_use]
    pub fn identity(&self, peer: SocketAddr, session: u64) -> Option<Arc<Identity>> {
        self.peers.identity(peer, session)
    }

    /// Returns the identities of all peers with keys.
    pub fn identities(&self) -> impl Iterator<Item = (SocketAddr, &Arc<Identity>)> {
        self.peers.identities()
    }

    /// Returns why the last handshake with `peer` failed, if that was within about two seconds.
    #[must_use]
    pub fn failure(&self, peer: SocketAddr) -> Option<HandshakeError> {
        self.failures.latest(peer)
    }

    /// Returns the handshakes that failed at this end as server since the last call, for a log.
    pub fn take_refusals(&mut self) -> Vec<Refusals> {
        self.failures.take_refusals()
    }

    /// Starts a handshake with `peer`, from the local address `from`, unless one is in progress.
    ///
    /// # Errors
    ///
    /// A handshake with `peer` failed within the last second.
    pub fn want(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        from: Option<IpAddr>,
    ) -> Result<(), HandshakeError> {
        self.start_client(now, Duration::ZERO, peer, from)
    }

    /// Handles a packet of a handshake from `peer`, sent to the local address `to`. Ignores packets
    /// of other kinds.
    pub fn handle(
        &mut self,
        now: Duration,
        peer: SocketAddr,
        to: Option<IpAddr>,
        packet: &mut [u8],
    ) {
        let Some(header) = SealedHeader::parse(packet) else { return };
        let id = header.id;
        let client = self.clients.get_mut(&peer).filter(|client| client.flight.id == id);
        match header.kind {
            Some(SealKind::Hello) => {
                let len = packet.len();
                let Some(hello) = Hello::parse(packet) else { return };
                if client.is_some() {
                    self.client_reads(now, peer, |flight| flight.handle_hello(&hello));
                } else {
                    self.server_hello(now, (peer, id), to, len, &hello);
                }
            }
            Some(SealKind::Finish) => {
                if client.is_some() {
                    self.client_reads(now, peer, |flight| flight.handle_finish(packet));
                } else {
                    self.server_finish(now, (peer, id), packet);
                }
            }
            Some(SealKind::Retry) => {
                if let Some(client) = client
                    && !client.is_resting(now)
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

    /// Handles the content of a READY packet opened with the present keys of `peer`: either the
    /// handshake is complete at both ends, or the peer proves that it has these keys, and this end
    /// needs no others (HANDSHAKE-5).
    pub fn handle_ready(&mut self, peer: SocketAddr, id: u64, content: &[u8]) {
        let Some(client) = self.clients.get_mut(&peer) else { return };
        if client.is_complete {
            if client.flight.id != id {
                return;
            }
            if !content.is_empty() {
                // A damaged ticket costs a full handshake later.
                let _ = client.flight.negotiation.read(content);
            }
        }
        self.clients.remove(&peer);
    }

    /// Returns whether the present keys of `peer` are so new that packets of the previous
    /// association may still be in flight. Packets of it that arrive later show that the two ends
    /// disagree about the present keys (SEAL-16).
    #[must_use]
    pub fn is_new(&self, now: Duration, peer: SocketAddr) -> bool {
        self.peers.is_new(now, peer)
    }

    /// Removes the keys of `peer`: it used a session that the protocol no longer has. The peer
    /// learns that from a NO_KEY, and its next handshake leads to a new session (AMO-3).
    pub fn forget(&mut self, peer: SocketAddr) {
        self.peers.forget(peer, &mut self.output);
    }

    /// Sends packets that are due, and drops handshakes, failures and idle peers whose time is
    /// over.
    pub fn handle_timeout(&mut self, now: Duration) {
        self.send_due(now);
        for _ in 0..self.servers.expire(now) {
            self.local.counters.count_failure(Failure::Timeout);
        }
        self.failures.expire(now);
        if self.peers.sweep(now, &mut self.output) {
            self.recheck();
        }
    }

    /// Returns when [`Handshakes::handle_timeout`] is due.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Duration> {
        let attempts = self.clients.values().map(|client| client.due);
        attempts.chain(self.servers.next_end()).chain(self.peers.next_sweep()).min()
    }

    /// Returns the next packet to send.
    pub fn poll_transmit(&mut self) -> Option<Datagram> {
        self.output.packets.pop_front()
    }

    /// Returns the next change of a peer's keys.
    pub fn poll_event(&mut self) -> Option<SealEvent> {
        self.output.events.pop_front()
    }

    /// Replaces the local identity and the trust. Peers that these do not admit lose their keys.
    /// Returns the number of removed peers.
    pub fn replace_negotiator(&mut self, negotiator: Arc<dyn Negotiator>) -> usize {
        self.local.negotiator = negotiator;
        self.recheck()
    }

    /// Removes the peers that are no longer admitted, for example because their certificates
    /// expired. Returns the number of removed peers.
    pub fn recheck(&mut self) -> usize {
        let Self { peers, local, output, .. } = self;
        peers.recheck(&*local.negotiator, &local.counters, output)
    }

    /// Returns the present life of the endpoint.
    fn life(&self, now: Duration) -> Life {
        Life { id: self.life, age: now.saturating_sub(self.born) }
    }

    /// Installs the keys of a handshake that started at this end at `began`.
    fn establish(
        &mut self,
        (peer, began): (SocketAddr, Duration),
        identity: Identity,
        keys: (Sealer, Opener),
        life: PeerLife,
    ) {
        let (sealer, opener) = keys;
        let established = Established { peer, sealer, opener, server_life: None };
        self.peers.establish(began, life, identity, established, &mut self.output);
        self.failures.clear(peer);
    }

    /// Handles a FAILED packet: the peer ended handshake `id`.
    fn handle_failed(&mut self, now: Duration, peer: SocketAddr, id: u64, code: u32) {
        let cause = Failure::from_code(u8::try_from(code).unwrap_or(0));
        if self.servers.fail((peer, id)).is_some() {
            self.failures.fail_server(peer, cause, FoundBy::Peer);
        }
        if self.clients.get(&peer).is_some_and(|client| client.flight.id == id)
            && let Some(client) = self.clients.remove(&peer)
        {
            if client.is_complete {
                self.forget(peer);
            }
            self.failures.fail_client(now, peer, cause, FoundBy::Peer);
        }
    }
}
