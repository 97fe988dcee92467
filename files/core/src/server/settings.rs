//! Settings of a server, and its bounds.

use std::time::Duration;

/// Settings of a server.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Validity of leases after each request of their session.
    pub term: Duration,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Maximum number of sessions.
    pub max_sessions: usize,
    /// User and group that own everything that is created; owners cannot be changed then.
    pub squash: Option<u32>,
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
            grace: true,
            export: 0,
            inos: 1 << 20,
        }
    }
}

/// Number of bits of a session's number below the number of its export. A store uses them up in
/// 2^36 greetings.
pub const EXPORT_SHIFT: u32 = 56;

/// Terms without a request after which a session ends although no other session needs its leases: a
/// client that is gone for good must not occupy memory and orphans.
pub(super) const IDLE_TERMS: u32 = 10;

/// Terms without a batch after which an unanswered recall ends its session, although the client
/// sends requests. A batch of 32 MiB needs 30 s at 1 MB/s.
pub(super) const STUCK_TERMS: u32 = 3;

/// Terms after which an unanswered recall ends its session in any case, so that a client cannot
/// stall others by sending tiny batches.
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

/// Payload bytes of these batches: two of the longest messages.
pub(super) const MAX_HELD_BYTES: usize = 64 << 20;

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

/// Locks that one session holds.
pub(super) const MAX_LOCKS: usize = 1 << 16;

/// Lock requests of one session that wait.
pub(super) const MAX_WAITING_LOCKS: usize = 4_096;

/// Contents of one file that are sent with its attributes. Longer files are read.
pub(super) const MAX_INLINE: u32 = 1 << 20;

/// Bytes of a listing's header. Below `MAX_HEADER`, so that one more entry never exceeds it.
pub(super) const MAX_LISTING_BYTES: usize = 12 << 20;

/// Upper bound on the encoded bytes of an entry without name and contents.
pub(super) const ENTRY_BYTES: usize = 192;

/// Lines of `apus fs status` about waiting requests.
pub(super) const MAX_STATUS_LINES: usize = 4_096;
