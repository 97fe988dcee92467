//! Eviction: drops unused nodes when the cache is full, and returns their leases.

use std::collections::HashMap;

use crate::wire::limits::MAX_NODES;
use crate::wire::{Ino, LeaseKind, SessionRequest};

use super::cache::Cache;
use super::node::Node;
use crate::client::interface::effect::Clock;
use crate::client::link::Link;
use crate::client::link::calls::Purpose;
use crate::client::link::session::SessionState;

/// Number of cached nodes above which unused ones are dropped.
const MOST_NODES: usize = 200_000;

/// Decides when the cache is scanned.
#[derive(Debug)]
pub(in crate::client) struct Eviction {
    /// Number of cached nodes above which the next scan is made.
    threshold: usize,
}

impl Default for Eviction {
    fn default() -> Self {
        Self { threshold: MOST_NODES }
    }
}

impl Eviction {
    /// Drops clean nodes without references if the cache is full.
    pub(in crate::client) fn run(&mut self, link: &mut Link, cache: &mut Cache, clock: &Clock) {
        if cache.len() <= self.threshold || link.session.state != SessionState::Live {
            return;
        }
        let unused = unused_nodes(link, cache);
        for nodes in unused.chunks(MAX_NODES) {
            let mut leases = Vec::new();
            for ino in nodes {
                let Some(node) = cache.remove(*ino) else { continue };
                link.calls.void(*ino);
                if node.lease > LeaseKind::None {
                    leases.push((node.handle, LeaseKind::None));
                }
            }
            if !leases.is_empty() {
                link.call(clock, Purpose::Farewell, SessionRequest::Release { leases });
            }
        }
        // Scan again only after the cache has grown by 1 %.
        self.threshold = MOST_NODES.max(cache.len() + MOST_NODES / 100);
    }
}

/// Returns up to a tenth of the cache: clean nodes without references, and no parent of a cached
/// node.
fn unused_nodes(link: &Link, cache: &Cache) -> Vec<Ino> {
    let applied = link.log.applied();
    let is_unused = |node: &Node| {
        !node.is_in_use()
            && !node.is_dirty(applied)
            && node.recall.is_none()
            && node.ino() != Ino::ROOT
    };
    // Only directories that could be dropped need a check for children.
    let directories = cache.iter().filter(|node| node.is_directory() && is_unused(node));
    let mut is_parent: HashMap<Ino, bool> = directories.map(|node| (node.ino(), false)).collect();
    for parent in cache.iter().filter_map(|node| node.parent) {
        if let Some(is_parent) = is_parent.get_mut(&parent) {
            *is_parent = true;
        }
    }
    let unused = cache
        .iter()
        .filter(|node| is_unused(node) && !is_parent.get(&node.ino()).copied().unwrap_or_default());
    unused.map(Node::ino).take(MOST_NODES / 10).collect()
}
