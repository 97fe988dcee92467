//! Loans: exclusive leases of contended nodes, which are returned with the changes of the
//! operations that waited for them (FSCLIENT-7).
//!
//! A voluntary return follows the path of a recall: the kernel drops its cache, then the changes
//! are sent, and the lease is returned with them.

use crate::wire::Ino;

use crate::client::interface::effect::OpToken;
use crate::client::waiting::Waiting;

/// A lease that was lent.
#[derive(Debug)]
struct Loan {
    node: Ino,
    /// Operations that waited for it.
    users: Vec<OpToken>,
}

/// Lent leases that are not being returned yet.
#[derive(Debug, Default)]
pub(in crate::client) struct Loans {
    loans: Vec<Loan>,
}

impl Loans {
    pub(in crate::client) fn add(&mut self, node: Ino, users: &[OpToken]) {
        self.loans.push(Loan { node, users: users.to_vec() });
    }

    /// Removes a node whose lease is recalled: the answer returns it.
    pub(in crate::client) fn remove(&mut self, node: Ino) {
        self.loans.retain(|loan| loan.node != node);
    }

    /// Removes the loans that no pending operation waited for, and returns their nodes.
    pub(in crate::client) fn take_unused(&mut self, waiting: &Waiting) -> Vec<Ino> {
        let is_over = |loan: &mut Loan| !loan.users.iter().any(|user| waiting.contains(*user));
        self.loans.extract_if(.., is_over).map(|loan| loan.node).collect()
    }

    pub(in crate::client) fn clear(&mut self) {
        self.loans.clear();
    }
}
