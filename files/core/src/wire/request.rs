//! What a client asks of the server.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::wire::handle::Handle;
use crate::wire::lease::LeaseKind;
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
    /// Begins a session, or resumes one. The only request that is understood in every version.
    Hello(Hello),
    /// Everything else belongs to a session.
    Of {
        /// The session, as [`Welcome`](crate::wire::Welcome) named it.
        session: u64,
        /// What is asked.
        request: SessionRequest,
    },
}

/// Begins a session.
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
    /// The session that the client had before, if it resumes one: it has batches that the server may have applied.
    pub session: Option<u64>,
    /// Ranges of numbers that earlier sessions gave the client: its unsent changes may create nodes with them. Sent with the
    /// first Hello after a session has ended; a resumed session knows its ranges.
    pub ranges: Vec<InoRange>,
    /// Whether the client will change nothing.
    pub read_only: bool,
    /// Name of the export; empty if the server has one without a name.
    pub export: Bytes,
    /// How often the client has greeted before, without greetings that ask only for numbers. A session that was stopped by a batch
    /// that failed goes on when this is larger than before: its client then learns of the failure before it sends more.
    pub greeting: u64,
}

/// Numbers that a client may give to nodes which it creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InoRange {
    /// The first one.
    pub first: u64,
    /// How many there are.
    pub count: u64,
    /// The proof that the server gave this range to this client: a keyed hash, which survives restarts of the server.
    pub proof: u64,
}

/// A request that belongs to a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SessionRequest {
    /// Renews the session.
    Renew,
    /// Ends the session: leases and locks are released.
    Goodbye,
    /// Asks for the leases that the client had before its session ended, and which of its copies are valid. An empty list says
    /// that the client has reclaimed all: a restarted server waits for that of each client, for one term at most.
    Reclaim {
        /// Node, kind of lease, and version of the client's copy.
        leases: Vec<(Handle, LeaseKind, crate::wire::Version)>,
    },
    /// Walks a path.
    LookUp(LookUp),
    /// Lists a directory, or a whole tree.
    ListTree(ListTree),
    /// Reads ranges of files. The response's payload has the bytes, one range behind the other.
    Read {
        /// What is read.
        ranges: Vec<NodeRange>,
    },
    /// Changes.
    Batch(Batch),
    /// Asks for leases.
    Lease {
        /// Nodes and kinds.
        wanted: Vec<WantedLease>,
    },
    /// Gives leases back, in whole or in part.
    Release {
        /// Node, and the kind that the client keeps.
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
        /// Where to begin.
        offset: u64,
        /// What to find.
        target: SeekTarget,
    },
    /// Returns the space of the file system.
    StatFs,
    /// Returns what `apus fs status` shows.
    Status,
}

/// Walks a path from a directory, component by component.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookUp {
    /// Where the path begins.
    pub start: Handle,
    /// Names on the path; none asks for the attributes of `start`.
    pub path: Vec<Name>,
    /// Lease that is wanted on what is found; the directories on the path are leased as [`LeaseKind::Shared`].
    pub lease: LeaseKind,
    /// Contents of a file at the end of the path are sent with it if they have no more bytes.
    pub inline: u32,
}

/// Lists a directory and what is below.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListTree {
    /// The directory.
    pub directory: Handle,
    /// Name after which the listing goes on; `None` begins it.
    pub after: Option<Name>,
    /// Levels of directories that are listed; 1 lists only this one.
    pub depth: u16,
    /// Entries that the response has at most.
    pub entries: u32,
    /// Contents of files are sent along if they have no more bytes.
    pub inline: u32,
    /// Bytes of contents that the response has at most.
    pub inline_total: u32,
    /// Lease that is wanted on the directories and their nodes.
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

/// Changes that are applied in order. The response says that they are durable, too: the server writes them to its log first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Batch {
    /// Number of the batch: one more than that of the client's batch before, 1 for its first one.
    pub number: u64,
    /// The changes.
    pub records: Vec<Record>,
    /// Nodes whose leases the client gives back as soon as the batch is applied.
    pub returns: Vec<Handle>,
}

/// A lease that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WantedLease {
    /// The node.
    pub node: Handle,
    /// Kind of the lease.
    pub kind: LeaseKind,
}

/// A lock that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// The file.
    pub file: Handle,
    /// Its owner.
    pub owner: LockOwner,
    /// What is done.
    pub kind: LockKind,
    /// Range of bytes.
    pub range: LockRange,
    /// Whether the response waits until the lock is free.
    pub wait: bool,
    /// Whether the client had the lock before the server was restarted.
    pub reclaim: bool,
}

/// What is to be found in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeekTarget {
    /// The next byte that is data.
    Data,
    /// The next byte that belongs to a hole, or the end of the file.
    Hole,
}
