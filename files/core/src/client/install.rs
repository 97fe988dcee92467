//! Takes into the cache what the server has found and granted.

use std::collections::HashSet;

use crate::wire::{Attributes, Entry, Handle, Ino, LeaseKind, Listing, Name, NodeKind, Step};

use super::Client;
use super::contents::Contents;
use super::node::Node;

/// Contents of files up to this length are kept in memory when they are at the server.
pub(super) const KEPT_FILE: u64 = 64 << 10;

impl Client {
    /// Takes a node. Without a lease nothing of it is used, but its number.
    pub(super) fn install(&mut self, entry: &Entry, voided: &HashSet<Ino>) {
        let ino = entry.handle.ino;
        let lease = if voided.contains(&ino) { LeaseKind::None } else { entry.lease };
        self.install_leased(entry.handle, Some(&entry.attributes), lease);
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        let Some(contents) = &entry.contents else { return };
        match node.attributes.kind {
            NodeKind::Symlink => node.target = Some(Box::new(contents.clone())),
            NodeKind::File
                if lease > LeaseKind::None
                    && node.last_batch <= self.log.applied()
                    && node.attributes.version.data == entry.attributes.version.data =>
            {
                node.contents.fill_from_server(0, contents);
            }
            _ => {}
        }
    }

    /// Takes a lease, with the attributes at the time when it was granted.
    pub(super) fn install_leased(
        &mut self,
        handle: Handle,
        attributes: Option<&Attributes>,
        lease: LeaseKind,
    ) {
        let ino = handle.ino;
        match (self.nodes.get_mut(&ino), attributes) {
            (None, Some(attributes)) => {
                self.nodes.insert(ino, Box::new(Node::new(handle, *attributes, lease)));
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
                // Under a shared lease, no other client changes the node: the server has read these before it applied this client's
                // last batch.
                let is_stale = |attributes: &&Attributes| {
                    node.lease > LeaseKind::None
                        && attributes.version.change < node.attributes.version.change
                };
                if let Some(attributes) = attributes.filter(|attributes| !is_stale(attributes)) {
                    if node.lease == LeaseKind::None
                        || node.attributes.version != attributes.version
                    {
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

    /// Takes the steps of a walk from `directory`.
    pub(super) fn install_walk(
        &mut self,
        mut directory: Ino,
        path: &[Name],
        steps: &[Step],
        voided: &HashSet<Ino>,
    ) {
        for (name, step) in path.iter().zip(steps) {
            match step {
                Step::Found(entry) => {
                    self.install(entry, voided);
                    self.install_name(directory, name, Some(entry.handle.ino));
                    directory = entry.handle.ino;
                }
                Step::Absent => return self.install_name(directory, name, None),
                Step::Failed(_) => return,
            }
        }
    }

    /// Takes a name, if the directory's lease permits to use it and nothing is known of the name.
    fn install_name(&mut self, directory: Ino, name: &Name, found: Option<Ino>) {
        let usable = self
            .nodes
            .get(&directory)
            .is_some_and(|node| node.lease > LeaseKind::None && node.names().get(name).is_none());
        if !usable {
            return;
        }
        if let Some(child) = found.and_then(|ino| self.nodes.get_mut(&ino)) {
            child.parent = Some(directory);
        }
        if let Some(node) = self.nodes.get_mut(&directory) {
            match found {
                Some(ino) => node.names_mut().put(name.clone(), ino),
                None => {
                    node.names_mut().absent.insert(name.clone());
                }
            }
        }
    }

    /// Takes a directory's names.
    pub(super) fn install_listing(
        &mut self,
        listing: &Listing,
        after: Option<&Name>,
        voided: &HashSet<Ino>,
    ) {
        let ino = listing.directory.ino;
        let lease = if voided.contains(&ino) { LeaseKind::None } else { listing.lease };
        self.install_leased(listing.directory, Some(&listing.attributes), lease);
        for (name, entry) in &listing.entries {
            self.install(entry, voided);
            self.install_name(ino, name, Some(entry.handle.ino));
        }
        let Some(node) = self.nodes.get_mut(&ino) else { return };
        // A part continues the listing only if no recall has come between the parts.
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

    /// Takes a node's attributes as they are after batch `number`, unless a later batch changes it.
    pub(super) fn install_changed(&mut self, number: u64, handle: Handle, attributes: &Attributes) {
        let Some(node) = self.nodes.get_mut(&handle.ino) else { return };
        node.handle = handle;
        if node.last_batch <= number {
            node.take_changed(attributes);
        } else {
            node.attributes.version = attributes.version;
        }
    }

    /// Notes that the server has applied batches: bytes of long files are dropped, operations that waited go on.
    pub(super) fn applied(&mut self, number: u64) {
        for rename in self.renames.take_applied(number) {
            self.renamed_at_server(&rename);
        }
        for ino in self.log.set_applied(number) {
            self.calls.void_reads(ino);
            let Some(node) = self.nodes.get_mut(&ino) else { continue };
            let size = node.attributes.size;
            if node.last_cut > number {
                continue;
            }
            if size > KEPT_FILE {
                node.contents.clean(number, size);
            } else {
                node.contents.keep_clean(number, size);
            }
        }
        let ready = &mut self.ready;
        self.for_batch.retain(|(wanted, token)| {
            let waits = *wanted > number;
            if !waits {
                ready.push_back(*token);
            }
            waits
        });
        self.ready.extend(self.for_room.drain(..));
    }
}
