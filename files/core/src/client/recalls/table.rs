//! The table of recalls that are not answered, and of leases that are on loan.

use crate::wire::{Ino, RecalledNode};

use super::loans::Loans;
use crate::client::interface::effect::{NotifyToken, ServerCallback};

/// A recall that is not answered.
#[derive(Debug)]
pub(in crate::client) struct Recall {
    /// The callback to answer; `None` if the client returns the leases without being asked.
    pub(in crate::client) callback: Option<ServerCallback>,
    pub(in crate::client) nodes: Vec<RecalledNode>,
    /// Nodes whose leases are returned with a batch.
    pub(in crate::client) with_batch: Vec<Ino>,
    /// The invalidation that the kernel carries out.
    pub(in crate::client) notification: Option<NotifyToken>,
    pub(in crate::client) rounds: u32,
}

/// Recalls that are not answered.
#[derive(Debug, Default)]
pub(in crate::client) struct Recalls {
    pub(in crate::client) recalls: Vec<Recall>,
    pub(in crate::client) loans: Loans,
}

impl Recalls {
    pub(in crate::client) fn len(&self) -> usize {
        self.recalls.len()
    }
}
