//! What does an endpoint hold for its peers on the same host?
//!
//! [`Local`] is a listener, all pairs, and what a thread sleeps on that waits for any of them. It turns no
//! loop of its own: whoever turns the endpoint's loop calls [`Local::poll_sockets`] and [`Local::receive`].

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::config::LocalConfig;
use crate::doorbell::Bell;
use crate::error::{ConnectError, Rejection};
use crate::handshake::{Accepting, Connecting, Listener};
use crate::lock::{Lock, Rank};
use crate::name::PeerName;
use crate::pair::{Pair, ReceiveQuota};
use crate::poll_set::{PollEvent, PollSet};
use crate::registry::{Found, NotAdded, Registry, Reservation, Seen, Snapshot};
use apus_wire::Role;
use smallvec::SmallVec;

/// Clients that may have connected and not greeted. Who comes then takes the place of whoever waits longest:
/// honest clients greet at once.
const MAX_NEWCOMERS: usize = 64;

/// What the listener rings with. Pairs ring with their numbers, newcomers with these and the highest bit set, servers
/// that have been greeted with the one below.
const LISTENER: u64 = 0;
const NEWCOMER: u64 = 1 << 63;
const GREETED: u64 = 1 << 62;
/// Descriptors of somebody else that stand in the same set ([`Local::watch`]), with their numbers.
const COMPANION: u64 = 1 << 61;

/// By what a pair is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// The server under this name.
    Server(PeerName),
    /// A client, by the number of the pair.
    Client(u64),
}

/// All that an endpoint shares with other processes of its host.
#[derive(Debug)]
pub struct Local {
    config: LocalConfig,
    listener: Option<Listener>,
    bell: Bell,
    registry: Registry<Key, Pair>,
    newcomers: Lock<Newcomers>,
}

struct Newcomers {
    /// Clients that are to greet.
    waiting: Vec<(u64, Accepting)>,
    /// Servers that have been greeted.
    greeted: Vec<(u64, ConnectAttempt)>,
    /// Of the next of either kind.
    next: u64,
}

/// What [`Local::poll_sockets`] has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PollOutcome {
    /// Descriptors that were ready, those of companions included.
    pub ready: usize,
    /// The companions among them: bit `n` stands for number `n`.
    pub companions: u64,
}

/// What is known of a server.
#[derive(Debug)]
#[non_exhaustive]
pub enum PeerState {
    /// There is a pair.
    Pair(Arc<Pair>),
    /// It has been greeted, and has not answered yet.
    Greeted,
    /// Nothing: it was never greeted, it has refused, or the pair with it has ended.
    Nothing,
}

/// A peer that has been greeted and not answered yet.
#[derive(Debug)]
#[must_use = "advance it when it is readable"]
pub struct ConnectAttempt {
    connecting: Connecting,
    reservation: Reservation<Key>,
}

/// What there is for a name.
#[derive(Debug)]
#[non_exhaustive]
pub enum Lookup {
    /// A pair.
    Pair(Arc<Pair>),
    /// The peer has been greeted. Its answer is taken by [`Local::advance`].
    Greeted(ConnectAttempt),
    /// Another thread connects at this moment.
    Connecting,
}

impl Local {
    /// For an endpoint that is found under `name`, or is none's server.
    ///
    /// # Errors
    ///
    /// [`ConnectError::System`]: the name is taken, or the system has no descriptors left.
    pub fn new(name: Option<&PeerName>, config: LocalConfig) -> Result<Self, ConnectError> {
        let bell = Bell::new().map_err(ConnectError::system("make an epoll set"))?;
        let listener = name.map(|name| Listener::bind(name, &config)).transpose()?;
        if let Some(listener) = &listener {
            bell.add(listener, LISTENER).map_err(ConnectError::system("watch a listener"))?;
        }
        let newcomers = Newcomers { waiting: Vec::new(), greeted: Vec::new(), next: 0 };
        let registry = Registry::new(config.max_pairs);
        let newcomers = Lock::new(Rank::Newcomers, newcomers);
        Ok(Self { config, listener, bell, registry, newcomers })
    }

    /// The pair with the server under `name`; greets it if there is none.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: there is nobody, or nobody who is trusted, or no room here.
    pub fn find(&self, name: &PeerName) -> Result<Lookup, ConnectError> {
        let reservation = match self.registry.find(&Key::Server(name.clone())) {
            Found::Pair(pair) => return Ok(Lookup::Pair(pair)),
            Found::Connecting => return Ok(Lookup::Connecting),
            Found::Full => return Err(ConnectError::TooManyPairs),
            Found::Closed => return Err(ConnectError::Closed),
            Found::Nothing(reservation) => reservation,
        };
        match Connecting::start(name, &self.config) {
            Ok(connecting) => Ok(Lookup::Greeted(ConnectAttempt { connecting, reservation })),
            Err(error) => {
                self.registry.abandon(&reservation);
                Err(error)
            }
        }
    }

    /// Greets the server under `name`, and waits for nothing: [`Local::poll_sockets`] takes its answer, and
    /// [`Local::peer_state`] tells what has come of it. Does nothing if there is a pair, or somebody who connects.
    ///
    /// # Errors
    ///
    /// As for [`Local::find`].
    pub fn start_connect(&self, name: &PeerName) -> Result<(), ConnectError> {
        let Lookup::Greeted(attempt) = self.find(name)? else { return Ok(()) };
        self.await_answer(attempt)
    }

    /// What is known of the server under `name`. Makes no system call.
    #[must_use]
    pub fn peer_state(&self, name: &PeerName) -> PeerState {
        match self.registry.look(&Key::Server(name.clone())) {
            Seen::Pair(pair) => PeerState::Pair(pair),
            Seen::Connecting => PeerState::Greeted,
            Seen::Nothing => PeerState::Nothing,
        }
    }

    /// Waits no longer for an answer to [`Local::start_connect`].
    pub fn reject(&self, name: &PeerName) {
        let mut newcomers = self.newcomers.lock();
        let is_it = |(_, attempt): &(u64, ConnectAttempt)| {
            attempt.reservation.is_for(&Key::Server(name.clone()))
        };
        let attempt =
            newcomers.greeted.iter().position(is_it).map(|at| newcomers.greeted.remove(at));
        drop(newcomers);
        // Closing its socket takes it out of the epoll set.
        if let Some((_, attempt)) = attempt {
            self.abandon(&attempt);
        }
    }

    /// Has the answer of a server ring.
    fn await_answer(&self, attempt: ConnectAttempt) -> Result<(), ConnectError> {
        let mut newcomers = self.newcomers.lock();
        let key = newcomers.next | GREETED;
        newcomers.next += 1;
        if let Err(errno) = self.bell.add(&attempt, key) {
            drop(newcomers);
            self.abandon(&attempt);
            return Err(ConnectError::system("watch a server")(errno));
        }
        newcomers.greeted.push((key, attempt));
        Ok(())
    }

    /// A server has answered, or has gone.
    fn answered(&self, key: u64) {
        let mut newcomers = self.newcomers.lock();
        let Some(at) = newcomers.greeted.iter().position(|(other, _)| *other == key) else {
            return;
        };
        let (_, attempt) = newcomers.greeted.swap_remove(at);
        drop(newcomers);
        // Its socket rings from now on as that of the pair.
        self.bell.remove(&attempt);
        // Whoever wants to know what has come of it asks `peer_state`.
        if let Ok(Lookup::Greeted(attempt)) = self.advance(attempt) {
            let _ = self.await_answer(attempt);
        }
    }

    /// The pair, if the server has answered; `Err` with the attempt as long as it has not.
    ///
    /// # Errors
    ///
    /// [`ConnectError`]: the server refused, or this endpoint was closed.
    pub fn advance(&self, mut attempt: ConnectAttempt) -> Result<Lookup, ConnectError> {
        match attempt.connecting.advance() {
            Ok(None) => Ok(Lookup::Greeted(attempt)),
            Ok(Some(pair)) => self.connected(&attempt.reservation, pair).map(Lookup::Pair),
            Err(error) => {
                self.abandon(&attempt);
                Err(error)
            }
        }
    }

    /// Lets an attempt go.
    pub fn abandon(&self, attempt: &ConnectAttempt) {
        self.registry.abandon(&attempt.reservation);
    }

    /// The pair with the server under `name`, which is waited for, at most `time`.
    ///
    /// # Errors
    ///
    /// [`ConnectError`], also if another thread connects at this moment ([`ConnectError::Busy`]).
    pub fn connect(&self, name: &PeerName, time: Duration) -> Result<Arc<Pair>, ConnectError> {
        let ConnectAttempt { connecting, reservation } = match self.find(name)? {
            Lookup::Pair(pair) => return Ok(pair),
            Lookup::Connecting => return Err(ConnectError::Busy),
            Lookup::Greeted(attempt) => attempt,
        };
        match connecting.finish(time) {
            Ok(pair) => self.connected(&reservation, pair),
            Err(error) => {
                self.registry.abandon(&reservation);
                Err(error)
            }
        }
    }

    fn connected(
        &self,
        reservation: &Reservation<Key>,
        pair: Pair,
    ) -> Result<Arc<Pair>, ConnectError> {
        let pair = Arc::new(pair);
        if let Err(errno) = self.bell.add(&*pair, pair.number()) {
            self.registry.abandon(reservation);
            return Err(ConnectError::system("watch a pair")(errno));
        }
        match self.registry.fulfil(reservation, pair.clone()) {
            Ok(()) => Ok(pair),
            Err(NotAdded::Closed(pair) | NotAdded::Full(pair)) => {
                pair.close();
                Err(ConnectError::Closed)
            }
        }
    }

    /// Lets clients in, and heeds what the sockets of pairs say; waits for that, at most `time` (`None`: for
    /// ever).
    ///
    /// To be called when the descriptor is readable, and now and then while nobody sleeps on it: only the
    /// sockets tell of new clients, and of peers that were killed.
    ///
    /// # Errors
    ///
    /// The system's, which concern the whole endpoint.
    pub fn poll_sockets(
        &self,
        sweep: &mut PollSet,
        time: Option<Duration>,
    ) -> Result<PollOutcome, ConnectError> {
        let mut keys = SmallVec::<[u64; 8]>::new();
        let ready = self.bell.wait(time, |key| keys.push(key));
        let ready = ready.map_err(ConnectError::system("wait for local peers"))?;
        let mut companions = 0;
        self.registry.renew(&mut sweep.snapshot);
        for key in keys {
            match key {
                LISTENER => self.accept()?,
                NEWCOMER.. => self.welcome(key),
                GREETED.. => self.answered(key),
                COMPANION.. => companions |= 1 << (key & !COMPANION),
                number => {
                    // Not in the list: it has been removed meanwhile.
                    let pairs = sweep.snapshot.pairs();
                    pairs
                        .iter()
                        .filter(|pair| pair.number() == number)
                        .for_each(|pair| pair.handle_signal());
                }
            }
        }
        Ok(PollOutcome { ready, companions })
    }

    /// Has [`Local::poll_sockets`] wake up when `companion` is readable, and say so by this number, 0 to 63: so a thread
    /// sleeps on all its descriptors in one call. It must be open as long as this is.
    ///
    /// # Errors
    ///
    /// The system's.
    ///
    /// # Panics
    ///
    /// If the number is greater than 63.
    pub fn watch(&self, companion: impl AsFd, number: u32) -> Result<(), ConnectError> {
        assert!(number < 64, "companions have numbers up to 63");
        let key = COMPANION | u64::from(number);
        self.bell.add(companion, key).map_err(ConnectError::system("watch a companion"))
    }

    /// Lets newcomers in, to greet.
    fn accept(&self) -> Result<(), ConnectError> {
        let Some(listener) = &self.listener else { return Ok(()) };
        for _ in 0..MAX_NEWCOMERS {
            let Some(accepting) = listener.accept()? else { break };
            let mut newcomers = self.newcomers.lock();
            let key = newcomers.next | NEWCOMER;
            newcomers.next += 1;
            if self.bell.add(&accepting, key).is_ok() {
                newcomers.waiting.push((key, accepting));
            }
            if newcomers.waiting.len() > MAX_NEWCOMERS {
                // Closing takes it out of the epoll set.
                newcomers.waiting.remove(0);
            }
        }
        Ok(())
    }

    /// A newcomer has said something.
    fn welcome(&self, key: u64) {
        let mut newcomers = self.newcomers.lock();
        let Some(at) = newcomers.waiting.iter().position(|(other, _)| *other == key) else {
            return;
        };
        let (_, mut accepting) = newcomers.waiting.swap_remove(at);
        // Nothing of what follows concerns the others.
        drop(newcomers);
        if self.registry.len() >= self.config.max_pairs {
            accepting.reject(Rejection::TooMany);
            return;
        }
        let Ok(Some(pair)) = accepting.advance() else { return };
        // Its socket rings from now on as that of the pair.
        self.bell.remove(&accepting);
        let pair = Arc::new(pair);
        let added = self.bell.add(&*pair, pair.number()).is_ok()
            && self.registry.add(Key::Client(pair.number()), pair.clone()).is_ok();
        if !added {
            pair.close();
        }
    }

    /// Takes what has arrived over any pair, in fair order, at most `quota` ([`PollSet`]). Pairs that have ended are
    /// told once, and forgotten. Returns how many records were taken.
    pub fn receive(
        &self,
        sweep: &mut PollSet,
        quota: ReceiveQuota,
        mut sink: impl FnMut(&Arc<Pair>, PollEvent),
    ) -> usize {
        self.registry.renew(&mut sweep.snapshot);
        let mut ended = Vec::new();
        let records = sweep.pass(quota, &mut |pair, arrival| {
            if matches!(arrival, PollEvent::Gone(_)) {
                ended.push(pair.clone());
            }
            sink(pair, arrival);
        });
        for pair in ended {
            self.remove(&pair);
        }
        records
    }

    /// Announces on all pairs that this side is going to sleep on the descriptor. `false`: it must not, there is
    /// something to receive. Must be followed by [`Local::finish_sleep`].
    #[must_use]
    pub fn prepare_to_sleep(&self, sweep: &mut PollSet) -> bool {
        self.registry.renew(&mut sweep.snapshot);
        sweep.snapshot.pairs().iter().all(|pair| pair.prepare_to_sleep())
    }

    /// This side does not sleep any more.
    pub fn finish_sleep(&self, sweep: &PollSet) {
        sweep.snapshot.pairs().iter().for_each(|pair| pair.finish_sleep());
    }

    /// Closes a pair and forgets it.
    pub fn remove(&self, pair: &Arc<Pair>) {
        pair.close();
        self.bell.remove(&**pair);
        let key = match pair.role() {
            Role::Server => Key::Client(pair.number()),
            Role::Client => {
                // Few pairs have ended at any time: no second table for this.
                let Some(key) = self.registry.key_of(pair) else { return };
                key
            }
        };
        self.registry.remove(&key, pair);
    }

    /// All pairs at this moment.
    #[must_use]
    pub fn pairs(&self) -> Vec<Arc<Pair>> {
        let mut snapshot = Snapshot::default();
        self.registry.renew(&mut snapshot);
        snapshot.pairs().to_vec()
    }

    /// Ends everything: all pairs are closed, and no more are made.
    pub fn close(&self) {
        for pair in self.registry.close() {
            pair.close();
            self.bell.remove(&*pair);
        }
        let mut newcomers = self.newcomers.lock();
        newcomers.waiting.clear();
        newcomers.greeted.clear();
    }
}

impl AsFd for Local {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
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

impl std::fmt::Debug for Newcomers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Newcomers")
            .field("waiting", &self.waiting.len())
            .field("greeted", &self.greeted.len())
            .finish_non_exhaustive()
    }
}
