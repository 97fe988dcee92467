//! The cache: nodes by number, with the readers and renames that concern them.

use std::collections::HashMap;

use crate::wire::{Errno, Handle, Ino, LeaseKind};

use super::node::Node;
use super::read_ahead::ReadAhead;
use super::renames::Renames;

/// Cached nodes.
#[derive(Debug, Default)]
pub(in crate::client) struct Cache {
    nodes: HashMap<Ino, Box<Node>>,
    pub(in crate::client) read_ahead: ReadAhead,
    pub(in crate::client) renames: Renames,
}

impl Cache {
    pub(in crate::client) fn get(&self, ino: Ino) -> Option<&Node> {
        self.nodes.get(&ino).map(Box::as_ref)
    }

    pub(in crate::client) fn get_mut(&mut self, ino: Ino) -> Option<&mut Node> {
        self.nodes.get_mut(&ino).map(Box::as_mut)
    }

    /// Returns a node.
    ///
    /// # Errors
    ///
    /// `ESTALE` if it is not cached.
    pub(in crate::client) fn node(&self, ino: Ino) -> Result<&Node, Errno> {
        self.get(ino).ok_or(Errno::STALE)
    }

    pub(in crate::client) fn node_mut(&mut self, ino: Ino) -> Result<&mut Node, Errno> {
        self.get_mut(ino).ok_or(Errno::STALE)
    }

    pub(in crate::client) fn handle(&self, ino: Ino) -> Result<Handle, Errno> {
        Ok(self.node(ino)?.handle)
    }

    /// Returns the handles of nodes whose leases are requested or given back.
    pub(in crate::client) fn handles(
        &self,
        nodes: &[(Ino, LeaseKind)],
    ) -> Result<Vec<(Handle, LeaseKind)>, Errno> {
        nodes.iter().map(|(ino, kind)| Ok((self.handle(*ino)?, *kind))).collect()
    }

    /// Returns whether a node is cached and operations may use its lease of at least `kind`.
    pub(in crate::client) fn permits(&self, ino: Ino, kind: LeaseKind) -> bool {
        self.get(ino).is_some_and(|node| node.permits(kind))
    }

    pub(in crate::client) fn insert(&mut self, node: Box<Node>) {
        self.nodes.insert(node.ino(), node);
    }

    pub(in crate::client) fn remove(&mut self, ino: Ino) -> Option<Box<Node>> {
        self.nodes.remove(&ino)
    }

    pub(in crate::client) fn iter(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values().map(Box::as_ref)
    }

    pub(in crate::client) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.values_mut().map(Box::as_mut)
    }

    pub(in crate::client) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Drops references of the kernel.
    pub(in crate::client) fn forget_references(&mut self, ino: Ino, count: u64) {
        if let Some(node) = self.get_mut(ino) {
            node.references = node.references.saturating_sub(count);
        }
    }
}
