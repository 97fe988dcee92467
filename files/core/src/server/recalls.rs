//! The table of recalls: the requested leases of each session, in which callback, and since when.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::wire::limits::MAX_NODES;
use crate::wire::{Ino, LeaseKind};

use super::effect::CallbackToken;

/// A recall of a session's lease on a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recall {
    pub(super) keep: LeaseKind,
    /// Whether a waiting request needs the lease: only then the session ends without an answer.
    pub(super) is_needed: bool,
    pub(super) is_removed: bool,
}

impl Recall {
    fn merge(self, other: Self) -> Self {
        Self {
            keep: self.keep.min(other.keep),
            is_needed: self.is_needed || other.is_needed,
            is_removed: self.is_removed || other.is_removed,
        }
    }

    /// Returns whether this recall includes the other one.
    fn covers(self, other: Self) -> bool {
        self.keep <= other.keep
            && self.is_needed >= other.is_needed
            && self.is_removed >= other.is_removed
    }
}

/// When a recall began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Began {
    pub(super) at: Duration,
    /// [Progress](super::session::Session::progress) of its session at that time.
    pub(super) progress: u64,
    /// [Silence](super::session::Session::silence) of its session at that time.
    pub(super) silence: Duration,
}

/// Recalls of several nodes, and the beginning of the oldest one.
#[derive(Debug)]
pub(super) struct Recalled {
    pub(super) nodes: BTreeMap<Ino, Recall>,
    pub(super) since: Began,
    /// Numbers of nodes that a request needs, and that no request needs.
    counts: (usize, usize),
}

impl Recalled {
    fn new(since: Began) -> Self {
        Self { nodes: BTreeMap::new(), since, counts: (0, 0) }
    }

    fn insert(&mut self, ino: Ino, recall: Recall) {
        let before = self.remove(ino);
        let recall = before.map_or(recall, |before| before.merge(recall));
        self.nodes.insert(ino, recall);
        *self.count(recall) += 1;
    }

    fn remove(&mut self, ino: Ino) -> Option<Recall> {
        let recall = self.nodes.remove(&ino)?;
        *self.count(recall) -= 1;
        Some(recall)
    }

    fn count(&mut self, recall: Recall) -> &mut usize {
        if recall.is_needed { &mut self.counts.0 } else { &mut self.counts.1 }
    }
}

#[derive(Debug, Default)]
pub(super) struct SessionRecalls {
    /// Not sent yet.
    pub(super) pending: Option<Recalled>,
    pub(super) outstanding: BTreeMap<CallbackToken, Recalled>,
    /// When the last call that failed did so.
    pub(super) failed_at: Option<Duration>,
    /// When to call again after a call that failed.
    pub(super) retry_at: Option<Duration>,
}

impl SessionRecalls {
    fn all(&self) -> impl Iterator<Item = &Recalled> {
        self.outstanding.values().chain(&self.pending)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_none() && self.outstanding.is_empty()
    }

    /// Returns since when a waiting request needs an answer.
    pub(super) fn needed_since(&self) -> Option<Began> {
        let all = self.all().filter(|recalled| recalled.counts.0 > 0);
        all.map(|recalled| recalled.since).min()
    }

    /// Returns the time of the oldest unanswered recall that no request needs.
    pub(super) fn asked_since(&self) -> Option<Duration> {
        let asked = self.all().filter(|recalled| recalled.counts.1 > 0);
        asked.map(|recalled| recalled.since.at).min()
    }

    pub(super) fn add(&mut self, ino: Ino, recall: Recall, since: Began) {
        let pending = self.pending.get_or_insert_with(|| Recalled::new(since));
        pending.since = pending.since.min(since);
        pending.insert(ino, recall);
    }

    /// Removes and returns the nodes of the next call. None of them is in another call.
    pub(super) fn next_call(&mut self) -> Option<Recalled> {
        let pending = self.pending.as_mut()?;
        let outstanding = &self.outstanding;
        let is_outstanding =
            |ino: &Ino| outstanding.values().any(|recalled| recalled.nodes.contains_key(ino));
        let inos = pending.nodes.keys().filter(|ino| !is_outstanding(ino)).take(MAX_NODES);
        let inos: Vec<Ino> = inos.copied().collect();
        if inos.is_empty() {
            return None;
        }
        let mut call = Recalled::new(pending.since);
        for ino in inos {
            if let Some(recall) = pending.remove(ino) {
                call.insert(ino, recall);
            }
        }
        if pending.nodes.is_empty() {
            self.pending = None;
        }
        Some(call)
    }
}

/// All recalls.
#[derive(Debug, Default)]
pub(super) struct Recalls {
    pub(super) last: u64,
    pub(super) sessions: BTreeMap<u64, SessionRecalls>,
    pub(super) tokens: BTreeMap<CallbackToken, u64>,
    /// Sessions that may have something to be sent.
    pub(super) due: BTreeSet<u64>,
    /// Sessions whose next check may have become earlier.
    pub(super) changed: BTreeSet<u64>,
    timers: BTreeSet<(Duration, u64)>,
    checked_at: BTreeMap<u64, Duration>,
}

impl Recalls {
    /// Returns the name of a new callback.
    pub(super) fn draw_token(&mut self) -> CallbackToken {
        self.last += 1;
        CallbackToken(self.last)
    }

    /// Adds a recall of a lease or, if `is_removed`, a question whether the node is open.
    pub(super) fn request(
        &mut self,
        session: u64,
        ino: Ino,
        keep: LeaseKind,
        is_removed: bool,
        since: Began,
    ) {
        let recall = Recall { keep, is_needed: !is_removed, is_removed };
        let recalls = self.sessions.entry(session).or_default();
        let is_known = recalls
            .all()
            .filter_map(|recalled| recalled.nodes.get(&ino))
            .any(|known| known.covers(recall));
        if !is_known {
            recalls.add(ino, recall, since);
            self.due.insert(session);
            self.changed.insert(session);
        }
    }

    /// Returns the lease that recalls let a session keep on a node; `None` without a recall.
    pub(super) fn keep(&self, session: u64, ino: Ino) -> Option<LeaseKind> {
        let recalls = self.sessions.get(&session)?;
        let nodes = recalls.all().filter_map(|recalled| recalled.nodes.get(&ino));
        nodes.map(|recall| recall.keep).min()
    }

    /// Sends a session's recalls again: a request of it has arrived.
    pub(super) fn wake(&mut self, session: u64) {
        let Some(recalls) = self.sessions.get(&session) else { return };
        // Its term begins again, and so do the times of retries and questions.
        self.changed.insert(session);
        if recalls.pending.is_some() {
            self.due.insert(session);
        }
    }

    /// Sets when a session's recalls are to be checked.
    pub(super) fn schedule(&mut self, session: u64, at: Option<Duration>) {
        if let Some(before) = self.checked_at.remove(&session) {
            self.timers.remove(&(before, session));
        }
        if let Some(at) = at {
            self.checked_at.insert(session, at);
            self.timers.insert((at, session));
        }
    }

    /// Returns the next check.
    pub(super) fn next_check(&self) -> Option<(Duration, u64)> {
        super::work::step();
        self.timers.first().copied()
    }

    /// Withdraws a recall that was not sent: the client has returned the lease without it.
    pub(super) fn forget(&mut self, session: u64, ino: Ino, kept: LeaseKind) {
        let Some(recalls) = self.sessions.get_mut(&session) else { return };
        if let Some(pending) = &mut recalls.pending {
            let is_met = |recall: &Recall| !recall.is_removed && kept <= recall.keep;
            if pending.nodes.get(&ino).is_some_and(is_met) {
                pending.remove(ino);
            }
            if pending.nodes.is_empty() {
                recalls.pending = None;
            }
        }
        self.remove_if_empty(session);
    }

    /// Forgets all about a session that has ended.
    pub(super) fn end(&mut self, session: u64) {
        self.due.remove(&session);
        self.changed.remove(&session);
        self.schedule(session, None);
        if let Some(recalls) = self.sessions.remove(&session) {
            for token in recalls.outstanding.keys() {
                self.tokens.remove(token);
            }
        }
    }

    pub(super) fn remove_if_empty(&mut self, session: u64) {
        if self.sessions.get(&session).is_some_and(SessionRecalls::is_empty) {
            self.sessions.remove(&session);
        }
    }

    /// Removes and returns questions about removed nodes that were not answered since `limit`.
    pub(super) fn give_up(&mut self, session: u64, limit: Duration) -> Vec<Ino> {
        let mut nodes = Vec::new();
        let Some(recalls) = self.sessions.get_mut(&session) else { return nodes };
        let SessionRecalls { pending, outstanding, .. } = recalls;
        let late = outstanding.values_mut().chain(pending.as_mut());
        for recalled in late.filter(|recalled| recalled.since.at <= limit) {
            let asked = recalled.nodes.iter().filter(|(_, recall)| !recall.is_needed);
            let asked: Vec<Ino> = asked.map(|(ino, _)| *ino).collect();
            for ino in asked {
                recalled.remove(ino);
                nodes.push(ino);
            }
        }
        if pending.as_ref().is_some_and(|pending| pending.nodes.is_empty()) {
            *pending = None;
        }
        // Empty calls stay outstanding until they end: they count.
        self.remove_if_empty(session);
        nodes
    }
}
