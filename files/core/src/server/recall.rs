//! Recalling: callbacks to clients, their outcomes, and what happens without an answer.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::wire::frame::{decode, encode};
use crate::wire::{Callback, CallbackResponse, Ino, RecalledNode};
use bytes::Bytes;

use super::Server;
use super::effect::{CallbackToken, ServerEffect};
use super::recalls::SessionRecalls;
use super::settings::{MAX_CALLBACKS, RECALL_TERMS, RETRY_PART, STUCK_TERMS};
use crate::store::Store;

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
                self.counters.recalls += 1;
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
    /// The others go on then (FS-15).
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
