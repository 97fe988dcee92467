//! Recalls: what is asked back from each session, the callbacks outstanding, and what happens without an answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use apus_fs_wire::frame::{decode, encode};
use apus_fs_wire::limits::MAX_NODES;
use apus_fs_wire::{Callback, CallbackResponse, Ino, LeaseKind, RecalledNode};
use bytes::Bytes;

use super::Server;
use super::effect::{CallbackToken, ServerEffect};
use super::settings::{MAX_CALLBACKS, RECALL_TERMS, RETRY_PART, STUCK_TERMS};
use crate::store::Store;

/// What is asked of a session about a node.
#[derive(Clone, Copy, Debug)]
struct Recall {
    keep: LeaseKind,
    /// Whether a waiting request needs the lease: only then the session's life depends on the answer.
    is_needed: bool,
    is_removed: bool,
}

impl Recall {
    fn merge(self, other: Self) -> Self {
        Self {
            keep: self.keep.min(other.keep),
            is_needed: self.is_needed || other.is_needed,
            is_removed: self.is_removed || other.is_removed,
        }
    }

    /// Whether this asks for all that the other one asks for.
    fn covers(self, other: Self) -> bool {
        self.keep <= other.keep
            && self.is_needed >= other.is_needed
            && self.is_removed >= other.is_removed
    }
}

/// Recalls of several nodes, and since when the oldest one is wanted.
#[derive(Debug)]
struct Recalled {
    nodes: BTreeMap<Ino, Recall>,
    since: Duration,
    /// Numbers of nodes that a request needs, and that no request needs.
    counts: (usize, usize),
}

impl Recalled {
    fn new(since: Duration) -> Self {
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
struct SessionRecalls {
    /// Not sent yet.
    pending: Option<Recalled>,
    outstanding: BTreeMap<CallbackToken, Recalled>,
    /// When to call again after a call that failed.
    retry_at: Option<Duration>,
}

impl SessionRecalls {
    fn all(&self) -> impl Iterator<Item = &Recalled> {
        self.outstanding.values().chain(&self.pending)
    }

    fn is_empty(&self) -> bool {
        self.pending.is_none() && self.outstanding.is_empty()
    }

    /// Returns since when a waiting request needs an answer.
    fn needed_since(&self) -> Option<Duration> {
        let all = self.all().filter(|recalled| recalled.counts.0 > 0);
        all.map(|recalled| recalled.since).min()
    }

    /// Returns since when an answer is wanted that no request needs.
    fn asked_since(&self) -> Option<Duration> {
        let asked = self.all().filter(|recalled| recalled.counts.1 > 0);
        asked.map(|recalled| recalled.since).min()
    }

    fn add(&mut self, ino: Ino, recall: Recall, since: Duration) {
        let pending = self.pending.get_or_insert_with(|| Recalled::new(since));
        pending.since = pending.since.min(since);
        pending.insert(ino, recall);
    }

    /// Takes the nodes of the next call: none that is in another call already.
    fn next_call(&mut self) -> Option<Recalled> {
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
    last: u64,
    sessions: BTreeMap<u64, SessionRecalls>,
    tokens: BTreeMap<CallbackToken, u64>,
    /// Sessions that may have something to be sent.
    due: BTreeSet<u64>,
}

impl Recalls {
    /// Returns the name of a new callback.
    pub(super) fn draw_token(&mut self) -> CallbackToken {
        self.last += 1;
        CallbackToken(self.last)
    }

    /// Asks a session to give a lease back, or, if `is_removed`, whether it has the node open.
    pub(super) fn request(
        &mut self,
        session: u64,
        ino: Ino,
        keep: LeaseKind,
        is_removed: bool,
        now: Duration,
    ) {
        let recall = Recall { keep, is_needed: !is_removed, is_removed };
        let recalls = self.sessions.entry(session).or_default();
        let is_known = recalls
            .all()
            .filter_map(|recalled| recalled.nodes.get(&ino))
            .any(|known| known.covers(recall));
        if !is_known {
            recalls.add(ino, recall, now);
            self.due.insert(session);
        }
    }

    /// Returns what recalls let a session keep of a node; `None` without a recall.
    pub(super) fn keep(&self, session: u64, ino: Ino) -> Option<LeaseKind> {
        let recalls = self.sessions.get(&session)?;
        let nodes = recalls.all().filter_map(|recalled| recalled.nodes.get(&ino));
        nodes.map(|recall| recall.keep).min()
    }

    /// Sends a session's recalls again: it was heard.
    pub(super) fn wake(&mut self, session: u64) {
        if self.sessions.get(&session).is_some_and(|recalls| recalls.pending.is_some()) {
            self.due.insert(session);
        }
    }

    /// Withdraws a recall that was not sent: the client has given the lease back by itself.
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
        if let Some(recalls) = self.sessions.remove(&session) {
            for token in recalls.outstanding.keys() {
                self.tokens.remove(token);
            }
        }
    }

    fn remove_if_empty(&mut self, session: u64) {
        if self.sessions.get(&session).is_some_and(SessionRecalls::is_empty) {
            self.sessions.remove(&session);
        }
    }

    /// Takes questions about removed nodes that were not answered since `limit`.
    fn give_up(&mut self, session: u64, limit: Duration) -> Vec<Ino> {
        let mut nodes = Vec::new();
        let Some(recalls) = self.sessions.get_mut(&session) else { return nodes };
        let SessionRecalls { pending, outstanding, .. } = recalls;
        let late = outstanding.values_mut().chain(pending.as_mut());
        for recalled in late.filter(|recalled| recalled.since <= limit) {
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

impl<S: Store> Server<S> {
    /// Calls all sessions from which something is wanted.
    pub(super) fn send_recalls(&mut self) {
        for number in std::mem::take(&mut self.recalls.due) {
            let is_silent = self.is_silent(number);
            let Some(session) = self.sessions.get(number) else { continue };
            // A session that was silent for a term is not called: `check_recalls` ends it, or it is heard again.
            let peer = session.peer;
            let Some(recalls) = self.recalls.sessions.get_mut(&number) else { continue };
            if is_silent || recalls.retry_at.is_some_and(|at| self.now < at) {
                continue;
            }
            recalls.retry_at = None;
            while recalls.outstanding.len() < MAX_CALLBACKS
                && let Some(recalled) = recalls.next_call()
            {
                self.recalls.last += 1;
                let callback = CallbackToken(self.recalls.last);
                let nodes = recalled.nodes.iter().map(|(ino, recall)| RecalledNode {
                    node: self.proofs.handle(*ino),
                    keep: recall.keep,
                    is_removed: recall.is_removed,
                });
                let message = encode(&Callback::Recall { session: number, nodes: nodes.collect() });
                recalls.outstanding.insert(callback, recalled);
                self.recalls.tokens.insert(callback, number);
                self.effects.push_back(ServerEffect::Call { callback, peer, message });
            }
        }
    }

    /// Handles the outcome of a callback.
    pub(super) fn finish_recall(&mut self, callback: CallbackToken, response: Option<Bytes>) {
        // Without a session: a Fence, or the session has ended.
        let Some(number) = self.recalls.tokens.remove(&callback) else { return };
        let Some(recalls) = self.recalls.sessions.get_mut(&number) else { return };
        let Some(recalled) = recalls.outstanding.remove(&callback) else { return };
        let response = response.and_then(|bytes| decode::<CallbackResponse>(bytes).ok());
        match response.map(|decoded| decoded.message) {
            Some(CallbackResponse::Recalled { open }) => {
                if recalls.pending.is_some() {
                    self.recalls.due.insert(number);
                }
                self.recalls.remove_if_empty(number);
                // FSSERVE-6.
                self.commit_all();
                let open: BTreeSet<Ino> = open.iter().map(|handle| handle.ino).collect();
                for (ino, recall) in recalled.nodes {
                    self.reduce(number, ino, recall.keep);
                    if recall.is_removed {
                        self.orphans.decide(number, ino, open.contains(&ino));
                        self.drop_if_unused(ino);
                    }
                }
            }
            Some(CallbackResponse::UnknownSession)
                if self.sessions.get(number).is_some_and(|session| session.is_known) =>
            {
                self.end_session(number, false);
            }
            // A client that has not received its Welcome yet does not know the session either.
            Some(CallbackResponse::UnknownSession | CallbackResponse::Malformed) | None => {
                for (ino, recall) in recalled.nodes {
                    if recall.is_removed || self.leases.held(number, ino) > recall.keep {
                        recalls.add(ino, recall, recalled.since);
                    } else {
                        // The client has given the lease back by itself.
                        self.queue.touch(ino);
                    }
                }
                recalls.retry_at = Some(self.now + self.settings.term / RETRY_PART);
                self.recalls.remove_if_empty(number);
            }
        }
    }

    /// Returns when a session ends that does not answer; `None` if nothing is wanted of it.
    fn fence_deadline(&self, number: u64, recalls: &SessionRecalls) -> Option<Duration> {
        let term = self.settings.term;
        let since = recalls.needed_since()?;
        let session = self.sessions.get(number)?;
        let stuck = session.last_batch.max(since) + term * STUCK_TERMS;
        Some((session.last_heard + term).min(stuck).min(since + term * RECALL_TERMS))
    }

    /// Ends sessions that do not answer recalls, and calls others again.
    pub(super) fn check_recalls(&mut self) {
        let all = self.recalls.sessions.iter();
        let late = all.filter(|(number, recalls)| {
            self.fence_deadline(**number, recalls).is_some_and(|deadline| self.now >= deadline)
        });
        let late: Vec<u64> = late.map(|(number, _)| *number).collect();
        for number in late {
            self.end_session(number, true);
        }
        let numbers: Vec<u64> = self.recalls.sessions.keys().copied().collect();
        for number in numbers {
            let Some(recalls) = self.recalls.sessions.get(&number) else { continue };
            if recalls.retry_at.is_some_and(|at| self.now >= at) {
                self.recalls.due.insert(number);
            }
            if self.is_silent(number) {
                continue;
            }
            // A client that sends requests and cannot be asked keeps what it may have open, until it closes it.
            let patience = self.settings.term * STUCK_TERMS;
            if let Some(limit) = self.now.checked_sub(patience) {
                for ino in self.recalls.give_up(number, limit) {
                    self.orphans.decide(number, ino, true);
                    self.queue.touch(ino);
                }
            }
        }
    }

    /// Returns when [`check_recalls`](Self::check_recalls) is needed.
    pub(super) fn recall_deadline(&self) -> Option<Duration> {
        let deadlines = self.recalls.sessions.iter().flat_map(|(number, recalls)| {
            // A silent session is not called: neither retry nor questions have a deadline then.
            let is_heard = !self.is_silent(*number);
            let retry = recalls.retry_at.filter(|_| is_heard);
            let since = recalls.asked_since().filter(|_| is_heard);
            let question = since.map(|since| since + self.settings.term * STUCK_TERMS);
            [self.fence_deadline(*number, recalls), retry, question].into_iter().flatten()
        });
        deadlines.min()
    }
}
