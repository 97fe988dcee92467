//! The cache: nodes by number, with the readers and renames that concern them.

use std::collections::HashMap;

use crate::wire::{Errno, Handle, Ino, LeaseKind};

use super::node::Node;
use super::read_ahead::ReadAhead;
use super::renames::Renames;

/// Cached nodes.
#[derive(Debug, Default)]
pub(super) struct Cache {
    nodes: HashMap<Ino, Box<Node>>,
    pub(super) read_ahead: ReadAhead,
    pub(super) renames: Renames,
}

impl Cache {
    pub(super) fn get(&self, ino: Ino) -> Option<&Node> {
        self.nodes.get(&ino).map(Box::as_ref)
    }

    pub(super) fn get_mut(&mut self, ino: Ino) -> Option<&mut Node> {
        self.nodes.get_mut(&ino).map(Box::as_mut)
    }

    /// Returns a node.
    ///
    /// # Errors
    ///
    /// `ESTALE` if it is not cached.
    pub(super) fn node(&self, ino: Ino) -> Result<&Node, Errno> {
        self.get(ino).ok_or(Errno::STALE)
    }

    pub(super) fn node_mut(&mut self, ino: Ino) -> Result<&mut Node, Errno> {
        self.get_mut(ino).ok_or(Errno::STALE)
    }

    pub(super) fn handle(&self, ino: Ino) -> Result<Handle, Errno> {
        Ok(self.node(ino)?.handle)
    }

    /// Returns the handles of nodes whose leases are requested or given back.
    pub(super) fn handles(
        &self,
        nodes: &[(Ino, LeaseKind)],
    ) -> Result<Vec<(Handle, LeaseKind)>, Errno> {
        nodes.iter().map(|(ino, kind)| Ok((self.handle(*ino)?, *kind))).collect()
    }

    /// Returns whether a node is cached and operations may use its lease of at least `kind`.
    pub(super) fn permits(&self, ino: Ino, kind: LeaseKind) -> bool {
        self.get(ino).is_some_and(|node| node.permits(kind))
    }

    pub(super) fn insert(&mut self, node: Box<Node>) {
        self.nodes.insert(node.ino(), node);
    }

    pub(super) fn remove(&mut self, ino: Ino) -> Option<Box<Node>> {
        self.nodes.remove(&ino)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values().map(Box::as_ref)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.values_mut().map(Box::as_mut)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Drops references of the kernel.
    pub(super) fn forget_references(&mut self, ino: Ino, count: u64) {
        if let Some(node) = self.get_mut(ino) {
            node.references = node.references.saturating_sub(count);
        }
    }
}
