//! Renames under way that only the server can decide: whether a directory would get into itself.
//!
//! Until the server has decided, the client's names are those of before. No change of the nodes is recorded meanwhile: it would
//! follow the rename, and be a change of something else. When the rename is applied, both directories are asked for again.

use crate::wire::Ino;

/// A rename under way.
#[derive(Debug)]
pub(super) struct Rename {
    /// Its batch.
    pub(super) number: u64,
    /// All nodes that take part.
    pub(super) nodes: Vec<Ino>,
    /// The two directories.
    pub(super) directories: [Ino; 2],
    /// The directory that another one replaces.
    pub(super) removed: Option<Ino>,
}

/// All renames under way.
#[derive(Debug, Default)]
pub(super) struct Renames(Vec<Rename>);

impl Renames {
    pub(super) fn add(&mut self, rename: Rename) {
        self.0.push(rename);
    }

    /// Returns the batch for which a change of a node waits.
    pub(super) fn batch_of(&self, node: Ino) -> Option<u64> {
        let rename = self.0.iter().find(|rename| rename.nodes.contains(&node))?;
        Some(rename.number)
    }

    /// Forgets the rename of a batch that the server has refused.
    pub(super) fn refuse(&mut self, number: u64) {
        self.0.retain(|rename| rename.number != number);
    }

    /// Forgets all: their batches are lost.
    pub(super) fn drop_all(&mut self) {
        self.0.clear();
    }

    /// Takes those whose batches are applied.
    pub(super) fn take_applied(&mut self, applied: u64) -> Vec<Rename> {
        self.0.extract_if(.., |rename| rename.number <= applied).collect()
    }
}
