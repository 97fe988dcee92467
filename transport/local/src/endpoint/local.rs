//! All pairs of an endpoint, its listener, and one descriptor that covers all of them.
//!
//! [`Local`] does not run a loop: the endpoint's loop calls [`Local::poll_sockets`] and
//! [`Local::receive`].

use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use super::doorbell::Doorbell;
use super::newcomers::Newcomers;
use super::poll_set::{Arrivals, PollEvent, PollSet};
use super::registry::{AddError, Found, Presence, Registry, Reservation, Snapshot};
use crate::config::LocalConfig;
use crate::error::{ConnectError, Rejection};
use crate::handshake::{Accepting, Connecting, Listener};
use crate::lock::{Lock, Rank};
use crate::pair::side::{Pair, ReceiveQuota};
use crate::socket::peer_name::PeerName;
use apus_process::Owned;
use apus_wire::Role;
use smallvec::SmallVec;

/// Maximum number of clients accepted in one poll. Chosen by us: 0.5 ms without service to the
/// pairs.
const MAX_ACCEPTS: usize = 64;
/// Maximum number of clients rejected for their user in one poll. Chosen by us: connecting costs
/// them less than rejecting them costs this side, 10 µs.
const MAX_REJECTIONS: usize = 8;

/// Keys in the doorbell. Pairs have their numbers, pending clients numbers with the highest bit
/// set, and pending servers numbers with the bit below.
const LISTENER: u64 = 0;
const PENDING_CLIENT: u64 = 1 << 63;
const PENDING_SERVER: u64 = 1 << 62;
/// Descriptors of the application that are watched together with the pairs ([`Local::watch`]), with
/// their numbers.
const COMPANION: u64 = 1 << 61;

/// Key of a pair.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// The server with this name.
    Server(PeerName),
    /// A client, by the number of its pair.
    Client(u64),
}

/// The shared-memory side of an endpoint: all of its pairs with other processes of the host.
#[derive(Debug)]
pub struct Local {
    config: LocalConfig,
    listener: Option<Listener>,
    doorbell: Doorbell,
    registry: Owned<Registry<Key, Pair>>,
    handshakes: Owned<Lock<Handshakes>>,
}

/// Handshakes that are not complete.
struct Handshakes {
    /// Clients that have not sent their hello.
    clients: Newcomers<Accepting>,
    /// Servers that have not replied.
    servers: Vec<(u64, ConnectAttempt)>,
    /// Number of the next handshake of either kind.
    next: u64,
}

/// Result of [`Local::poll_sockets`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PollOutcome {
    /// Number of ready descriptors, including companions.
    pub ready: usize,
    /// Ready companions: bit `n` stands for companion `n`.
    pub companions: u64,
}

/// State of a server, as seen by this endpoint.
#[derive(Debug)]
#[non_exhaustive]
pub enum PeerState {
    /// There is a pair.
    Pair(Arc<Pair>),
    /// A handshake is in progress.
    Connecting,
    /// There is no pair: none was requested, the server rejected it, or it has ended.
    Unknown,
}

/// A handshake with a server that has not replied yet.
#[derive(Debug)]
#[must_use = "advance the handshake when its descriptor is readable"]
pub struct ConnectAttempt {
    connecting: Connecting,
    reservation: Reservation<Key>,
}

/// Result of looking up a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum Lookup {
    /// There is a pair.
    Pair(Arc<Pair>),
    /// A handshake has started. [`Local::advance`] continues it.
    Started(ConnectAttempt),
    /// Another thread connects to this server.
    Connecting,
}

impl Local {
    /// Opens the shared-memory side of an endpoint, which accepts clients under `name` if there is
    /// one.
    ///
    /// # Errors
    ///
    /// [`ConnectError::System`] if the name is in use, or no descriptors are left.
    pub fn new(name: Option<&PeerName>, config: LocalConfig) -> Result<Self, ConnectError> {
        let doorbell = Doorbell::new().map_err(ConnectError::system("create an epoll set"))?;
        let listener = name.map(|name| Listener::bind(name, &config)).transpose()?;
        if let Some(listener) = &listener {
            doorbell.add(listener, LISTENER).map_err(ConnectError::system("watch a listener"))?;
        }
        let handshakes = Handshakes { clients: Newcomers::new(), servers: Vec::new(), next: 0 };
        let registry = Owned::new(Registry::new(config.max_pairs));
        let handshakes = Owned::new(Lock::new(Rank::Handshakes, handshakes));
        Ok(Self { config, listener, doorbell, registry, handshakes })
    }

    /// Returns the pair with the server under `name`, or starts a handshake if there is none.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if no process listens there, if the policy excludes the process, or if this
    /// endpoint has no room.
    pub fn find(&self, name: &PeerName) -> Result<Lookup, ConnectError> {
        self.find_with(name, None)
    }

    fn find_with(&self, name: &PeerName, udp: Option<SocketAddr>) -> Result<Lookup, ConnectError> {
        let reservation = match self.registry.find_or_reserve(&Key::Server(name.clone())) {
            Found::Pair(pair) => return Ok(Lookup::Pair(pair)),
            Found::Connecting => return Ok(Lookup::Connecting),
            Found::Full => return Err(ConnectError::TooManyPairs),
            Found::Closed => return Err(ConnectError::Closed),
            Found::Reserved(reservation) => reservation,
        };
        match Connecting::start_with(name, udp, &self.config) {
            Ok(connecting) => Ok(Lookup::Started(ConnectAttempt { connecting, reservation })),
            Err(error) => {
                self.registry.abandon(&reservation);
                Err(error)
            }
        }
    }

    /// Starts a handshake with the server under `name` without waiting: [`Local::poll_sockets`]
    /// completes it, and [`Local::peer_state`] returns the result. Has no effect if there is a
    /// pair, or a handshake in progress.
    ///
    /// `udp` is the UDP address of the server, if it has one: its user must own that socket, or
    /// another user has taken the name ([`ConnectError::NotOwner`]).
    ///
    /// # Errors
    ///
    /// [`ConnectError`], as for [`Local::find`].
    pub fn start_connect(
        &self,
        name: &PeerName,
        udp: Option<SocketAddr>,
    ) -> Result<(), ConnectError> {
        let Lookup::Started(attempt) = self.find_with(name, udp)? else { return Ok(()) };
        self.watch_attempt(attempt)
    }

    /// Returns the state of the server under `name`. Makes no system call.
    #[must_use]
    pub fn peer_state(&self, name: &PeerName) -> PeerState {
        match self.registry.get(&Key::Server(name.clone())) {
            Presence::Pair(pair) => PeerState::Pair(pair),
            Presence::Connecting => PeerState::Connecting,
            Presence::Absent => PeerState::Unknown,
        }
    }

    /// Cancels a handshake that [`Local::start_connect`] has started.
    pub fn cancel_connect(&self, name: &PeerName) {
        let mut handshakes = self.handshakes.lock();
        let is_it = |(_, attempt): &(u64, ConnectAttempt)| {
            attempt.reservation.is_for(&Key::Server(name.clone()))
        };
        let attempt =
            handshakes.servers.iter().position(is_it).map(|at| handshakes.servers.remove(at));
        drop(handshakes);
        // Closing its socket removes it from the epoll set.
        if let Some((_, attempt)) = attempt {
            self.abandon(&attempt);
        }
    }

    /// Adds a handshake with a server to the doorbell.
    fn watch_attempt(&self, attempt: ConnectAttempt) -> Result<(), ConnectError> {
        let mut handshakes = self.handshakes.lock();
        let key = handshakes.next | PENDING_SERVER;
        handshakes.next += 1;
        if let Err(errno) = self.doorbell.add(&attempt, key) {
            drop(handshakes);
            self.abandon(&attempt);
            return Err(ConnectError::system("watch a server")(errno));
        }
        handshakes.servers.push((key, attempt));
        Ok(())
    }

    /// Continues a handshake whose server has replied or disconnected.
    fn advance_server(&self, key: u64) {
        let mut handshakes = self.handshakes.lock();
        let Some(at) = handshakes.servers.iter().position(|(other, _)| *other == key) else {
            return;
        };
        let (_, attempt) = handshakes.servers.swap_remove(at);
        drop(handshakes);
        // From now on the pair has this socket in the doorbell.
        self.doorbell.remove(&attempt);
        // An error is not reported: `peer_state` returns `Unknown`.
        if let Ok(Lookup::Started(attempt)) = self.advance(attempt) {
            let _ = self.watch_attempt(attempt);
        }
    }

    /// Continues a handshake. Returns the pair if the server has accepted, and [`Lookup::Started`]
    /// as long as it has not replied.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the server rejected this client, or this endpoint was closed.
    pub fn advance(&self, mut attempt: ConnectAttempt) -> Result<Lookup, ConnectError> {
        match attempt.connecting.advance() {
            Ok(None) => Ok(Lookup::Started(attempt)),
            Ok(Some(pair)) => self.add_connected(&attempt.reservation, pair).map(Lookup::Pair),
            Err(error) => {
                self.abandon(&attempt);
                Err(error)
            }
        }
    }

    /// Gives up a handshake.
    pub fn abandon(&self, attempt: &ConnectAttempt) {
        self.registry.abandon(&attempt.reservation);
    }

    /// Returns the pair with the server under `name`, waiting for a handshake for up to `time`.
    ///
    /// # Errors
    ///
    /// [`ConnectError`], also if another thread connects to this server ([`ConnectError::Busy`]).
    pub fn connect(&self, name: &PeerName, time: Duration) -> Result<Arc<Pair>, ConnectError> {
        let ConnectAttempt { connecting, reservation } = match self.find(name)? {
            Lookup::Pair(pair) => return Ok(pair),
            Lookup::Connecting => return Err(ConnectError::Busy),
            Lookup::Started(attempt) => attempt,
        };
        match connecting.finish(time) {
            Ok(pair) => self.add_connected(&reservation, pair),
            Err(error) => {
                self.registry.abandon(&reservation);
                Err(error)
            }
        }
    }

    /// Registers a pair with a server.
    fn add_connected(
        &self,
        reservation: &Reservation<Key>,
        pair: Pair,
    ) -> Result<Arc<Pair>, ConnectError> {
        let pair = Arc::new(pair);
        if let Err(errno) = self.doorbell.add(&*pair, pair.number()) {
            self.registry.abandon(reservation);
            return Err(ConnectError::system("watch a pair")(errno));
        }
        match self.registry.fulfil(reservation, pair.clone()) {
            Ok(()) => Ok(pair),
            Err(AddError::Closed(pair) | AddError::Full(pair)) => {
                pair.close();
                Err(ConnectError::Closed)
            }
        }
    }

    /// Accepts clients, continues handshakes, and handles the signals of pairs. Waits for a ready
    /// descriptor for up to `time` (`None`: forever).
    ///
    /// Call it when the descriptor of this object is readable, and from time to time while no
    /// thread sleeps on it: only the sockets report new clients and peers that were killed.
    ///
    /// # Errors
    ///
    /// [`ConnectError::System`]; such an error concerns the whole endpoint.
    pub fn poll_sockets(
        &self,
        poll_set: &mut PollSet,
        time: Option<Duration>,
    ) -> Result<PollOutcome, ConnectError> {
        let mut keys = SmallVec::<[(u64, bool); 8]>::new();
        let ready = self.doorbell.wait(time, |key, may_have_gone| keys.push((key, may_have_gone)));
        let ready = ready.map_err(ConnectError::system("wait for local peers"))?;
        let mut companions = 0;
        self.registry.renew(&mut poll_set.snapshot);
        for (key, may_have_gone) in keys {
            match key {
                LISTENER => self.accept()?,
                PENDING_CLIENT.. => self.advance_client(key),
                PENDING_SERVER.. => self.advance_server(key),
                COMPANION.. => companions |= 1 << (key & !COMPANION),
                number => {
                    // A pair that is not in the list was removed in the meantime.
                    let pairs = poll_set.snapshot.pairs();
                    pairs
                        .iter()
                        .filter(|pair| pair.number() == number)
                        .for_each(|pair| pair.handle_event(may_have_gone));
                }
            }
        }
        Ok(PollOutcome { ready, companions })
    }

    /// Makes [`Local::poll_sockets`] return when `companion` is readable and report it by `number`,
    /// 0 to 63, so that a thread waits for all its descriptors in one call. The companion must stay
    /// open as long as this object.
    ///
    /// # Errors
    ///
    /// [`ConnectError::System`] if the descriptor cannot be watched.
    ///
    /// # Panics
    ///
    /// If the number is greater than 63.
    pub fn watch(&self, companion: impl AsFd, number: u32) -> Result<(), ConnectError> {
        assert!(number < 64, "companions have numbers up to 63");
        let key = COMPANION | u64::from(number);
        self.doorbell.add(companion, key).map_err(ConnectError::system("watch a companion"))
    }

    /// Accepts connections, whose hellos follow. Clients that the policy excludes get a rejection
    /// and are disconnected.
    fn accept(&self) -> Result<(), ConnectError> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let mut rejections = 0;
        for _ in 0..MAX_ACCEPTS {
            let Some(accepting) = listener.accept()? else { break };
            if accepting.is_rejected() {
                rejections += 1;
                if rejections == MAX_REJECTIONS {
                    break;
                }
                continue;
            }
            let mut handshakes = self.handshakes.lock();
            let key = handshakes.next | PENDING_CLIENT;
            handshakes.next += 1;
            if self.doorbell.add(&accepting, key).is_ok() {
                // Closing the socket of a displaced one removes it from the epoll set.
                handshakes.clients.push(key, accepting.uid(), accepting);
            }
        }
        Ok(())
    }

    /// Continues a handshake whose client has sent something.
    fn advance_client(&self, key: u64) {
        let mut handshakes = self.handshakes.lock();
        let Some(mut accepting) = handshakes.clients.take(key) else { return };
        // The rest concerns only this handshake.
        drop(handshakes);
        if self.registry.len() >= self.config.max_pairs {
            accepting.reject(Rejection::TooMany);
            return;
        }
        let Ok(Some(pair)) = accepting.advance() else { return };
        // From now on the pair has this socket in the doorbell.
        self.doorbell.remove(&accepting);
        let pair = Arc::new(pair);
        let added = self.doorbell.add(&*pair, pair.number()).is_ok()
            && self.registry.add(Key::Client(pair.number()), pair.clone()).is_ok();
        if !added {
            pair.close();
        }
    }

    /// Receives up to `quota` from all pairs, in the order of [`PollSet`]. Reports each pair that
    /// has ended once, and removes it. Returns the number of records received.
    pub fn receive(
        &self,
        poll_set: &mut PollSet,
        quota: ReceiveQuota,
        sink: impl FnMut(&Arc<Pair>, PollEvent),
    ) -> usize {
        let mut arrivals = std::mem::take(&mut poll_set.arrivals);
        let records = self.receive_into(poll_set, quota, &mut arrivals);
        arrivals.drain(sink);
        poll_set.arrivals = arrivals;
        records
    }

    /// Receives as [`Local::receive`] does, and moves the events into `arrivals`. Returns 0 if it
    /// still holds events: they must be handled first.
    pub fn receive_into(
        &self,
        poll_set: &mut PollSet,
        quota: ReceiveQuota,
        arrivals: &mut Arrivals,
    ) -> usize {
        if !arrivals.is_empty() {
            return 0;
        }
        self.registry.renew(&mut poll_set.snapshot);
        let records = poll_set.pass(quota, arrivals);
        arrivals.ended().for_each(|pair| self.remove(pair));
        records
    }

    /// Announces on all pairs that this side is going to sleep on the descriptor. Returns `false`
    /// if it must not sleep, because there is something to receive. Must be followed by
    /// [`Local::finish_sleep`].
    #[must_use]
    pub fn prepare_to_sleep(&self, poll_set: &mut PollSet) -> bool {
        self.registry.renew(&mut poll_set.snapshot);
        poll_set.snapshot.pairs().iter().all(|pair| pair.prepare_to_sleep())
    }

    /// Announces on all pairs that this side does not sleep any more.
    pub fn finish_sleep(&self, poll_set: &PollSet) {
        poll_set.snapshot.pairs().iter().for_each(|pair| pair.finish_sleep());
    }

    /// Closes a pair and removes it.
    pub fn remove(&self, pair: &Arc<Pair>) {
        pair.close();
        self.doorbell.remove(&**pair);
        let key = match pair.role() {
            Role::Server => Key::Client(pair.number()),
            Role::Client => {
                // Few pairs end, so a linear search is cheaper than a second table.
                let Some(key) = self.registry.key_of(pair) else { return };
                key
            }
        };
        self.registry.remove(&key, pair);
    }

    /// Returns all pairs.
    #[must_use]
    pub fn pairs(&self) -> Vec<Arc<Pair>> {
        let mut snapshot = Snapshot::default();
        self.registry.renew(&mut snapshot);
        snapshot.pairs().to_vec()
    }

    /// Closes all pairs, and prevents new ones. Does nothing in a child of the process that opened
    /// them.
    pub fn close(&self) {
        if !self.registry.owner().is_current() {
            return;
        }
        for pair in self.registry.close() {
            pair.close();
            self.doorbell.remove(&*pair);
        }
        let mut handshakes = self.handshakes.lock();
        handshakes.clients.clear();
        handshakes.servers.clear();
    }
}

impl AsFd for Local {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.doorbell.as_fd()
    }
}

impl AsFd for ConnectAttempt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connecting.as_fd()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Handshakes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshakes")
            .field("clients", &self.clients.len())
            .field("servers", &self.servers.len())
            .finish_non_exhaustive()
    }
}
