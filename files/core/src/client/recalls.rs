//! The table of recalls that are not answered, and of leases that are on loan.

use crate::wire::{Ino, RecalledNode};

use super::effect::{NotifyToken, ServerCallback};
use super::loans::Loans;

/// A recall that is not answered.
#[derive(Debug)]
pub(super) struct Recall {
    /// The callback to answer; `None` if the client returns the leases without being asked.
    pub(super) callback: Option<ServerCallback>,
    pub(super) nodes: Vec<RecalledNode>,
    /// Nodes whose leases are returned with a batch.
    pub(super) with_batch: Vec<Ino>,
    /// The invalidation that the kernel carries out.
    pub(super) notification: Option<NotifyToken>,
    pub(super) rounds: u32,
}

/// Recalls that are not answered.
#[derive(Debug, Default)]
pub(super) struct Recalls {
    pub(super) recalls: Vec<Recall>,
    pub(super) loans: Loans,
}

impl Recalls {
    pub(super) fn len(&self) -> usize {
        self.recalls.len()
    }
}
