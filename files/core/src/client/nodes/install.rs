//! Installs nodes, names and leases from responses in the cache.

use std::collections::HashSet;

use crate::wire::{
    Attributes, FoundNode, Handle, Ino, LeaseKind, Listing, Name, NodeKind, PathStep,
};

use super::cache::Cache;
use super::contents::Contents;
use super::node::Node;
use crate::client::link::log::Log;

/// Contents of files up to this length are kept in memory when they are at the server.
pub(in crate::client) const KEPT_FILE: u64 = 64 << 10;

/// Installs a node. Without a lease, only its number is used.
pub(in crate::client) fn install(
    log: &Log,
    cache: &mut Cache,
    entry: &FoundNode,
    voided: &HashSet<Ino>,
) {
    let ino = entry.handle.ino;
    let lease = if voided.contains(&ino) { LeaseKind::None } else { entry.lease };
    install_leased(cache, entry.handle, Some(&entry.attributes), lease);
    let Some(node) = cache.get_mut(ino) else { return };
    let Some(contents) = &entry.contents else { return };
    match node.attributes.kind {
        NodeKind::Symlink => node.target = Some(Box::new(contents.clone())),
        NodeKind::File
            if lease > LeaseKind::None
                && node.last_batch <= log.applied()
                && node.attributes.version.data == entry.attributes.version.data =>
        {
            node.contents.fill_from_server(0, contents);
        }
        _ => {}
    }
}

/// Installs a lease, with the attributes at the time of the grant.
pub(in crate::client) fn install_leased(
    cache: &mut Cache,
    handle: Handle,
    attributes: Option<&Attributes>,
    lease: LeaseKind,
) {
    let ino = handle.ino;
    match (cache.get_mut(ino), attributes) {
        (None, Some(attributes)) => {
            cache.insert(Box::new(Node::new(handle, *attributes, lease)));
        }
        (None, None) => {}
        (Some(node), attributes) => {
            node.handle = handle;
            // The server has found a removed directory before it applied the removal.
            if node.is_gone && node.is_directory() {
                return;
            }
            // Under an exclusive lease, the client's attributes are newer than the server's.
            if node.lease == LeaseKind::Exclusive || lease == LeaseKind::None {
                return;
            }
            // Under a shared lease, no other client changes the node: the server has read these
            // attributes before it applied this client's last batch.
            let is_stale = |attributes: &&Attributes| {
                node.lease > LeaseKind::None
                    && attributes.version.change < node.attributes.version.change
            };
            if let Some(attributes) = attributes.filter(|attributes| !is_stale(attributes)) {
                if node.lease == LeaseKind::None || node.attributes.version != attributes.version {
                    if node.attributes.version.data != attributes.version.data {
                        node.contents = Contents::at_server();
                    }
                    if node.attributes.version.change != attributes.version.change {
                        node.forget_names();
                        node.xattrs = None;
                    }
                }
                node.attributes = *attributes;
                node.server_times = None;
                node.is_gone = false;
            }
            node.lease = node.lease.max(lease);
        }
    }
}

/// Installs the steps of a walk from `directory`.
pub(in crate::client) fn install_walk(
    log: &Log,
    cache: &mut Cache,
    mut directory: Ino,
    (path, steps): (&[Name], &[PathStep]),
    voided: &HashSet<Ino>,
) {
    for (name, step) in path.iter().zip(steps) {
        match step {
            PathStep::Found(entry) => {
                install(log, cache, entry, voided);
                install_name(cache, directory, name, Some(entry.handle.ino));
                directory = entry.handle.ino;
            }
            PathStep::Absent => return install_name(cache, directory, name, None),
            PathStep::Failed(_) => return,
        }
    }
}

/// Installs a name, if the directory's lease permits its use and the cache has no state for the
/// name.
fn install_name(cache: &mut Cache, directory: Ino, name: &Name, found: Option<Ino>) {
    let usable = cache
        .get(directory)
        .is_some_and(|node| node.lease > LeaseKind::None && node.names().get(name).is_none());
    if !usable {
        return;
    }
    if let Some(child) = found.and_then(|ino| cache.get_mut(ino)) {
        child.parent = Some(directory);
    }
    if let Some(node) = cache.get_mut(directory) {
        match found {
            Some(ino) => node.names_mut().put(name.clone(), ino),
            None => {
                node.names_mut().absent.insert(name.clone());
            }
        }
    }
}

/// Installs a directory's names.
pub(in crate::client) fn install_listing(
    log: &Log,
    cache: &mut Cache,
    listing: &Listing,
    after: Option<&Name>,
    voided: &HashSet<Ino>,
) {
    let ino = listing.directory.ino;
    let lease = if voided.contains(&ino) { LeaseKind::None } else { listing.lease };
    install_leased(cache, listing.directory, Some(&listing.attributes), lease);
    for (name, entry) in &listing.entries {
        install(log, cache, entry, voided);
        install_name(cache, ino, name, Some(entry.handle.ino));
    }
    let Some(node) = cache.get_mut(ino) else { return };
    // A part continues the listing only if no recall has arrived between the parts.
    if lease == LeaseKind::None || node.names().listed_up_to.as_ref() != after {
        return;
    }
    if listing.is_complete {
        let names = node.names_mut();
        names.complete = true;
        names.listed_up_to = None;
        names.absent.clear();
    } else {
        node.names_mut().listed_up_to = listing.entries.last().map(|(name, _)| name.clone());
    }
}

/// Installs a node's attributes after batch `number`, unless a later batch changes the node.
pub(in crate::client) fn install_changed(
    cache: &mut Cache,
    number: u64,
    handle: Handle,
    attributes: &Attributes,
) {
    let Some(node) = cache.get_mut(handle.ino) else { return };
    node.handle = handle;
    if node.last_batch <= number {
        node.adopt_changed(attributes);
    } else {
        node.attributes.version = attributes.version;
    }
}
