//! A cached node.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::wire::{Attributes, Handle, Ino, LeaseKind, LockOwner, Name, NodeKind, Time};
use bytes::Bytes;

use super::contents::Contents;

/// Progress of a recall of a node's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::client) enum RecallStage {
    /// The kernel is dropping its cache. Operations proceed: the kernel may hold pages locked for
    /// them, and would otherwise wait for itself.
    Kernel,
    /// Changes are being sent to the server. Operations wait.
    Flush,
}

/// Names in a directory.
#[derive(Clone, Debug, Default)]
pub(in crate::client) struct Names {
    /// Cached names and their nodes.
    pub(in crate::client) known: BTreeMap<Name, Ino>,
    /// Names that do not exist, unless `complete` is set.
    pub(in crate::client) absent: BTreeSet<Name>,
    /// Whether `known` has all names.
    pub(in crate::client) complete: bool,
    /// Where a listing in parts continues.
    pub(in crate::client) listed_up_to: Option<Name>,
    /// Names that had to be looked up: from the second one on, the directory is listed.
    pub(in crate::client) misses: u32,
    /// Number of its nodes whose exclusive leases were missing: from the second one on, the leases
    /// of all its nodes are requested together.
    pub(in crate::client) exclusive_misses: u32,
    /// When that was done.
    pub(in crate::client) leased_at: Option<Duration>,
}

impl Names {
    const fn new() -> Self {
        Self {
            known: BTreeMap::new(),
            absent: BTreeSet::new(),
            complete: false,
            listed_up_to: None,
            misses: 0,
            exclusive_misses: 0,
            leased_at: None,
        }
    }

    /// Returns the node that has a name, or `Some(None)` if there is certainly no such name.
    pub(in crate::client) fn get(&self, name: &Name) -> Option<Option<Ino>> {
        match self.known.get(name) {
            Some(node) => Some(Some(*node)),
            None if self.complete || self.absent.contains(name) => Some(None),
            None => None,
        }
    }

    pub(in crate::client) fn put(&mut self, name: Name, node: Ino) {
        self.absent.remove(&name);
        self.known.insert(name, node);
    }

    pub(in crate::client) fn remove(&mut self, name: &Name) {
        self.known.remove(name);
        if !self.complete {
            self.absent.insert(name.clone());
        }
    }
}

/// A cached node. There are many, so rare fields are allocated separately.
#[derive(Clone, Debug)]
pub(in crate::client) struct Node {
    /// Its number and proof.
    pub(in crate::client) handle: Handle,
    /// Its attributes, with the client's own changes.
    pub(in crate::client) attributes: Attributes,
    /// The client's lease on it.
    pub(in crate::client) lease: LeaseKind,
    /// Progress of the recall of its lease, if it is recalled.
    pub(in crate::client) recall: Option<RecallStage>,
    /// Whether a read was served since the kernel was asked to drop its pages: it may have cached
    /// them again.
    pub(in crate::client) read_in_recall: bool,
    /// The batch that creates it; 0 if it was found.
    pub(in crate::client) created_in: u64,
    /// The batch that closes it as an orphan and ends its lease (FSSERVE-4); 0 if there is none.
    pub(in crate::client) closed_in: u64,
    /// The last batch that changes it; it is dirty until that is applied.
    pub(in crate::client) last_batch: u64,
    /// The last batch that truncates or moves contents: until it is applied, the server's bytes are
    /// not the file's.
    pub(in crate::client) barrier: u64,
    /// The batch of the last truncation.
    pub(in crate::client) last_cut: u64,
    /// References that the kernel has.
    pub(in crate::client) references: u64,
    /// Openings of a file.
    pub(in crate::client) openings: u32,
    /// Openings that can write.
    pub(in crate::client) writers: u32,
    /// The kernel may have pages of it.
    pub(in crate::client) kernel_data: bool,
    /// The kernel was given attributes of this directory that it may use for some time.
    pub(in crate::client) kernel_attributes: bool,
    /// The kernel may have names of this directory.
    pub(in crate::client) kernel_names: bool,
    /// Its last name is gone; the server keeps it for this client until it is closed.
    pub(in crate::client) is_orphan: bool,
    /// The server no longer has it, although the kernel still may refer to it: a removed directory,
    /// or a file that was closed after its last name. No change of it is recorded.
    pub(in crate::client) is_gone: bool,
    /// The times of its last change are the client's own: the server's differ by the delay of the
    /// batch.
    pub(in crate::client) has_own_times: bool,
    /// Times of last modification and change at the server, if the client shows its own under an
    /// exclusive lease.
    pub(in crate::client) server_times: Option<Box<(Time, Time)>>,
    /// It was created without a name, and may get one.
    pub(in crate::client) is_nameless: bool,
    /// The directory of its last lookup.
    pub(in crate::client) parent: Option<Ino>,
    /// Names, if it is a directory with cached names.
    names: Option<Box<Names>>,
    /// Bytes, if it is a file.
    pub(in crate::client) contents: Contents,
    /// Target, if it is a symbolic link and its target is cached.
    pub(in crate::client) target: Option<Box<Bytes>>,
    /// Extended attributes, if they are cached.
    pub(in crate::client) xattrs: Option<BTreeMap<Bytes, Bytes>>,
    /// Owners that have, or may have, locks.
    pub(in crate::client) lock_owners: BTreeSet<LockOwner>,
}

impl Node {
    pub(in crate::client) fn new(handle: Handle, attributes: Attributes, lease: LeaseKind) -> Self {
        Self {
            handle,
            attributes,
            lease,
            recall: None,
            read_in_recall: false,
            created_in: 0,
            closed_in: 0,
            last_batch: 0,
            barrier: 0,
            last_cut: 0,
            references: 0,
            openings: 0,
            writers: 0,
            kernel_data: false,
            kernel_attributes: false,
            kernel_names: false,
            is_orphan: false,
            is_gone: false,
            has_own_times: false,
            server_times: None,
            is_nameless: false,
            parent: None,
            names: None,
            contents: Contents::at_server(),
            target: None,
            xattrs: None,
            lock_owners: BTreeSet::new(),
        }
    }

    pub(in crate::client) fn ino(&self) -> Ino {
        self.handle.ino
    }

    pub(in crate::client) fn is_directory(&self) -> bool {
        self.attributes.kind == NodeKind::Directory
    }

    /// Returns whether operations may use the lease, and it is at least `kind`.
    pub(in crate::client) fn permits(&self, kind: LeaseKind) -> bool {
        // A file that this client has closed may still be open elsewhere, so its lease counts as
        // usual.
        let is_removed_directory = self.is_gone && self.is_directory();
        is_removed_directory || (self.lease >= kind && self.recall != Some(RecallStage::Flush))
    }

    /// Adopts the server's attributes after the client's last change. The client's own times of
    /// that change stay visible while no other client can see the server's: programs that have seen
    /// them would interpret other times as another change.
    pub(in crate::client) fn adopt_changed(&mut self, attributes: &Attributes) {
        let own = std::mem::replace(&mut self.attributes, *attributes);
        self.server_times = None;
        if self.has_own_times && self.lease == LeaseKind::Exclusive {
            self.server_times = Some(Box::new((attributes.mtime, attributes.ctime)));
            (self.attributes.mtime, self.attributes.ctime) = (own.mtime, own.ctime);
        }
    }

    /// Returns whether other clients will see other times than the kernel has seen.
    pub(in crate::client) fn differs_in_times(&self, applied: u64) -> bool {
        self.server_times.is_some() || self.is_dirty(applied)
    }

    /// Reduces its lease to `keep`.
    pub(in crate::client) fn reduce_lease(&mut self, keep: LeaseKind) {
        self.lease = self.lease.min(keep);
        if self.lease < LeaseKind::Exclusive
            && let Some(times) = self.server_times.take()
        {
            (self.attributes.mtime, self.attributes.ctime) = *times;
        }
    }

    /// Returns its cached names.
    pub(in crate::client) fn names(&self) -> &Names {
        static NOTHING: Names = Names::new();
        self.names.as_deref().unwrap_or(&NOTHING)
    }

    pub(in crate::client) fn names_mut(&mut self) -> &mut Names {
        self.names.get_or_insert_default()
    }

    /// Drops its cached names.
    pub(in crate::client) fn forget_names(&mut self) {
        self.names = None;
    }

    /// Makes it a directory without names.
    pub(in crate::client) fn empty(&mut self) {
        *self.names_mut() = Names { complete: true, ..Names::new() };
    }

    /// Makes it a removed directory: empty, and usable by programs that have it open.
    pub(in crate::client) fn become_removed(&mut self) {
        self.is_gone = true;
        self.attributes.links = 0;
        self.empty();
    }

    /// Returns whether changes of it may not be at the server yet.
    pub(in crate::client) fn is_dirty(&self, applied: u64) -> bool {
        self.last_batch > applied
    }

    /// Returns whether anything refers to it.
    pub(in crate::client) fn is_in_use(&self) -> bool {
        self.references > 0 || self.openings > 0 || !self.lock_owners.is_empty()
    }

    /// Drops state that is valid only under a lease.
    pub(in crate::client) fn drop_cache(&mut self) {
        self.names = None;
        self.contents = Contents::at_server();
        self.xattrs = None;
        self.kernel_data = false;
        self.kernel_names = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100,000 cached nodes take less than 64 MB (lab/log): rare fields are allocated separately.
    #[test]
    fn a_node_is_small() {
        assert!(size_of::<Node>() <= 376, "{}", size_of::<Node>());
    }
}
