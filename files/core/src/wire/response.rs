//! What the server responds.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::wire::attributes::{Attributes, Version};
use crate::wire::errno::Errno;
use crate::wire::handle::{Handle, Ino};
use crate::wire::lease::LeaseKind;
use crate::wire::lock::{LockKind, LockRange};
use crate::wire::name::Name;
use crate::wire::request::WireVersion;

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Failure {
    /// The file system's error.
    #[error("{0}")]
    Errno(Errno),
    /// No common version.
    #[error("the server speaks versions {} to {} of the file service", oldest.0, newest.0)]
    Version {
        /// Oldest version that the server speaks.
        oldest: WireVersion,
        /// Newest version that the server speaks.
        newest: WireVersion,
    },
    /// The session is not known any more: its term has ended, or the server was restarted. Begin anew with Hello.
    #[error("the session has ended")]
    SessionEnded,
    /// The server serves no more clients.
    #[error("the server has its maximum number of clients")]
    TooManySessions,
    /// The server does not serve networks without encryption that it was not asked to trust.
    #[error("the server does not serve this network without encryption")]
    NotTrusted,
    /// The message was not understood.
    #[error("the server did not understand the message")]
    Malformed,
    /// The batch does not follow the last one.
    #[error("batch {expected} was expected")]
    BatchOutOfOrder {
        /// Number of the batch that the server expects.
        expected: u64,
    },
    /// The server has no export of this name.
    #[error("the server has no export of this name")]
    NoSuchExport,
}

/// A response of the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    /// The request was not served.
    Failed(Failure),
    /// It was served, and there is nothing more to say.
    Done,
    /// To Hello.
    Welcome(Welcome),
    /// To Reclaim: for each lease the kind that the client has now, and whether its copy is valid.
    Reclaimed(Vec<(LeaseKind, bool)>),
    /// To LookUp: `start` and one step for each component, up to the first one that was not found.
    Found {
        /// The node where the path begins.
        start: Entry,
        /// What each component led to.
        steps: Vec<Step>,
    },
    /// To ListTree, parents before their children.
    Listed(Vec<Listing>),
    /// To Read: the number of bytes of each range that the payload has, less than asked for at the end of the file, and the
    /// version of the file.
    ReadDone(Vec<(u32, Version)>),
    /// To Batch.
    BatchDone(BatchDone),
    /// To Lease.
    Leased {
        /// What the client has now; with attributes, if it has a lease.
        leases: Vec<(LeaseKind, Option<Attributes>)>,
        /// Contended nodes: the client gives their leases back with the changes of the operations that wait for them.
        lent: Vec<Ino>,
    },
    /// To Lock and TestLock: the lock that conflicts; `None` if there is none, and the lock is taken.
    Locked(Option<LockConflict>),
    /// To GetXattr: the value.
    Xattr(Bytes),
    /// To ListXattr: the names.
    Xattrs(Vec<Bytes>),
    /// To Seek.
    Position(u64),
    /// To StatFs.
    Space(SpaceStatus),
    /// To Status.
    Status(FileSystemStatus),
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Version that both speak from now on.
    pub version: WireVersion,
    /// Number of the session; the next one of the same client has a larger one.
    pub session: u64,
    /// Whether the session goes on that Hello named: leases and locks are still there.
    pub resumed: bool,
    /// Milliseconds for which leases are valid after each request.
    pub term_ms: u32,
    /// The directory that is exported.
    pub root: Entry,
    /// First number that the client may give to nodes that it creates.
    pub first_ino: u64,
    /// Number of such numbers; more come with another Hello.
    pub inos: u64,
    /// Proof of this range, for [`Hello::ranges`](crate::wire::Hello::ranges).
    pub inos_proof: u64,
    /// Number of the client's last batch that was applied, and is durable; 0 if there is none.
    pub applied: u64,
    /// Whether changes are refused.
    pub read_only: bool,
    /// The client's last batch that failed, although its number counts as applied. The client may not have learned of it.
    pub failed: Option<FailedBatch>,
}

/// A batch of which not all records could be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedBatch {
    /// Number of the batch.
    pub number: u64,
    /// Position of the record that could not be applied; none behind it was applied.
    pub record: u32,
    /// Why.
    pub error: Errno,
}

/// A node as it was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The node.
    pub handle: Handle,
    /// Its attributes.
    pub attributes: Attributes,
    /// Lease that the client has on it now.
    pub lease: LeaseKind,
    /// Target of a symbolic link; contents of a short file, if they were asked for.
    pub contents: Option<Bytes>,
}

/// Where one component of a path led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// A node.
    Found(Entry),
    /// No such name.
    Absent,
    /// The walk could not go on here.
    Failed(Errno),
}

/// Names in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The directory.
    pub directory: Handle,
    /// Its attributes at that time.
    pub attributes: Attributes,
    /// Lease that the client has on the directory now.
    pub lease: LeaseKind,
    /// Names and nodes, in the order of names.
    pub entries: Vec<(Name, Entry)>,
    /// Whether these are all from the beginning of the listing on; else it goes on after the last name.
    pub is_complete: bool,
}

/// What became of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchDone {
    /// Number of the batch, which is applied and durable, as are all before it.
    pub applied: u64,
    /// The record that could not be applied, and why; none behind it was applied.
    pub failed: Option<(u32, Errno)>,
    /// New handles and attributes of the nodes that the batch has changed.
    pub changed: Vec<(Handle, Attributes)>,
}

/// A lock that another owner has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockConflict {
    /// Kind of the lock.
    pub kind: LockKind,
    /// Its range.
    pub range: LockRange,
}

/// Space of a file system, as `statfs` returns it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpaceStatus {
    /// Bytes of a block.
    pub block_size: u32,
    /// Number of blocks.
    pub blocks: u64,
    /// Number of free blocks.
    pub free: u64,
    /// Number of free blocks for ordinary users.
    pub available: u64,
    /// Number of nodes.
    pub nodes: u64,
    /// Number of nodes that may still be created.
    pub free_nodes: u64,
}

/// What `apus fs status` shows of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemStatus {
    /// Name of each client, its shared and exclusive leases, and its last batch that was applied.
    pub clients: Vec<(Bytes, u64, u64, u64)>,
    /// Node that is recalled, the client that waits for it, and the client that has the lease.
    pub waiting: Vec<(Handle, Bytes, Bytes)>,
}
