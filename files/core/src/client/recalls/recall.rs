//! Recalls of leases by the server: this host drops its cached state of a node before another
//! client's change takes effect (FS-5).
//!
//! A recall has two stages ([`RecallStage`]). While the kernel drops its cache, operations proceed,
//! because the kernel waits for operations that hold its pages locked. Then operations wait until
//! the nodes' changes are applied at the server.

use crate::wire::{CallbackResponse, LeaseKind, RecalledNode, SessionRequest};

use super::table::{Recall, Recalls};
use crate::client::interface::effect::{Clock, Invalidation, NotifyToken, ServerCallback};
use crate::client::link::Link;
use crate::client::link::calls::Purpose;
use crate::client::link::log::Log;
use crate::client::link::output::Output;
use crate::client::nodes::cache::Cache;
use crate::client::nodes::node::RecallStage;
use crate::client::waiting::{Event, Waiting};

/// Number of requests to drop the pages of a file that is read continuously, before the recall
/// proceeds. Pages that the kernel caches in between are dropped right after.
const ROUNDS: u32 = 4;

/// Starts to return leases.
pub(in crate::client) fn start_recall(
    link: &mut Link,
    cache: &mut Cache,
    recalls: &mut Recalls,
    callback: Option<ServerCallback>,
    nodes: Vec<RecalledNode>,
) {
    link.output.counters.recalls += u64::from(callback.is_some());
    for recalled in &nodes {
        link.calls.void(recalled.node.ino);
        if callback.is_some() {
            recalls.loans.remove(recalled.node.ino);
        } else {
            link.calls.returning.insert(recalled.node.ino);
        }
        // If the lease is being returned already, it is not used again.
        if let Some(node) = cache.get_mut(recalled.node.ino) {
            node.recall.get_or_insert(RecallStage::Kernel);
        }
    }
    let (notification, rounds, with_batch) = (None, 0, Vec::new());
    let mut recall = Recall { callback, nodes, with_batch, notification, rounds };
    recall.notification = invalidate_nodes(&link.log, &mut link.output, cache, &recall.nodes);
    if recall.notification.is_none() {
        start_flush(&mut link.log, cache, &mut recall);
    }
    recalls.recalls.push(recall);
}

/// Starts to return the leases on loan that no operation needs any more (FSCLIENT-7).
pub(in crate::client) fn return_loans(
    link: &mut Link,
    cache: &mut Cache,
    recalls: &mut Recalls,
    waiting: &Waiting,
) {
    let over = recalls.loans.take_unused(waiting).into_iter();
    let nodes = over.filter_map(|ino| {
        let node = cache.get(ino)?;
        let is_used = node.lease == LeaseKind::Exclusive && node.recall.is_none();
        let (keep, is_removed) = (LeaseKind::None, false);
        is_used.then_some(RecalledNode { node: node.handle, keep, is_removed })
    });
    let nodes: Vec<RecalledNode> = nodes.collect();
    if !nodes.is_empty() {
        start_recall(link, cache, recalls, None, nodes);
    }
}

/// Requests that the kernel drop its cache of the nodes; `None` if it has none.
fn invalidate_nodes(
    log: &Log,
    output: &mut Output,
    cache: &mut Cache,
    nodes: &[RecalledNode],
) -> Option<NotifyToken> {
    let (mut items, mut names) = (Vec::new(), false);
    let applied = log.applied();
    for recalled in nodes {
        let Some(node) = cache.get_mut(recalled.node.ino) else { continue };
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
    if items.is_empty() { None } else { Some(output.invalidate(items)) }
}

fn start_flush(log: &mut Log, cache: &mut Cache, recall: &mut Recall) {
    for recalled in &recall.nodes {
        let ino = recalled.node.ino;
        let Some(node) = cache.get_mut(ino) else { continue };
        node.recall = Some(RecallStage::Flush);
        if recall.callback.is_none() && log.give_back(recalled.node, node.last_batch) {
            recall.with_batch.push(ino);
        }
    }
    log.seal();
}

/// Handles the completion of an invalidation by the kernel.
pub(in crate::client) fn handle_notified(
    link: &mut Link,
    cache: &mut Cache,
    recalls: &mut Recalls,
    notification: NotifyToken,
) {
    for recall in &mut recalls.recalls {
        if recall.notification != Some(notification) {
            continue;
        }
        recall.notification = None;
        recall.rounds += 1;
        let read_again = recall
            .nodes
            .iter()
            .any(|recalled| cache.get(recalled.node.ino).is_some_and(|node| node.read_in_recall));
        if read_again {
            let again = invalidate_nodes(&link.log, &mut link.output, cache, &recall.nodes);
            if recall.rounds < ROUNDS {
                recall.notification = again;
            }
        }
        if recall.notification.is_none() {
            start_flush(&mut link.log, cache, recall);
        }
    }
}

/// Ends recalls whose nodes are clean.
pub(in crate::client) fn end_recalls(
    link: &mut Link,
    cache: &mut Cache,
    recalls: &mut Recalls,
    waiting: &mut Waiting,
    clock: &Clock,
) {
    // Voluntary returns first: an answer implies that no lease of its nodes is in flight.
    for is_answer in [false, true] {
        let mut at = 0;
        while at < recalls.recalls.len() {
            let recall = &recalls.recalls[at];
            if recall.callback.is_some() == is_answer && is_clean(link, cache, recall) {
                let recall = recalls.recalls.remove(at);
                end_recall(link, cache, clock, &recall);
                waiting.wake_for(Event::Recall);
            } else {
                at += 1;
            }
        }
    }
}

/// Returns whether a recall can end: all changes of its nodes are applied, and no lease of them is
/// being returned.
fn is_clean(link: &Link, cache: &Cache, recall: &Recall) -> bool {
    let applied = link.log.applied();
    let is_answer = recall.callback.is_some();
    recall.notification.is_none()
        && recall.nodes.iter().all(|recalled| {
            let ino = recalled.node.ino;
            let is_returning = is_answer && link.calls.returning.contains(&ino);
            !is_returning && cache.get(ino).is_none_or(|node| !node.is_dirty(applied))
        })
}

fn end_recall(link: &mut Link, cache: &mut Cache, clock: &Clock, recall: &Recall) {
    let (mut open, mut leases) = (Vec::new(), Vec::new());
    for recalled in &recall.nodes {
        let ino = recalled.node.ino;
        if recall.callback.is_none() {
            link.calls.returning.remove(&ino);
            if !recall.with_batch.contains(&ino) {
                leases.push((recalled.node, recalled.keep));
            }
        }
        let Some(node) = cache.get_mut(ino) else { continue };
        node.recall = None;
        node.reduce_lease(recalled.keep);
        if node.lease == LeaseKind::None {
            node.drop_cache();
            // Reads that were sent during the recall, before the next holder changes the file.
            link.calls.void_reads(ino);
        }
        if recalled.is_removed {
            node.is_orphan = true;
            if node.openings > 0 {
                open.push(recalled.node);
            }
        }
    }
    if let Some(callback) = recall.callback {
        link.output.answer(callback, &CallbackResponse::Recalled { open });
    }
    if !leases.is_empty() {
        link.call(clock, Purpose::Farewell, SessionRequest::Release { leases });
    }
}

/// Answers all recalls of a session that has ended.
pub(in crate::client) fn drop_recalls(
    link: &mut Link,
    recalls: &mut Recalls,
    waiting: &mut Waiting,
) {
    for recall in std::mem::take(&mut recalls.recalls) {
        if let Some(callback) = recall.callback {
            link.output.answer(callback, &CallbackResponse::UnknownSession);
        }
    }
    recalls.loans.clear();
    link.calls.returning.clear();
    waiting.wake_for(Event::Recall);
}
