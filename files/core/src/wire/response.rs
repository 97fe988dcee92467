//! Responses of the server.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::wire::attributes::{Attributes, Version};
use crate::wire::errno::Errno;
use crate::wire::handle::{Handle, Ino};
use crate::wire::lease::LeaseKind;
use crate::wire::limits::{MAX_ENTRIES, MAX_NODES, MAX_PATH_COMPONENTS, MAX_STATUS_LINES};
use crate::wire::list::list;
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
    /// The server does not have the session: its term has ended, or the server was restarted. Start
    /// again with Hello.
    #[error("the session has ended")]
    SessionEnded,
    /// The server serves no more clients.
    #[error("the server has its maximum number of clients")]
    TooManySessions,
    /// The server refuses unencrypted networks, except those that it was started to trust.
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
    /// The request was served.
    Done,
    /// To Hello.
    Welcome(Welcome),
    /// To Reclaim: for each lease the kind that the client has now, and whether its copy is valid.
    Reclaimed(#[serde(deserialize_with = "list::<_, _, MAX_NODES>")] Vec<(LeaseKind, bool)>),
    /// To LookUp: `start` and one step for each component, up to the first that was not found.
    Found {
        /// The node at the start of the path.
        start: FoundNode,
        /// Outcome of each component.
        #[serde(deserialize_with = "list::<_, _, MAX_PATH_COMPONENTS>")]
        steps: Vec<PathStep>,
    },
    /// To ListTree, parents before their children.
    Listed(#[serde(deserialize_with = "list::<_, _, MAX_ENTRIES>")] Vec<Listing>),
    /// To Read: the number of bytes of each range in the payload, fewer than requested at the end
    /// of the file, and the version of the file.
    ReadDone(#[serde(deserialize_with = "list::<_, _, MAX_NODES>")] Vec<(u32, Version)>),
    /// To Batch.
    BatchDone(BatchDone),
    /// To Lease.
    Leased {
        /// The client's leases; with attributes, unless the lease is None.
        #[serde(deserialize_with = "list::<_, _, MAX_NODES>")]
        leases: Vec<(LeaseKind, Option<Attributes>)>,
        /// Contended nodes: the client returns their leases with the changes of the operations that
        /// wait for them.
        #[serde(deserialize_with = "list::<_, _, MAX_NODES>")]
        lent: Vec<Ino>,
    },
    /// To Lock and TestLock: the conflicting lock; `None` if there is none, and the lock is
    /// acquired.
    Locked(Option<LockConflict>),
    /// To GetXattr: the value.
    Xattr(Bytes),
    /// To ListXattr: the names.
    Xattrs(#[serde(deserialize_with = "list::<_, _, MAX_ENTRIES>")] Vec<Bytes>),
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
    /// Whether the session in the Hello continues, with its leases and locks.
    pub resumed: bool,
    /// Validity of leases after each request, in milliseconds.
    pub term_ms: u32,
    /// The directory that is exported.
    pub root: FoundNode,
    /// First number that the client may give to nodes that it creates.
    pub first_ino: u64,
    /// Number of these numbers; another Hello returns more.
    pub inos: u64,
    /// Proof of this range, for [`Hello::ranges`](crate::wire::Hello::ranges).
    pub inos_proof: u64,
    /// Number of the client's last batch that was applied, and is durable; 0 if there is none.
    pub applied: u64,
    /// Whether changes are refused.
    pub read_only: bool,
    /// The client's last failed batch, whose number counts as applied. The client may not have
    /// learned of it.
    pub failed: Option<FailedBatch>,
}

/// A batch with a record that could not be applied.
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
pub struct FoundNode {
    /// The node.
    pub handle: Handle,
    /// Its attributes.
    pub attributes: Attributes,
    /// Lease that the client has on it now.
    pub lease: LeaseKind,
    /// Target of a symbolic link; contents of a short file, if requested.
    pub contents: Option<Bytes>,
}

/// Where one component of a path led to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathStep {
    /// A node.
    Found(FoundNode),
    /// No such name.
    Absent,
    /// The walk failed here.
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
    #[serde(deserialize_with = "list::<_, _, MAX_ENTRIES>")]
    pub entries: Vec<(Name, FoundNode)>,
    /// Whether these are all names from the start of the listing on; if not, it continues after the
    /// last name.
    pub is_complete: bool,
}

/// Outcome of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchDone {
    /// Number of the batch, which is applied and durable, as are all before it.
    pub applied: u64,
    /// The record that could not be applied, and why; none behind it was applied.
    pub failed: Option<(u32, Errno)>,
    /// New handles and attributes of the nodes that the batch has changed.
    #[serde(deserialize_with = "list::<_, _, MAX_ENTRIES>")]
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
    /// Number of nodes that can still be created.
    pub free_nodes: u64,
}

/// Status of a server for `apus fs status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSystemStatus {
    /// Name of each client, its shared and exclusive leases, and its last batch that was applied.
    #[serde(deserialize_with = "list::<_, _, MAX_STATUS_LINES>")]
    pub clients: Vec<(Bytes, u64, u64, u64)>,
    /// A recalled node, the client that waits for it, and the client with the lease.
    #[serde(deserialize_with = "list::<_, _, MAX_STATUS_LINES>")]
    pub waiting: Vec<(Handle, Bytes, Bytes)>,
}
