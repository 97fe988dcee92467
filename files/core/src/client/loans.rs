//! Loans: exclusive leases of contended nodes, which go back with the changes of the operations that waited for them (FSCLIENT-7).
//!
//! A lease that goes back by itself takes the way of one that is recalled: the kernel drops what it has cached, the changes leave,
//! and with them the lease.

use crate::wire::Ino;

use super::effect::OpToken;
use super::waiting::Waiting;

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

    /// Takes the nodes of loans that no pending operation waits for.
    pub(super) fn take_unused(&mut self, waiting: &Waiting) -> Vec<Ino> {
        let is_over = |loan: &mut Loan| !loan.users.iter().any(|user| waiting.contains(*user));
        self.loans.extract_if(.., is_over).map(|loan| loan.node).collect()
    }

    pub(super) fn clear(&mut self) {
        self.loans.clear();
    }
}
