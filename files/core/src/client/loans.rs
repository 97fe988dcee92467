//! Loans: exclusive leases of contended nodes, which go back with the changes of the operations that waited for them (FSCLIENT-7).
//!
//! A lease that goes back by itself takes the way of one that is recalled: the kernel drops what it has cached, the changes leave,
//! and with them the lease.

use crate::wire::{Ino, LeaseKind, RecalledNode};

use super::Client;
use super::effect::OpToken;

/// A lease that was lent.
#[derive(Debug)]
struct Loan {
    node: Ino,
    /// Operations that waited for it.
    users: Vec<OpToken>,
}

/// Leases that were lent and are not on their way back.
#[derive(Debug, Default)]
pub(super) struct Loans {
    loans: Vec<Loan>,
}

impl Loans {
    pub(super) fn add(&mut self, node: Ino, users: &[OpToken]) {
        self.loans.push(Loan { node, users: users.to_vec() });
    }

    /// Removes a node whose lease is recalled: it goes back with the answer.
    pub(super) fn remove(&mut self, node: Ino) {
        self.loans.retain(|loan| loan.node != node);
    }

    pub(super) fn clear(&mut self) {
        self.loans.clear();
    }
}

impl Client {
    /// Begins to give back what no operation needs that has waited for it.
    pub(super) fn return_loans(&mut self) {
        if self.loans.loans.is_empty() {
            return;
        }
        let pending = &self.pending;
        let is_over = |loan: &mut Loan| !loan.users.iter().any(|user| pending.contains_key(user));
        let over: Vec<Ino> =
            self.loans.loans.extract_if(.., is_over).map(|loan| loan.node).collect();
        let nodes = over.into_iter().filter_map(|ino| {
            let node = self.nodes.get(&ino)?;
            let is_used = node.lease == LeaseKind::Exclusive && node.recall.is_none();
            let (keep, is_removed) = (LeaseKind::None, false);
            is_used.then_some(RecalledNode { node: node.handle, keep, is_removed })
        });
        let nodes: Vec<RecalledNode> = nodes.collect();
        if !nodes.is_empty() {
            self.begin_recall(None, nodes);
        }
    }
}
