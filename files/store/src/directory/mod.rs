//! A directory of the server's file system, and the log that makes changes to it durable and
//! repeatable. After a crash, it holds all confirmed changes (FS-11).
//!
//! Every batch is written to the log and made durable before it is applied to the directory with
//! ordinary system calls. After a crash, [`replay`] brings the directory to the state after the
//! last batch of the log, no matter which part of it had been applied. Other programs may read the
//! directory, and change it, though clients notice such changes late.
//!
//! | module | part |
//! |---|---|
//! | `state`, `log`, `frame`, `snapshot`, `checkpoint` | content of `.apus-fs` |
//! | `identity`, `table`, `names` | the known nodes, and the effects of records on their names |
//! | `files`, `change`, `data`, `listing`, `observe`, `permission`, `search` | system calls |
//! | `commit`, `copy` | batches |
//! | `replay`, `journeys`, `discovery`, `arrange` | after a crash |

mod arrange;
mod attributes;
mod change;
mod checkpoint;
mod commit;
mod copy;
#[cfg(test)]
mod corpus;
mod data;
mod discovery;
mod error;
mod fail_point;
mod files;
mod frame;
mod identity;
mod journeys;
mod listing;
mod log;
mod names;
mod observe;
mod permission;
mod replay;
mod search;
mod snapshot;
mod state;
mod table;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use apus_fs_core::Store;
use apus_fs_core::rights::Rights;
use apus_fs_core::store::{
    AppliedBatch, ClientBatch, ClientId, DirectoryPart, StoreError, StoreMetrics,
};
use apus_fs_core::wire::{
    Attributes, Errno, FailedBatch, Ino, Name, NodeKind, Record, SeekTarget, SpaceStatus,
};
use bytes::Bytes;
use rustix::fs::AtFlags;

pub use error::OpenError;
#[doc(hidden)]
pub use fail_point::{Crashed, FailPoint};

use files::Files;
use frame::{FrameEntry, Mount, Observation, Progress};
use identity::{errno, status_of};
use listing::Listing;
use log::Log;
use names::is_hidden;
use snapshot::Knowledge;
use table::{ORPHANS, is_public};

/// Node numbers reserved per frame of the log.
const RESERVE_STEP: u64 = 1 << 20;

/// Settings of a [`DirectoryStore`].
#[derive(Clone, Debug)]
pub struct DirectoryOptions {
    /// Size of the log in bytes at which the directory is synchronised and a new log is started. A
    /// replay reads at most this many bytes, and keeps them in memory.
    pub checkpoint_bytes: u64,
    /// Descriptors of directories that are kept.
    pub directories: NonZeroUsize,
    /// Descriptors of files that are kept.
    pub files: NonZeroUsize,
    /// Whether a test replays frames that are known to be applied, as after a crash of the machine.
    #[doc(hidden)]
    pub replays_all: bool,
    /// Point at which a test makes the store crash.
    #[doc(hidden)]
    pub fail_point: FailPoint,
}

impl Default for DirectoryOptions {
    fn default() -> Self {
        Self {
            checkpoint_bytes: 256 << 20,
            // Together below half of the usual limit of 1,024.
            directories: NonZeroUsize::new(256).expect("not zero"),
            files: NonZeroUsize::new(128).expect("not zero"),
            replays_all: false,
            fail_point: FailPoint::default(),
        }
    }
}

/// Counters of a store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    commits: u64,
    log_syncs: u64,
    checkpoints: u64,
}

/// A store in a directory of the server's file system.
#[derive(Debug)]
pub struct DirectoryStore {
    files: Files,
    knowledge: Knowledge,
    log: Log,
    secret: [u8; 16],
    /// `None` if every replay starts with the first frame.
    mount: Option<Mount>,
    /// Observations of nodes for the next frame.
    pending: Vec<Observation>,
    appended: Vec<ClientBatch>,
    /// The next number that is given to a client.
    next_ino: u64,
    listing: Option<Listing>,
    checkpoint_bytes: u64,
    is_broken: bool,
    counters: Counters,
    /// Whether the whole export was searched for an unknown node.
    is_searched: bool,
}

impl DirectoryStore {
    /// Opens a directory, and replays batches that a crash may have left incomplete.
    ///
    /// # Errors
    ///
    /// [`OpenError`]: another server has the directory open, its log is damaged, or the file system
    /// reports an error.
    pub fn open(directory: &Path, options: DirectoryOptions) -> Result<Self, OpenError> {
        replay::open(directory, options)
    }

    /// Makes everything durable and ends; the next [`open`](Self::open) needs no replay.
    ///
    /// # Errors
    ///
    /// The file system's.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.check_works()?;
        self.checkpoint()
    }

    fn check_works(&self) -> Result<(), StoreError> {
        if self.is_broken {
            let source = std::io::Error::other("the log could not be written before");
            return Err(error::failed("write", &self.files.state.path.join("log"))(source));
        }
        Ok(())
    }

    fn progress(&self, client: ClientId) -> Progress {
        self.knowledge.clients.get(&client).copied().unwrap_or_default()
    }

    /// Returns the kind of a node that a client may name.
    fn kind(&mut self, ino: Ino) -> Result<NodeKind, Errno> {
        self.search_for(ino);
        let node = self.knowledge.table.node(ino).filter(|_| is_public(ino));
        node.map(|node| node.kind).ok_or(Errno::STALE)
    }

    /// Checks that a node is a regular file.
    fn check_file(&mut self, ino: Ino) -> Result<(), Errno> {
        match self.kind(ino)? {
            NodeKind::File => Ok(()),
            NodeKind::Directory => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    fn check_directory(&mut self, ino: Ino) -> Result<(), Errno> {
        if self.kind(ino)? == NodeKind::Directory { Ok(()) } else { Err(Errno::NOTDIR) }
    }

    /// Returns attributes as clients see them, and notes that they do.
    fn show(&mut self, ino: Ino, mut attributes: Attributes) -> Attributes {
        let is_orphan = self.knowledge.table.is_orphan(ino);
        // The name among the orphans does not count.
        attributes.links = attributes.links.saturating_sub(u32::from(is_orphan));
        if let Some(node) = self.knowledge.table.node_mut(ino) {
            node.shown = attributes.version.change;
        }
        attributes
    }

    /// Returns the attributes of a node that has changed, with a version that was not shown before.
    ///
    /// Where the kernel's time of change is coarse, two changes may get the same time. Then the
    /// time of modification is set to its current value until the time of change moves.
    fn changed_attributes(&mut self, ino: Ino) -> Result<Attributes, Errno> {
        let shown = self.knowledge.table.node(ino).ok_or(Errno::STALE)?.shown;
        let mut status = self.files.status(&self.knowledge.table, ino)?;
        while status.attributes.version.change == shown {
            let file = self.files.reach(&self.knowledge.table, ino)?;
            let same = attributes::times(None, Some(status.attributes.mtime));
            rustix::fs::utimensat(&file, "", &same, AtFlags::EMPTY_PATH).map_err(errno)?;
            status = self.files.status(&self.knowledge.table, ino)?;
            if status.attributes.version.change == shown {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let attributes = status.attributes;
        if attributes.kind == NodeKind::File && attributes.mode & 0o111 != 0 {
            self.files.close_program(ino);
        }
        Ok(self.show(ino, attributes))
    }

    /// Reads the sorted names of a directory, unless they are those that were listed last.
    fn sorted_names(&mut self, directory: Ino) -> Result<Vec<Name>, Errno> {
        let file = self.files.directory(&self.knowledge.table, directory)?;
        let change = status_of(&file)?.attributes.version.change;
        if let Some(listing) = self.listing.take()
            && listing.directory == directory
            && listing.change == change
        {
            return Ok(listing.names);
        }
        let names = listing::names(&file)?.into_iter();
        let mut names: Vec<Name> = names.filter_map(|name| Name::new(name).ok()).collect();
        names.retain(|name| !is_hidden(directory, name));
        names.sort_unstable();
        Ok(names)
    }
}

impl DirectoryStore {
    fn note_durably(
        &mut self,
        observation: Observation,
        operation: &'static str,
    ) -> Result<(), StoreError> {
        self.check_works()?;
        if !self.write_entries(&[(FrameEntry::Observed(vec![observation]), Bytes::new())])? {
            let full = std::io::Error::from_raw_os_error(Errno::NOSPC.0.into());
            return Err(error::failed(operation, &self.files.state.path.join("log"))(full));
        }
        Ok(())
    }
}

impl Store for DirectoryStore {
    fn attributes(&mut self, node: Ino) -> Result<Attributes, Errno> {
        self.kind(node)?;
        let status = self.files.status(&self.knowledge.table, node)?;
        Ok(self.show(node, status.attributes))
    }

    fn permits(&mut self, node: Ino, rights: &Rights, wanted: u16) -> Result<bool, Errno> {
        self.permits_access(node, rights, wanted)
    }

    fn look_up(&mut self, directory: Ino, name: &Name) -> Result<Option<(Ino, Attributes)>, Errno> {
        self.check_directory(directory)?;
        if is_hidden(directory, name) {
            return Ok(None);
        }
        let found = self.observe(directory, name)?;
        Ok(found.map(|(ino, status)| (ino, self.show(ino, status.attributes))))
    }

    fn list(
        &mut self,
        directory: Ino,
        after: Option<&Name>,
        most: usize,
    ) -> Result<DirectoryPart, Errno> {
        self.check_directory(directory)?;
        let names = self.sorted_names(directory)?;
        let change = self.files.status(&self.knowledge.table, directory)?.attributes.version.change;
        let mut next = after.map_or(0, |after| names.partition_point(|name| name <= after));
        let mut entries = Vec::new();
        while next < names.len() && entries.len() < most {
            match self.observe(directory, &names[next]) {
                Ok(Some((ino, status))) => {
                    let attributes = self.show(ino, status.attributes);
                    entries.push((names[next].clone(), ino, attributes));
                }
                // Removed meanwhile, or another file system.
                Ok(None) | Err(Errno::XDEV) => {}
                Err(other) => return Err(other),
            }
            next += 1;
        }
        let is_complete = next == names.len();
        self.listing = Some(Listing { directory, change, names });
        Ok(DirectoryPart { entries, is_complete })
    }

    fn target(&mut self, link: Ino) -> Result<Bytes, Errno> {
        if self.kind(link)? != NodeKind::Symlink {
            return Err(Errno::INVAL);
        }
        let file = self.files.reach(&self.knowledge.table, link)?;
        let target = rustix::fs::readlinkat(&file, "", Vec::new()).map_err(errno)?;
        Ok(target.into_bytes().into())
    }

    fn read(&mut self, file: Ino, offset: u64, length: u32) -> Result<Bytes, Errno> {
        self.check_file(file)?;
        self.files.read(&self.knowledge.table, file, offset, length.into())
    }

    fn seek(&mut self, file: Ino, offset: u64, target: SeekTarget) -> Result<u64, Errno> {
        self.check_file(file)?;
        self.files.seek(&self.knowledge.table, file, offset, target)
    }

    fn xattr(&mut self, node: Ino, name: &[u8]) -> Result<Bytes, Errno> {
        self.kind(node)?;
        self.files.xattr(&self.knowledge.table, node, name)
    }

    fn xattrs(&mut self, node: Ino) -> Result<Vec<Bytes>, Errno> {
        self.kind(node)?;
        self.files.xattrs(&self.knowledge.table, node)
    }

    fn space(&mut self) -> Result<SpaceStatus, Errno> {
        let space = rustix::fs::fstatvfs(&self.files.state.root).map_err(errno)?;
        Ok(SpaceStatus {
            block_size: u32::try_from(space.f_frsize).unwrap_or(u32::MAX),
            blocks: space.f_blocks,
            free: space.f_bfree,
            available: space.f_bavail,
            nodes: space.f_files,
            free_nodes: space.f_ffree,
        })
    }

    fn append(&mut self, batch: ClientBatch) {
        self.appended.push(batch);
    }

    fn commit(&mut self) -> Result<Vec<AppliedBatch>, StoreError> {
        self.commit_appended()
    }

    fn applied(&self, client: ClientId) -> u64 {
        self.progress(client).applied
    }

    fn last_failure(&self, client: ClientId) -> Option<FailedBatch> {
        self.knowledge.failures.get(&client).copied()
    }

    fn forget_client(&mut self, client: ClientId) {
        self.knowledge.failures.remove(&client);
        let is_fenced = self.knowledge.fenced.remove(&client);
        if self.knowledge.clients.remove(&client).is_some() || is_fenced {
            self.pending.push(Observation::Forgotten { client: client.0 });
        }
    }

    fn set_fenced(&mut self, client: ClientId, is_fenced: bool) -> Result<(), StoreError> {
        let observation = Observation::Fenced { client: client.0, is_fenced };
        self.note_durably(observation, "fence a client in")?;
        self.knowledge.set_fenced(client, is_fenced);
        Ok(())
    }

    fn is_fenced(&self, client: ClientId) -> bool {
        self.knowledge.fenced.contains(&client)
    }

    fn set_returns_from(&mut self, first: u64) -> Result<(), StoreError> {
        self.note_durably(Observation::ReturnsFrom { first }, "fence clients in")?;
        self.knowledge.returns_from = first;
        Ok(())
    }

    fn returns_from(&self) -> u64 {
        self.knowledge.returns_from
    }

    fn reserve_inos(&mut self, count: u64) -> Result<u64, StoreError> {
        self.check_works()?;
        let first = self.next_ino;
        let end = first.checked_add(count).filter(|end| *end < 1 << 62);
        let path = self.files.state.path.join("log");
        let end = end.ok_or_else(|| {
            error::failed("reserve numbers in", &path)(std::io::Error::other("none are left"))
        })?;
        if end > self.knowledge.reserved {
            let up_to = end.next_multiple_of(RESERVE_STEP);
            if !self.write_entries(&[(FrameEntry::Reserved { up_to }, Bytes::new())])? {
                let full = std::io::Error::from_raw_os_error(Errno::NOSPC.0.into());
                return Err(error::failed("reserve numbers in", &path)(full));
            }
            self.knowledge.reserved = up_to;
        }
        self.next_ino = end;
        Ok(first)
    }

    fn orphans(&self) -> Vec<Ino> {
        let mut orphans: Vec<Ino> =
            self.knowledge.table.names(ORPHANS).map(|(_, ino)| ino).collect();
        orphans.sort_unstable();
        orphans
    }

    fn drop_orphan(&mut self, node: Ino) {
        let step = self.knowledge.table.check_close(node);
        let record = Record::Close { node: apus_fs_core::wire::Handle::created(node) };
        let done = self.files.perform(&self.knowledge.table, &step, &record);
        if matches!(done, Ok(_) | Err(Errno::NOENT)) {
            self.knowledge.table.apply(&step, NodeKind::File);
            self.pending.push(Observation::Dropped { ino: node });
        }
    }

    fn metrics(&self) -> StoreMetrics {
        let Counters { commits, log_syncs, checkpoints } = self.counters;
        StoreMetrics { commits, log_syncs, checkpoints, log_bytes: self.log.length() }
    }

    fn secret(&self) -> [u8; 16] {
        self.secret
    }
}
