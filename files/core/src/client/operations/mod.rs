//! Attempts of operations.

mod attributes;
mod data;
mod directories;
mod locks;
mod names;
mod openings;
mod xattrs;

use crate::wire::limits::MAX_NODES;
use crate::wire::{
    Attributes, Errno, Ino, LeaseKind, ListTree, LockOwner, LookUp, Name, NodeKind, Record,
    Response, SessionRequest, WantedLease,
};
use std::time::Duration;

use super::calls::Purpose;
use super::effect::{Clock, OpToken};
use super::node::RecallStage;
use super::operation::{NodeEntry, Operation, Reply};
use super::{Attempt, Client, Pending, Stop};

/// Contents of files up to this length come with their attributes.
const INLINE_FILE: u32 = 4_096;
/// Bytes of contents in one listing at most.
const INLINE_TOTAL: u32 = 1 << 20;
/// Entries of one listing at most.
const LISTED: u32 = 4_096;
/// Levels of directories that a listing goes down.
const DEPTH: u16 = 16;
/// A directory's nodes are leased together at most this often.
const LEASE_AHEAD_EVERY: Duration = Duration::from_secs(1);

impl Client {
    /// Returns whether an operation ends without the server: one that closes a file without locks. A process that executes another
    /// program closes its files first, and that program may be the server.
    fn ends_here(&self, operation: &Operation) -> bool {
        match operation {
            Operation::Flush { node, owner } => {
                let owner = LockOwner { owner: *owner, is_flock: false };
                self.nodes.get(node).is_none_or(|node| !node.lock_owners.contains(&owner))
            }
            Operation::ReleaseDirectory { .. } => true,
            _ => false,
        }
    }

    /// Attempts an operation, from its start.
    pub(super) fn attempt(
        &mut self,
        clock: &Clock,
        token: OpToken,
        pending: &mut Pending,
    ) -> Attempt<Reply> {
        if !self.session.is_live(clock.now) && !self.ends_here(&pending.operation) {
            self.for_session.push(token);
            return Err(Stop::Wait);
        }
        let response = pending.response.take();
        let caller = pending.caller;
        let turn = Turn { clock: *clock, token, caller };
        match &pending.operation {
            Operation::LookUp(place) => self.look_up(&turn, place),
            Operation::Forget { .. } => Ok(Reply::Done),
            Operation::GetAttributes { node } => self.get_attributes(&turn, *node),
            Operation::SetAttributes { node, change } => self.set_attributes(&turn, *node, change),
            Operation::ReadLink { node } => self.read_link(&turn, *node),
            Operation::Create { place, node, mode, open } => {
                self.create(&turn, place, node, *mode, *open)
            }
            Operation::CreateTemporary { directory, mode } => {
                self.create_temporary(&turn, *directory, *mode)
            }
            Operation::Unlink(place) => self.unlink(&turn, place),
            Operation::RemoveDirectory(place) => self.remove_directory(&turn, place),
            Operation::Rename { from, to, exchange, no_replace } => {
                self.rename(&turn, from, to, *exchange, *no_replace)
            }
            Operation::Link { node, place } => self.link(&turn, *node, place),
            Operation::Open { node, truncate, writable, kill_privileges } => {
                self.open(&turn, *node, *truncate, *writable, *kill_privileges)
            }
            Operation::Read { node, offset, size } => {
                self.read(&turn, *node, *offset, u64::from(*size))
            }
            Operation::Write { node, offset, data, append, from_cache, kill_privileges } => {
                self.write(&turn, *node, *offset, data, (*append, *from_cache, *kill_privileges))
            }
            Operation::Flush { node, owner } => {
                self.flush_opening(&turn, *node, *owner, response.as_ref())
            }
            Operation::Release { node, writable, flock_owner } => {
                self.release(&turn, *node, *writable, *flock_owner)
            }
            Operation::Sync { node } => self.sync(&turn, *node),
            Operation::OpenDirectory { node } => self.open_directory(*node),
            Operation::ReadDirectory { node, handle, offset, most, with_attributes } => {
                let room = (*most, *with_attributes);
                self.read_directory(&turn, *node, *handle, *offset, room)
            }
            Operation::ReleaseDirectory { handle } => {
                self.directories.remove(handle);
                Ok(Reply::Done)
            }
            Operation::SetXattr { node, name, value, create, replace } => {
                self.set_xattr(&turn, *node, (name, value), (*create, *replace), response)
            }
            Operation::GetXattr { node, name } => self.get_xattr(&turn, *node, name, response),
            Operation::ListXattr { node } => self.list_xattrs(&turn, *node, response),
            Operation::RemoveXattr { node, name } => {
                self.remove_xattr(&turn, *node, name, response)
            }
            Operation::GetSpace => match response {
                Some(Response::Space(space)) => Ok(Reply::Space(space)),
                Some(other) => Err(unexpected(&other)),
                None => Err(self.ask(&turn, SessionRequest::StatFs)),
            },
            Operation::Lock { node, owner, kind, range, wait } => {
                let lock = (*owner, *kind, *range, *wait);
                self.lock(&turn, *node, lock, response)
            }
            Operation::TestLock { node, owner, kind, range } => {
                self.test_lock(&turn, *node, (*owner, *kind, *range), response)
            }
            Operation::Allocate { node, mode, offset, length } => {
                self.allocate(&turn, *node, *mode, *offset, *length)
            }
            Operation::Seek { node, offset, target } => {
                self.seek(&turn, *node, *offset, *target, response)
            }
            Operation::CopyRange { from, from_offset, to, to_offset, length } => {
                self.copy_range(&turn, (*from, *from_offset), (*to, *to_offset), *length)
            }
        }
    }

    /// Withdraws what an operation that was interrupted has asked of the server.
    pub(super) fn withdraw(&mut self, clock: &Clock, token: OpToken, operation: &Operation) {
        if let Operation::Lock { node, owner, range, wait, .. } = operation {
            let range = locks::locked_range(*owner, *range);
            self.withdraw_lock(clock, token, (*node, *owner, range), *wait);
        }
    }

    /// Asks the server something that only this operation uses.
    fn ask(&mut self, turn: &Turn, request: SessionRequest) -> Stop {
        self.wait_for(&turn.clock, turn.token, Purpose::Operation(turn.token), |_| request)
    }

    /// Waits until a batch is applied.
    fn wait_for_batch(&mut self, turn: &Turn, number: u64) -> Stop {
        self.log.seal();
        self.for_batch.push((number, turn.token));
        Stop::Wait
    }

    /// Waits until nothing of a node is missing at the server.
    fn clean(&mut self, turn: &Turn, ino: Ino) -> Attempt<()> {
        let node = self.node(ino)?;
        if node.is_dirty(self.log.applied()) {
            let number = node.last_batch;
            return Err(self.wait_for_batch(turn, number));
        }
        Ok(())
    }

    /// Waits while a node is being recalled.
    fn not_recalled(&mut self, turn: &Turn, ino: Ino) -> Attempt<()> {
        if self.node(ino)?.recall == Some(RecallStage::Flush) {
            self.for_recall.push(turn.token);
            return Err(Stop::Wait);
        }
        self.not_closed(turn, ino)
    }

    /// Waits until the server has closed an orphan that is used again after all: the lease on it ends there.
    fn not_closed(&mut self, turn: &Turn, ino: Ino) -> Attempt<()> {
        let number = self.node(ino)?.closed_in;
        if number > self.log.applied() {
            return Err(self.wait_for_batch(turn, number));
        }
        if number > 0 {
            self.calls.void(ino);
            let node = self.node_mut(ino)?;
            (node.lease, node.closed_in) = (LeaseKind::None, 0);
            node.drop_cache();
        }
        Ok(())
    }

    /// Requires leases of nodes, all at once.
    fn lease(&mut self, turn: &Turn, wanted: &[(Ino, LeaseKind)]) -> Attempt<()> {
        for (ino, _) in wanted {
            self.not_recalled(turn, *ino)?;
        }
        for (ino, kind) in wanted {
            if *kind == LeaseKind::Exclusive
                && let Some(number) = self.renames.batch_of(*ino)
            {
                return Err(self.wait_for_batch(turn, number));
            }
            let node = self.node(*ino)?;
            if node.is_gone && *kind == LeaseKind::Exclusive {
                let error = if node.is_directory() { Errno::NOENT } else { Errno::STALE };
                return Err(error.into());
            }
        }
        let missing = wanted.iter().find(|(ino, kind)| !self.nodes[ino].permits(*kind)).copied();
        let Some((ino, kind)) = missing else { return Ok(()) };
        if kind == LeaseKind::Shared && wanted.len() == 1 {
            return Err(self.ask_node(turn, ino));
        }
        if let Some(stop) = self.lease_ahead(turn, ino) {
            return Err(stop);
        }
        let mut nodes = wanted.to_vec();
        nodes.sort_unstable();
        nodes.dedup_by_key(|(ino, _)| *ino);
        // What the client has created and not sent yet is its own, and unknown to the server.
        let applied = self.log.applied();
        nodes.retain(|(ino, _)| self.nodes[ino].created_in <= applied);
        let handles = self.handles(&nodes)?;
        debug_assert!(handles.len() <= MAX_NODES);
        Err(self.wait_for(&turn.clock, turn.token, Purpose::Lease(nodes), |_| {
            let wanted = handles.into_iter().map(|(node, kind)| WantedLease { node, kind });
            SessionRequest::Lease { wanted: wanted.collect() }
        }))
    }

    /// Asks for exclusive leases of all nodes in a directory, from the second one on that is asked for.
    fn lease_ahead(&mut self, turn: &Turn, ino: Ino) -> Option<Stop> {
        let parent = self.nodes.get(&ino)?.parent?;
        let now = turn.clock.now;
        let directory = self.nodes.get_mut(&parent)?;
        let handle = directory.handle;
        let names = directory.names_mut();
        names.exclusive_misses += 1;
        let due = names.leased_at.is_none_or(|at| now.saturating_sub(at) > LEASE_AHEAD_EVERY);
        if names.exclusive_misses < 2 || !due {
            return None;
        }
        names.leased_at = Some(now);
        let list = ListTree {
            directory: handle,
            after: None,
            depth: DEPTH,
            entries: LISTED,
            inline: 0,
            inline_total: 0,
            lease: LeaseKind::Exclusive,
        };
        let purpose = Purpose::List(parent);
        Some(self.wait_for(&turn.clock, turn.token, purpose, |_| SessionRequest::ListTree(list)))
    }

    /// Asks for a node's attributes, with a shared lease.
    fn ask_node(&mut self, turn: &Turn, ino: Ino) -> Stop {
        let Ok(start) = self.handle(ino) else { return Stop::Fail(Errno::STALE) };
        self.wait_for(&turn.clock, turn.token, Purpose::LookUp(ino, None), |_| {
            let lease = LeaseKind::Shared;
            SessionRequest::LookUp(LookUp { start, path: Vec::new(), lease, inline: INLINE_FILE })
        })
    }

    /// Asks for the next part of a directory's names, and what is below.
    fn ask_names(&mut self, turn: &Turn, directory: Ino, depth: u16) -> Stop {
        let Ok(node) = self.node(directory) else { return Stop::Fail(Errno::STALE) };
        let list = ListTree {
            directory: node.handle,
            after: node.names().listed_up_to.clone(),
            depth,
            entries: LISTED,
            inline: INLINE_FILE,
            inline_total: INLINE_TOTAL,
            lease: LeaseKind::Shared,
        };
        let purpose = Purpose::List(directory);
        self.wait_for(&turn.clock, turn.token, purpose, |_| SessionRequest::ListTree(list))
    }

    /// Requires a directory whose lease permits its use.
    fn directory(&mut self, turn: &Turn, ino: Ino) -> Attempt<()> {
        self.lease(turn, &[(ino, LeaseKind::Shared)])?;
        if self.node(ino)?.is_directory() { Ok(()) } else { Err(Errno::NOTDIR.into()) }
    }

    /// Requires what a name leads to: a node that may be used, or certainly nothing.
    fn resolve(&mut self, turn: &Turn, directory: Ino, name: &Name) -> Attempt<Option<Ino>> {
        self.not_recalled(turn, directory)?;
        let node = self.node(directory)?;
        if !node.is_directory() {
            return Err(Errno::NOTDIR.into());
        }
        if node.permits(LeaseKind::Shared) {
            match node.names().get(name) {
                Some(None) => return Ok(None),
                Some(Some(child)) => {
                    if self.nodes.contains_key(&child) {
                        self.not_recalled(turn, child)?;
                        if self.nodes[&child].permits(LeaseKind::Shared) {
                            return Ok(Some(child));
                        }
                    }
                }
                None => {
                    let node = self.node_mut(directory)?;
                    node.names_mut().misses += 1;
                    if node.names().misses >= 2 && node.names().listed_up_to.is_none() {
                        return Err(self.ask_names(turn, directory, 1));
                    }
                }
            }
        }
        let start = self.handle(directory)?;
        let purpose = Purpose::LookUp(directory, Some(name.clone()));
        Err(self.wait_for(&turn.clock, turn.token, purpose, |_| {
            let (path, lease) = (vec![name.clone()], LeaseKind::Shared);
            SessionRequest::LookUp(LookUp { start, path, lease, inline: INLINE_FILE })
        }))
    }

    /// Whether the batch that the operation has for itself is applied; waits while it is under way. False if the
    /// operation has none yet.
    fn was_applied_alone(&mut self, turn: &Turn) -> Attempt<bool> {
        let Some(number) = self.syncing.get(&turn.token).copied() else { return Ok(false) };
        if number > self.log.applied() {
            return Err(self.wait_for_batch(turn, number));
        }
        self.syncing.remove(&turn.token);
        Ok(true)
    }

    /// Adds a record in a batch of its own, because its failure concerns only its own operation, which waits for it.
    fn apply_alone(&mut self, turn: &Turn, nodes: &[Ino], record: Record) -> Stop {
        self.log.seal();
        let number = self.log.open_number();
        self.log.add(turn.clock.now, record);
        for ino in nodes {
            // The operation ends when the server's times are known.
            if let Some(node) = self.nodes.get_mut(ino) {
                (node.last_batch, node.has_own_times) = (number, false);
            }
        }
        self.log.seal_alone(turn.token);
        self.syncing.insert(turn.token, number);
        self.wait_for_batch(turn, number)
    }

    /// Requires room for a change in the log.
    fn room(&mut self, turn: &Turn, bytes: usize) -> Attempt<()> {
        if self.session.is_read_only() {
            return Err(Errno::ROFS.into());
        }
        if !self.log.has_room(bytes) {
            self.log.seal();
            self.for_room.push(turn.token);
            return Err(Stop::Wait);
        }
        Ok(())
    }

    /// Adds a record that changes nodes.
    fn record(&mut self, turn: &Turn, nodes: &[Ino], record: Record) {
        let number = self.log.open_number();
        self.log.add(turn.clock.now, record);
        for ino in nodes {
            if let Some(node) = self.nodes.get_mut(ino) {
                node.last_batch = number;
                node.attributes.ctime = turn.clock.wall;
                node.has_own_times = true;
            }
        }
    }

    /// A node as the kernel gets it, with one more reference.
    fn entry(&mut self, turn: &Turn, directory: Option<Ino>, ino: Ino) -> Attempt<NodeEntry> {
        let name_valid = directory.map_or(Duration::ZERO, |ino| self.name_valid(turn, ino));
        let attributes_valid = self.attributes_valid(turn, ino);
        let node = self.node_mut(ino)?;
        node.references += 1;
        let attributes = node.attributes;
        Ok(NodeEntry { node: ino, attributes, name_valid, attributes_valid })
    }

    /// How long the kernel may use names of a directory.
    fn name_valid(&mut self, turn: &Turn, directory: Ino) -> Duration {
        let rest = self.session.rest(turn.clock.now);
        let allowed = self.session.settings.kernel_drops_names;
        match self.nodes.get_mut(&directory) {
            Some(node) if allowed && node.recall.is_none() && node.lease > LeaseKind::None => {
                node.kernel_names = true;
                rest
            }
            _ => Duration::ZERO,
        }
    }

    /// How long the kernel may use attributes of a node. Those of a dirty node will change once more, when the server has applied the
    /// change.
    fn attributes_valid(&mut self, turn: &Turn, ino: Ino) -> Duration {
        let applied = self.log.applied();
        match self.nodes.get_mut(&ino) {
            Some(node)
                if node.recall.is_none()
                    && node.lease > LeaseKind::None
                    && !node.is_dirty(applied) =>
            {
                node.kernel_attributes |= node.is_directory();
                self.session.rest(turn.clock.now)
            }
            _ => Duration::ZERO,
        }
    }
}

/// An attempt's circumstances.
struct Turn {
    clock: Clock,
    token: OpToken,
    caller: super::Caller,
}

/// The error of a response that does not fit.
fn unexpected(response: &Response) -> Stop {
    match response {
        Response::Failed(crate::wire::Failure::Errno(error)) => Stop::Fail(*error),
        _ => Stop::Fail(Errno::IO),
    }
}

/// Attributes of a new node.
fn new_attributes(turn: &Turn, kind: NodeKind, mode: u16, gid: u32) -> Attributes {
    let now = turn.clock.wall;
    Attributes {
        kind,
        mode,
        links: 1,
        uid: turn.caller.uid,
        gid,
        device: 0,
        size: 0,
        blocks: 0,
        atime: now,
        mtime: now,
        ctime: now,
        btime: Some(now),
        has_xattrs: false,
        version: crate::wire::Version::default(),
    }
}
