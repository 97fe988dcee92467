//! Recalls of leases by the server: what this host has cached goes before another client's change takes effect (FS-5).
//!
//! A recall goes through two stages ([`RecallStage`]). While the kernel drops what it has cached, operations go on, because the kernel
//! waits for those that have its pages locked. Then operations wait, until the nodes' changes are applied at the server.

use crate::wire::{
    Callback, CallbackResponse, Ino, LeaseKind, RecalledNode, SessionRequest, frame,
};
use bytes::Bytes;

use super::Client;
use super::calls::Purpose;
use super::effect::{ClientEffect, Clock, Invalidation, NotifyToken, ServerCallback};
use super::node::RecallStage;

/// Times that the kernel is asked to drop pages of a file that is being read all the time, before the recall goes on. What it caches
/// again in between is dropped right after.
const ROUNDS: u32 = 4;

/// A recall that is not answered.
#[derive(Debug)]
struct Recall {
    /// What is answered; `None` if the client gives the leases back by itself.
    callback: Option<ServerCallback>,
    nodes: Vec<RecalledNode>,
    /// Nodes that go back with a batch.
    with_batch: Vec<Ino>,
    /// The invalidation that the kernel carries out.
    notification: Option<NotifyToken>,
    rounds: u32,
}

/// Recalls that are not answered.
#[derive(Debug, Default)]
pub(super) struct Recalls {
    recalls: Vec<Recall>,
}

impl Recalls {
    pub(super) fn len(&self) -> usize {
        self.recalls.len()
    }
}

impl Client {
    pub(super) fn take_callback(
        &mut self,
        clock: &Clock,
        callback: ServerCallback,
        message: Bytes,
    ) {
        match frame::decode::<Callback>(message).map(|decoded| decoded.message) {
            Ok(Callback::Recall { session, nodes }) if self.session.number == Some(session) => {
                self.begin_recall(Some(callback), nodes);
            }
            Ok(Callback::Fence { session }) if self.session.number == Some(session) => {
                self.answer(callback, &CallbackResponse::Recalled { open: Vec::new() });
                self.end_session(clock);
            }
            Ok(_) => self.answer(callback, &CallbackResponse::UnknownSession),
            Err(_) => self.answer(callback, &CallbackResponse::Malformed),
        }
    }

    fn answer(&mut self, callback: ServerCallback, response: &CallbackResponse) {
        let message = frame::encode(response);
        self.effects.push_back(ClientEffect::Answer { callback, message });
    }

    /// Begins to give leases back.
    pub(super) fn begin_recall(
        &mut self,
        callback: Option<ServerCallback>,
        nodes: Vec<RecalledNode>,
    ) {
        self.counters.recalls += u64::from(callback.is_some());
        for recalled in &nodes {
            self.calls.void(recalled.node.ino);
            if callback.is_some() {
                self.loans.remove(recalled.node.ino);
            } else {
                self.calls.returning.insert(recalled.node.ino);
            }
            // The lease may be on its way back already: then it is not used again.
            if let Some(node) = self.nodes.get_mut(&recalled.node.ino) {
                node.recall.get_or_insert(RecallStage::Kernel);
            }
        }
        let (notification, rounds, with_batch) = (None, 0, Vec::new());
        let mut recall = Recall { callback, nodes, with_batch, notification, rounds };
        recall.notification = self.ask_kernel(&recall.nodes);
        if recall.notification.is_none() {
            self.begin_flush(&mut recall);
        }
        self.recalls.recalls.push(recall);
    }

    /// Asks the kernel to drop what it has of the nodes; `None` if it has nothing.
    fn ask_kernel(&mut self, nodes: &[RecalledNode]) -> Option<NotifyToken> {
        let (mut items, mut names) = (Vec::new(), false);
        let applied = self.log.applied();
        for recalled in nodes {
            let Some(node) = self.nodes.get_mut(&recalled.node.ino) else { continue };
            node.read_in_recall = false;
            // Pages of a shared mapping are written when they are dropped.
            let data = node.kernel_data && (recalled.keep == LeaseKind::None || node.writers > 0);
            let changes = recalled.keep == LeaseKind::None || node.differs_in_times(applied);
            let attributes = changes && node.references > 0;
            names |= recalled.keep == LeaseKind::None && node.kernel_names;
            if data || attributes {
                items.push(Invalidation::Node { node: recalled.node.ino, data });
            }
        }
        if names {
            items.push(Invalidation::Names);
        }
        if items.is_empty() { None } else { Some(self.invalidate(items)) }
    }

    pub(super) fn invalidate(&mut self, items: Vec<Invalidation>) -> NotifyToken {
        self.last_notification += 1;
        let notification = NotifyToken(self.last_notification);
        self.effects.push_back(ClientEffect::Invalidate { notification, items });
        notification
    }

    fn begin_flush(&mut self, recall: &mut Recall) {
        for recalled in &recall.nodes {
            let ino = recalled.node.ino;
            let Some(node) = self.nodes.get_mut(&ino) else { continue };
            node.recall = Some(RecallStage::Flush);
            if recall.callback.is_none() && self.log.give_back(recalled.node, node.last_batch) {
                recall.with_batch.push(ino);
            }
        }
        self.log.seal();
    }

    pub(super) fn take_notified(&mut self, _: &Clock, notification: NotifyToken) {
        let mut recalls = std::mem::take(&mut self.recalls.recalls);
        for recall in &mut recalls {
            if recall.notification != Some(notification) {
                continue;
            }
            recall.notification = None;
            recall.rounds += 1;
            let read_again = recall.nodes.iter().any(|recalled| {
                self.nodes.get(&recalled.node.ino).is_some_and(|node| node.read_in_recall)
            });
            if read_again {
                let again = self.ask_kernel(&recall.nodes);
                if recall.rounds < ROUNDS {
                    recall.notification = again;
                }
            }
            if recall.notification.is_none() {
                self.begin_flush(recall);
            }
        }
        self.recalls.recalls = recalls;
    }

    /// Answers recalls whose nodes are clean.
    pub(super) fn tend_recalls(&mut self, clock: &Clock) {
        // What the client gives back by itself goes first: an answer says that nothing is on its way.
        self.end_recalls(clock, |recall| recall.callback.is_none());
        self.end_recalls(clock, |recall| recall.callback.is_some());
    }

    fn end_recalls(&mut self, clock: &Clock, is_meant: impl Fn(&Recall) -> bool) {
        let applied = self.log.applied();
        let mut at = 0;
        while at < self.recalls.recalls.len() {
            let recall = &self.recalls.recalls[at];
            let is_answer = recall.callback.is_some();
            let clean = is_meant(recall)
                && recall.notification.is_none()
                && recall.nodes.iter().all(|recalled| {
                    let ino = recalled.node.ino;
                    let node = self.nodes.get(&ino);
                    let is_returning = is_answer && self.calls.returning.contains(&ino);
                    !is_returning && node.is_none_or(|node| !node.is_dirty(applied))
                });
            if clean {
                let recall = self.recalls.recalls.remove(at);
                self.end_recall(clock, &recall);
            } else {
                at += 1;
            }
        }
    }

    fn end_recall(&mut self, clock: &Clock, recall: &Recall) {
        let (mut open, mut leases) = (Vec::new(), Vec::new());
        for recalled in &recall.nodes {
            let ino = recalled.node.ino;
            if recall.callback.is_none() {
                self.calls.returning.remove(&ino);
                if !recall.with_batch.contains(&ino) {
                    leases.push((recalled.node, recalled.keep));
                }
            }
            let Some(node) = self.nodes.get_mut(&ino) else { continue };
            node.recall = None;
            node.reduce_lease(recalled.keep);
            if node.lease == LeaseKind::None {
                node.drop_cache();
                // Reads that were sent during the recall, before the next holder changes the file.
                self.calls.void_reads(recalled.node.ino);
            }
            if recalled.is_removed {
                node.is_orphan = true;
                if node.openings > 0 {
                    open.push(recalled.node);
                }
            }
        }
        if let Some(callback) = recall.callback {
            self.answer(callback, &CallbackResponse::Recalled { open });
        }
        if !leases.is_empty() {
            self.call(clock, Purpose::Farewell, SessionRequest::Release { leases });
        }
        self.ready.extend(self.for_recall.drain(..));
    }

    /// Answers all recalls of a session that has ended.
    pub(super) fn drop_recalls(&mut self) {
        for recall in std::mem::take(&mut self.recalls.recalls) {
            if let Some(callback) = recall.callback {
                self.answer(callback, &CallbackResponse::UnknownSession);
            }
        }
        self.loans.clear();
        self.calls.returning.clear();
        self.ready.extend(self.for_recall.drain(..));
    }
}
