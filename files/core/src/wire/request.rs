//! Requests of a client to the server.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::wire::handle::Handle;
use crate::wire::lease::LeaseKind;
use crate::wire::limits::{MAX_NODES, MAX_PATH_COMPONENTS, MAX_RANGES, MAX_RECORDS};
use crate::wire::list::list;
use crate::wire::lock::{LockKind, LockOwner, LockRange};
use crate::wire::name::Name;
use crate::wire::record::Record;

/// Version of these messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct WireVersion(pub u16);

impl WireVersion {
    /// The version that this crate speaks.
    pub const CURRENT: Self = Self(1);
    /// The oldest version that this crate speaks.
    pub const OLDEST: Self = Self(1);
}

/// A request of a client. Each one renews the leases of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Starts a session, or resumes one. The only request that every version understands.
    Hello(Hello),
    /// Everything else belongs to a session.
    Of {
        /// The session, as [`Welcome`](crate::wire::Welcome) named it.
        session: u64,
        /// The request.
        request: SessionRequest,
    },
}

/// Starts a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Oldest version that the client speaks.
    pub oldest: WireVersion,
    /// Newest version that the client speaks.
    pub newest: WireVersion,
    /// Identity of the mount, drawn at random when it was made.
    pub client: [u8; 16],
    /// Host and path of the mount, for people.
    pub name: Bytes,
    /// The client's previous session, if it resumes one: the server may have applied its batches.
    pub session: Option<u64>,
    /// Inode ranges of earlier sessions: unsent changes may create nodes with them. Sent with the
    /// first Hello after a session has ended; a resumed session has its ranges.
    #[serde(deserialize_with = "list::<_, _, MAX_RANGES>")]
    pub ranges: Vec<InoRange>,
    /// Whether the client makes no changes.
    pub read_only: bool,
    /// Name of the export; empty if the server has one without a name.
    pub export: Bytes,
    /// Number of earlier greetings, without greetings that only request numbers. A session that a
    /// failed batch has stopped continues when this increases: its client then learns of the
    /// failure before it sends more.
    pub greeting: u64,
}

/// Numbers that a client may give to nodes which it creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InoRange {
    /// The first one.
    pub first: u64,
    /// How many there are.
    pub count: u64,
    /// The proof that the server gave this range to this client: a keyed hash, valid across
    /// restarts of the server.
    pub proof: u64,
}

/// A request that belongs to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionRequest {
    /// Renews the session.
    Renew,
    /// Ends the session: leases and locks are released.
    Goodbye,
    /// Requests the leases of the client's previous session, and which of its copies are valid. An
    /// empty list ends the reclaim: a restarted server waits for it from each client, for one term
    /// at most.
    Reclaim {
        /// Node, kind of lease, and version of the client's copy.
        #[serde(deserialize_with = "list::<_, _, MAX_NODES>")]
        leases: Vec<(Handle, LeaseKind, crate::wire::Version)>,
    },
    /// Walks a path.
    LookUp(LookUp),
    /// Lists a directory, or a whole tree.
    ListTree(ListTree),
    /// Reads ranges of files. The response's payload has the bytes, one range after the other.
    Read {
        /// The ranges.
        #[serde(deserialize_with = "list::<_, _, MAX_NODES>")]
        ranges: Vec<NodeRange>,
    },
    /// Changes.
    Batch(Batch),
    /// Requests leases.
    Lease {
        /// Nodes and kinds.
        #[serde(deserialize_with = "list::<_, _, MAX_NODES>")]
        wanted: Vec<WantedLease>,
    },
    /// Gives leases back, in whole or in part.
    Release {
        /// Node, and the kind that the client keeps.
        #[serde(deserialize_with = "list::<_, _, MAX_NODES>")]
        leases: Vec<(Handle, LeaseKind)>,
    },
    /// Locks or unlocks.
    Lock(Lock),
    /// Returns a lock that conflicts with the given one, if there is any.
    TestLock(Lock),
    /// Withdraws a lock request that waits.
    CancelLock {
        /// The file.
        file: Handle,
        /// The owner that waits.
        owner: LockOwner,
    },
    /// Returns an extended attribute.
    GetXattr {
        /// The node.
        node: Handle,
        /// Name of the attribute, with its namespace.
        name: Bytes,
    },
    /// Returns the names of all extended attributes.
    ListXattr {
        /// The node.
        node: Handle,
    },
    /// Finds the next hole or the next data of a file.
    Seek {
        /// The file.
        file: Handle,
        /// Where the search starts.
        offset: u64,
        /// Data or hole.
        target: SeekTarget,
    },
    /// Returns the space of the file system.
    StatFs,
    /// Returns the status for `apus fs status`.
    Status,
}

/// Walks a path from a directory, component by component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookUp {
    /// Start of the path.
    pub start: Handle,
    /// Names on the path; none requests the attributes of `start`.
    #[serde(deserialize_with = "list::<_, _, MAX_PATH_COMPONENTS>")]
    pub path: Vec<Name>,
    /// Requested lease of the node at the end; the directories on the path are leased as
    /// [`LeaseKind::Shared`].
    pub lease: LeaseKind,
    /// Contents of a file at the end of the path are sent with it if they have no more bytes.
    pub inline: u32,
}

/// Lists a directory and the tree below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTree {
    /// The directory.
    pub directory: Handle,
    /// Name after which the listing continues; `None` starts it.
    pub after: Option<Name>,
    /// Levels of directories that are listed; 1 lists only this one.
    pub depth: u16,
    /// Entries that the response has at most.
    pub entries: u32,
    /// Contents of files are sent along if they have no more bytes.
    pub inline: u32,
    /// Bytes of contents that the response has at most.
    pub inline_total: u32,
    /// Requested lease of the directories and their nodes.
    pub lease: LeaseKind,
}

/// A range of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRange {
    /// The file.
    pub file: Handle,
    /// Position of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u32,
}

/// Changes to apply in order. The response confirms that they are durable as well: the server
/// writes them to its log first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Number of the batch: one more than the client's previous batch, 1 for its first one.
    pub number: u64,
    /// The changes.
    #[serde(deserialize_with = "list::<_, _, MAX_RECORDS>")]
    pub records: Vec<Record>,
    /// Nodes whose leases the client gives back as soon as the batch is applied.
    #[serde(deserialize_with = "list::<_, _, MAX_NODES>")]
    pub returns: Vec<Handle>,
}

/// A requested lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedLease {
    /// The node.
    pub node: Handle,
    /// Kind of the lease.
    pub kind: LeaseKind,
}

/// A requested lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The file.
    pub file: Handle,
    /// Its owner.
    pub owner: LockOwner,
    /// Kind of lock, or unlock.
    pub kind: LockKind,
    /// Range of bytes.
    pub range: LockRange,
    /// Whether the response waits until the lock is free.
    pub wait: bool,
    /// Whether the client had the lock before the server was restarted.
    pub reclaim: bool,
}

/// Target of a search in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeekTarget {
    /// The next byte that is data.
    Data,
    /// The next byte that belongs to a hole, or the end of the file.
    Hole,
}
