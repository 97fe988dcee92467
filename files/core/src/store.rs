//! Storage of a server: a directory, or its equivalent in memory, which can crash.
//!
//! # Invariants of every store
//!
//! - **STORE-1** Batches that [`Store::commit`] has returned survive a crash of the process and of
//!   the machine.
//! - **STORE-2** After a crash, the store holds the effects of a prefix of each client's batches,
//!   in the order of their numbers: all of a batch, or its records before the failed one, or, for
//!   the batch that was being applied, any number of its first records. [`Store::applied`] returns
//!   the last of these batches.
//! - **STORE-3** A batch with a number that was applied already is not applied again.
//! - **STORE-4** An [`Ino`] never names another node, also after a crash. A node that was found
//!   keeps its number.
//! - **STORE-5** The store reads and changes only the exported directory, whatever symbolic links
//!   it contains.
//! - **STORE-6** Equal [`Version`](crate::wire::Version)s of a node mean equal contents and
//!   attributes.

use crate::rights::{Ownership, Rights};
use crate::wire::{Attributes, Errno, FailedBatch, Ino, Name, Record, SeekTarget, SpaceStatus};
use bytes::Bytes;

/// Identity of a client: of one mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub [u8; 16]);

/// A batch of a client, to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientBatch {
    /// The client.
    pub client: ClientId,
    /// Number of the batch: one more than the client's previous batch.
    pub number: u64,
    /// The changes. Proofs of handles are checked already; a store uses only the numbers of nodes.
    pub records: Vec<Record>,
    /// Payload of the records.
    pub payload: Bytes,
}

/// Outcome of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedBatch {
    /// The client.
    pub client: ClientId,
    /// Number of the batch.
    pub number: u64,
    /// The record that could not be applied, and why; none behind it was applied.
    pub failed: Option<(u32, Errno)>,
    /// Changed nodes, with their new attributes. Removed nodes are absent.
    pub changed: Vec<(Ino, Attributes)>,
    /// Nodes that have lost their last name and are kept until [`Store::drop_orphan`].
    pub orphaned: Vec<Ino>,
}

/// A part of a directory's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryPart {
    /// Names and nodes, in the order of names.
    pub entries: Vec<(Name, Ino, Attributes)>,
    /// Whether no names follow.
    pub is_complete: bool,
}

/// The store can no longer write its log, and promises nothing more: the server stops.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {path}: {source}")]
pub struct StoreError {
    /// The operation that failed.
    pub operation: &'static str,
    /// Where.
    pub path: String,
    /// The system's error.
    pub source: std::io::Error,
}

/// Counters of a store since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreMetrics {
    /// Commits that made batches durable.
    pub commits: u64,
    /// Times that the log was made durable.
    pub log_syncs: u64,
    /// Times that the whole directory was made durable.
    pub checkpoints: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
}

impl StoreMetrics {
    /// Adds the counters of another store.
    pub const fn add(&mut self, other: &Self) {
        self.commits += other.commits;
        self.log_syncs += other.log_syncs;
        self.checkpoints += other.checkpoints;
        self.log_bytes += other.log_bytes;
    }
}

/// A tree of nodes that keeps its promises across crashes.
///
/// Errors of the file system are returned as [`Errno`]: `ESTALE` (116) for a number that names no
/// node.
pub trait Store {
    /// Returns the attributes of a node.
    ///
    /// # Errors
    ///
    /// The file system's.
    fn attributes(&mut self, node: Ino) -> Result<Attributes, Errno>;

    /// Returns whether a client may access a node in all of the [wanted
    /// kinds](crate::rights::access). By default its mode decides.
    ///
    /// # Errors
    ///
    /// The file system's.
    fn permits(&mut self, node: Ino, rights: &Rights, wanted: u16) -> Result<bool, Errno> {
        Ok(rights.permits(Ownership::from(&self.attributes(node)?), wanted))
    }

    /// Returns the node that has a name; `None` if there is no such name.
    ///
    /// # Errors
    ///
    /// The file system's.
    fn look_up(&mut self, directory: Ino, name: &Name) -> Result<Option<(Ino, Attributes)>, Errno>;

    /// Lists at most `most` names behind `after`, in the order of names.
    ///
    /// # Errors
    ///
    /// The file system's.
    fn list(
        &mut self,
        directory: Ino,
        after: Option<&Name>,
        most: usize,
    ) -> Result<DirectoryPart, Errno>;

    /// Returns the target of a symbolic link.
    ///
    /// # Errors
    ///
    /// The file system's.
    fn target(&mut self, link: Ino) -> Result<Bytes, Errno>;

    /// Reads bytes of a file; fewer than `length` only at its end.
    ///
    /// # Errors
    ///
    /// The file system's.
    fn read(&mut self, file: Ino, offset: u64, length: u32) -> Result<Bytes, Errno>;

    /// Finds the next data or hole of a file.
    ///
    /// # Errors
    ///
    /// The file system's; `ENXIO` (6) behind the last data.
    fn seek(&mut self, file: Ino, offset: u64, target: SeekTarget) -> Result<u64, Errno>;

    /// Returns the value of an extended attribute.
    ///
    /// # Errors
    ///
    /// The file system's; `ENODATA` (61) if there is none.
    fn xattr(&mut self, node: Ino, name: &[u8]) -> Result<Bytes, Errno>;

    /// Returns the names of all extended attributes.
    ///
    /// # Errors
    ///
    /// The file system's.
    fn xattrs(&mut self, node: Ino) -> Result<Vec<Bytes>, Errno>;

    /// Returns the space of the file system.
    ///
    /// # Errors
    ///
    /// The file system's.
    fn space(&mut self) -> Result<SpaceStatus, Errno>;

    /// Appends a batch, which the next [`commit`](Self::commit) applies. Its number is one more
    /// than the client's last applied or appended batch.
    fn append(&mut self, batch: ClientBatch);

    /// Writes all appended batches to the log, makes the log durable, applies them in order, and
    /// returns their outcomes.
    ///
    /// # Errors
    ///
    /// [`StoreError`]: the log could not be written. No promise holds any more.
    fn commit(&mut self) -> Result<Vec<AppliedBatch>, StoreError>;

    /// Returns the number of the client's last batch that was applied; 0 if there is none.
    fn applied(&self, client: ClientId) -> u64;

    /// Returns the client's last failed batch, as in [`AppliedBatch::failed`]; also after a crash.
    fn last_failure(&self, client: ClientId) -> Option<FailedBatch>;

    /// Forgets a client's number of batches: it will not return.
    fn forget_client(&mut self, client: ClientId);

    /// Records durably whether a client is fenced: another client has learned of nodes without this
    /// client's unsent changes, so these are lost.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn set_fenced(&mut self, client: ClientId, is_fenced: bool) -> Result<(), StoreError>;

    /// Returns whether a client is fenced.
    fn is_fenced(&self, client: ClientId) -> bool;

    /// Records durably that clients whose ranges all start below `first` return too late: they were
    /// absent for a life of the server in which others have learned of nodes.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn set_returns_from(&mut self, first: u64) -> Result<(), StoreError>;

    /// Returns the number noted last; 0 if there is none.
    fn returns_from(&self) -> u64;

    /// Reserves `count` numbers for new nodes and returns the first one. No other call returns any
    /// of them, also after a crash.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    fn reserve_inos(&mut self, count: u64) -> Result<u64, StoreError>;

    /// Returns the client with the last change of a node; `None` if that is unknown, because the
    /// change was not recent.
    ///
    /// Rationale: a client whose response was lost, or whose batch was replayed after a crash, does
    /// not have the node's version. Its copy is valid nevertheless, if no other client has changed
    /// the node since.
    fn last_changer(&self, _node: Ino) -> Option<ClientId> {
        None
    }

    /// Returns the nodes without a name that are kept.
    fn orphans(&self) -> Vec<Ino>;

    /// Removes a node without a name. It is removed in no other way: a record
    /// [`Close`](crate::wire::Record::Close) changes no state of the store.
    fn drop_orphan(&mut self, node: Ino);

    /// Returns the counters; zeros if the store has none.
    fn metrics(&self) -> StoreMetrics {
        StoreMetrics::default()
    }

    /// Returns the key of the proofs in handles: random, and constant for the lifetime of the
    /// export.
    fn secret(&self) -> [u8; 16];
}
