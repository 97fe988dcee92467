//! Renames in flight that only the server can decide: a directory might become its own descendant.
//!
//! Until the server has decided, the client keeps the earlier names and records no change of the
//! nodes: such a change would follow the rename, and might concern other nodes. When the rename is
//! applied, the names of both directories are read again.

use crate::wire::Ino;

/// A rename in flight.
#[derive(Debug)]
pub(in crate::client) struct Rename {
    /// Its batch.
    pub(in crate::client) number: u64,
    /// All nodes that the rename changes.
    pub(in crate::client) nodes: Vec<Ino>,
    /// The two directories.
    pub(in crate::client) directories: [Ino; 2],
    /// The directory that another one replaces.
    pub(in crate::client) removed: Option<Ino>,
}

/// All renames in flight.
#[derive(Debug, Default)]
pub(in crate::client) struct Renames(Vec<Rename>);

impl Renames {
    pub(in crate::client) fn add(&mut self, rename: Rename) {
        self.0.push(rename);
    }

    /// Returns the batch that a change of a node must wait for.
    pub(in crate::client) fn batch_of(&self, node: Ino) -> Option<u64> {
        let rename = self.0.iter().find(|rename| rename.nodes.contains(&node))?;
        Some(rename.number)
    }

    /// Forgets the rename of a batch that the server has refused.
    pub(in crate::client) fn refuse(&mut self, number: u64) {
        self.0.retain(|rename| rename.number != number);
    }

    /// Forgets all: their batches are lost.
    pub(in crate::client) fn drop_all(&mut self) {
        self.0.clear();
    }

    /// Removes and returns the renames whose batches are applied.
    pub(in crate::client) fn take_applied(&mut self, applied: u64) -> Vec<Rename> {
        self.0.extract_if(.., |rename| rename.number <= applied).collect()
    }
}
