//! Sessions: one life of a client at this server.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use crate::rights::Rights;
use crate::wire::limits::MAX_RANGES;
use crate::wire::{Batch, Ino};
use bytes::Bytes;

use super::effect::CallToken;
use super::settings::{MAX_HISTORY, session_limits};
use super::shares::{Host, Shares};
use crate::store::ClientId;

/// Who has sent a request.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) peer: SocketAddr,
    pub(super) rights: Rights,
}

impl Sender {
    /// Returns whose share of the server the sender uses.
    pub(super) fn host(&self) -> Host {
        Host::of(self.peer, self.rights.uid())
    }
}

/// A batch that arrived before its predecessor.
#[derive(Debug)]
pub(super) struct HeldBatch {
    pub(super) calls: Vec<CallToken>,
    pub(super) batch: Batch,
    pub(super) payload: Bytes,
}

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) client: ClientId,
    pub(super) name: Bytes,
    pub(super) peer: SocketAddr,
    pub(super) rights: Rights,
    /// Whose share of the server it uses.
    pub(super) host: Host,
    pub(super) read_only: bool,
    /// When its last request arrived; changed by [`Sessions::hear`].
    pub(super) last_heard: Duration,
    /// When its last batch was applied.
    pub(super) last_batch: Duration,
    /// All times between two requests that were longer than half a term: no client that can reach
    /// the server pauses for that time.
    pub(super) silence: Duration,
    /// Bytes of the batches that were applied, and [`RECORD_PROGRESS`] for each record.
    ///
    /// [`RECORD_PROGRESS`]: super::settings::RECORD_PROGRESS
    pub(super) progress: u64,
    /// First number and count of each of its ranges.
    pub(super) ranges: Vec<(u64, u64)>,
    /// Number of the last batch that was applied.
    pub(super) applied: u64,
    /// Number of the next batch that may be appended.
    pub(super) expected: u64,
    /// Whether the client has learned of the session: it has sent a request in it.
    pub(super) is_known: bool,
    /// Whether the client's unsent changes are void: it was fenced, and has not received that yet.
    pub(super) is_fenced: bool,
    /// Whether the client was absent from this life of the server until now, and present in an
    /// earlier one.
    pub(super) is_late: bool,
    /// Whether a batch failed since the last greeting.
    pub(super) is_stopped: bool,
    /// Number of the last greeting. A Hello with the same number was sent before the client learned
    /// of a later failure.
    pub(super) greeting: u64,
    pub(super) held: BTreeMap<u64, HeldBatch>,
    history: HashSet<Ino>,
    knows_all: bool,
}

impl Session {
    pub(super) fn new(
        client: ClientId,
        name: Bytes,
        sender: &Sender,
        now: Duration,
        applied: u64,
    ) -> Self {
        Self {
            client,
            name,
            peer: sender.peer,
            rights: sender.rights.clone(),
            host: sender.host(),
            read_only: false,
            last_heard: now,
            last_batch: now,
            silence: Duration::ZERO,
            progress: 0,
            ranges: Vec::new(),
            applied,
            expected: applied + 1,
            is_known: false,
            is_fenced: false,
            is_late: false,
            is_stopped: false,
            greeting: 0,
            held: BTreeMap::new(),
            history: HashSet::new(),
            knows_all: false,
        }
    }

    /// Adds a range of numbers. If there are too many, the oldest one is dropped: its nodes have
    /// handles with proofs by then.
    pub(super) fn add_range(&mut self, first: u64, count: u64) {
        if self.ranges.len() >= MAX_RANGES {
            self.ranges.remove(0);
        }
        self.ranges.push((first, count));
    }

    /// Whether a number belongs to the session's ranges.
    pub(super) fn owns(&self, ino: Ino) -> bool {
        // From the end: a client creates nodes with numbers of its newest range.
        self.ranges.iter().rev().any(|(first, count)| ino.0.wrapping_sub(*first) < *count)
    }

    /// Records that the client has received a node, and may open it.
    pub(super) fn note(&mut self, ino: Ino) {
        if self.history.len() >= MAX_HISTORY {
            self.knows_all = true;
        }
        if !self.knows_all {
            self.history.insert(ino);
        }
    }

    /// Whether the client may have a node open.
    pub(super) fn has_heard_of(&self, ino: Ino) -> bool {
        self.knows_all || self.history.contains(&ino)
    }

    /// Forgets a node that does not exist any more.
    pub(super) fn forget(&mut self, ino: Ino) {
        self.history.remove(&ino);
    }
}

/// All sessions, by number. Later sessions have larger numbers.
#[derive(Debug)]
pub(super) struct Sessions {
    live: BTreeMap<u64, Session>,
    clients: BTreeMap<ClientId, u64>,
    /// Sessions by the time of their last request.
    heard: BTreeSet<(Duration, u64)>,
    /// Of these, the sessions whose locks others wait for.
    watched: BTreeSet<(Duration, u64)>,
    shares: Shares,
}

impl Sessions {
    /// Returns a table of at most `most` sessions.
    pub(super) fn new(most: usize) -> Self {
        Self {
            live: BTreeMap::new(),
            clients: BTreeMap::new(),
            heard: BTreeSet::new(),
            watched: BTreeSet::new(),
            shares: Shares::new(session_limits(most)),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.live.len()
    }

    pub(super) fn get(&self, session: u64) -> Option<&Session> {
        self.live.get(&session)
    }

    pub(super) fn get_mut(&mut self, session: u64) -> Option<&mut Session> {
        self.live.get_mut(&session)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Session)> {
        self.live.iter().map(|(number, session)| (*number, session))
    }

    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.live.values_mut()
    }

    /// Returns the session of a client.
    pub(super) fn of_client(&self, client: ClientId) -> Option<u64> {
        self.clients.get(&client).copied()
    }

    /// Returns whether a host may start one more session.
    pub(super) fn has_room(&self, host: Host) -> bool {
        self.shares.has_room(host, 1)
    }

    pub(super) fn insert(&mut self, number: u64, session: Session) {
        self.clients.insert(session.client, number);
        self.heard.insert((session.last_heard, number));
        self.shares.add(session.host, 1);
        self.live.insert(number, session);
    }

    pub(super) fn remove(&mut self, number: u64) -> Option<Session> {
        let session = self.live.remove(&number)?;
        self.heard.remove(&(session.last_heard, number));
        self.watched.remove(&(session.last_heard, number));
        self.shares.remove(session.host, 1);
        if self.clients.get(&session.client) == Some(&number) {
            self.clients.remove(&session.client);
        }
        Some(session)
    }

    /// Records that a request of a session has arrived.
    pub(super) fn hear(&mut self, number: u64, now: Duration, term: Duration) {
        let Some(session) = self.live.get_mut(&number) else { return };
        let before = std::mem::replace(&mut session.last_heard, now);
        let pause = now.saturating_sub(before);
        if pause > term / 2 {
            session.silence += pause;
        }
        self.heard.remove(&(before, number));
        self.heard.insert((now, number));
        if self.watched.remove(&(before, number)) {
            self.watched.insert((now, number));
        }
    }

    /// Records whether others wait for a session's locks.
    pub(super) fn watch(&mut self, number: u64, is_watched: bool) {
        let Some(session) = self.live.get(&number) else { return };
        if is_watched {
            self.watched.insert((session.last_heard, number));
        } else {
            self.watched.remove(&(session.last_heard, number));
        }
    }

    /// Returns the session that was silent longest, and since when.
    pub(super) fn first_heard(&self) -> Option<(u64, Duration)> {
        self.heard.first().map(|(heard, number)| (*number, *heard))
    }

    /// Of the sessions whose locks others wait for, returns the one that was silent longest, and
    /// since when.
    pub(super) fn first_watched(&self) -> Option<(u64, Duration)> {
        self.watched.first().map(|(heard, number)| (*number, *heard))
    }

    /// Of a host's sessions, returns the one that was silent longest.
    pub(super) fn first_of(&self, host: Host) -> Option<u64> {
        let mut all = self.heard.iter().filter_map(|(_, number)| self.live.get_key_value(number));
        all.find(|(_, session)| session.host == host).map(|(number, _)| *number)
    }
}
