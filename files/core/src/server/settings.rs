//! Settings of a server, and its bounds.

use std::time::Duration;

use super::shares::Limits;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Validity of leases after each request of their session.
    pub term: Duration,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Maximum number of sessions.
    pub max_sessions: usize,
    /// User, and group of the same number, that all clients act as.
    pub squash: Option<u32>,
    /// Whether root of other hosts is root here as well, and may make devices and programs with
    /// set-id bits. Otherwise other hosts have the rights of all users but root.
    pub trusts_root: bool,
    /// Whether clients may have leases of an earlier life of this server: for one term, leases are
    /// only reclaimed. `false` only for an export that was never served.
    pub grace: bool,
    /// Number of the export within its endpoint: the highest byte of its sessions' numbers, which
    /// the endpoint uses to route requests.
    pub export: u8,
    /// Number of inode numbers that each Hello gives a client.
    pub inos: u64,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            term: Duration::from_secs(10),
            read_only: false,
            max_sessions: 1_024,
            squash: None,
            trusts_root: false,
            grace: true,
            export: 0,
            inos: 1 << 20,
        }
    }
}

/// Sessions: each host may have a quarter of them.
pub(super) const fn session_limits(most: usize) -> Limits {
    let (quarter, small) = (most / 4, 16);
    Limits { total: most, host: if quarter < small { small } else { quarter }, small }
}

/// Number of bits of a session's number below the number of its export. A store uses them up in
/// 2^36 greetings.
pub const EXPORT_SHIFT: u32 = 56;

/// Terms without a request after which a session ends although no other session needs its leases: a
/// client that is gone for good must not occupy memory and orphans.
pub(super) const IDLE_TERMS: u32 = 10;

/// Terms after which a question whether a removed node is open counts as answered with yes.
pub(super) const STUCK_TERMS: u32 = 3;

/// Progress of a session that is worth one more term during a recall: one full batch of a client,
/// which is sent in a term at 100 kB/s.
pub(super) const PROGRESS: u64 = 1 << 20;

/// Progress that a record counts as, beside its payload: a full batch has 1,000 records.
pub(super) const RECORD_PROGRESS: u64 = 1 << 10;

/// Terms that a session has for the answer to a recall beside the first one, if its network may be
/// the cause.
pub(super) const EXCUSED_TERMS: u32 = 2;

/// Terms, without the excused ones, after which an unanswered recall ends its session in any case.
pub(super) const RECALL_TERMS: u32 = 12;

/// Part of the term, as a divisor, after which a failed recall is repeated: often enough to reach a
/// client whose network fails for a moment, and no busy loop where its port is closed.
pub(super) const RETRY_PART: u32 = 20;

/// Maximum number of callbacks outstanding at one client. More than one, so that a recall of clean
/// nodes does not wait for a recall that flushes.
pub(super) const MAX_CALLBACKS: usize = 4;

/// Maximum number of a session's requests that wait for leases. Chosen by us: more than a FUSE
/// mount queues.
pub(super) const MAX_WAITING: usize = 1_024;

/// Nodes that the waiting requests of one session need, about 25 MB of tables.
pub(super) const MAX_WAITING_NODES: usize = 1 << 18;

/// Maximum number of a session's batches that arrived before their predecessor. Chosen by us: a
/// client has fewer in flight.
pub(super) const MAX_HELD_BATCHES: u64 = 64;

/// Payload bytes of these batches. A host may have two of the longest messages.
pub(super) const HELD_BYTES: Limits = Limits { total: 256 << 20, host: 64 << 20, small: 4 << 20 };

/// Calls that may wait for one batch: a client that lost a response calls again.
pub(super) const MAX_BATCH_CALLS: usize = 8;

/// Payload bytes after which appended batches are committed before the end of the burst.
pub(super) const MAX_APPENDED_BYTES: usize = 64 << 20;

/// Maximum number of leases that one session may request, about 100 MB of tables.
pub(super) const MAX_LEASES: usize = 1 << 20;

/// Maximum number of leases of one session, including nodes that it has created. A batch that would
/// exceed it is refused.
pub(super) const MAX_CREATED_LEASES: usize = 1 << 22;

/// Maximum number of nodes whose receipt by a session is tracked. Beyond it, the session is asked
/// about each orphan.
pub(super) const MAX_HISTORY: usize = 1 << 20;

/// Locked ranges, each about 300 bytes of tables.
pub(super) const LOCKS: Limits = Limits { total: 1 << 18, host: 1 << 14, small: 256 };

/// Lock requests that wait.
pub(super) const WAITING_LOCKS: Limits = Limits { total: 1 << 14, host: 4_096, small: 64 };

/// Waiting lock requests that are checked again per message, when their obstacle has gone. Chosen
/// by us: together they take about as long as the message.
pub(super) const LOCK_CHECKS: usize = 16;

/// Owners that the search for a deadlock visits. Linux visits 10 (`MAX_DEADLK_ITERATIONS`).
pub(super) const MAX_DEADLOCK_OWNERS: usize = 64;

/// Contents of one file that are sent with its attributes. Longer files are read.
pub(super) const MAX_INLINE: u32 = 1 << 20;

/// Entries of all listings in one response: as many as a client requests. All other requests wait
/// while they are read.
pub(super) const MAX_LISTED: usize = 4_096;

/// Bytes of a listing's header. Below `MAX_HEADER`, so that one more entry never exceeds it.
pub(super) const MAX_LISTING_BYTES: usize = 12 << 20;

/// Upper bound on the encoded bytes of an entry without name and contents.
pub(super) const ENTRY_BYTES: usize = 192;
