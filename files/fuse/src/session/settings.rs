//! What a session wants of the kernel.

use crate::codec::InitFlags;

/// Page of the kernel in bytes, in which the protocol counts the length of requests.
pub(crate) const PAGE: u32 = 4096;

/// What a session wants of the kernel, and its limits.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SessionSettings {
    /// Longest write in bytes, from 4 KiB to 1 MiB, a multiple of 4 KiB; other values are rounded.
    pub max_write: u32,
    /// Longest read-ahead in bytes. The kernel has a limit of its own, 128 KiB unless the administrator changes it.
    pub max_readahead: u32,
    /// Most requests that no thread waits for, such as read-ahead.
    pub max_background: u16,
    /// Number of those from which the kernel considers the file system slow.
    pub congestion_threshold: u16,
    /// Most requests that are unanswered at once.
    pub max_unanswered: usize,
    /// What is taken of what the kernel offers. Flags of [`InitFlags`] that are never taken are ignored.
    pub flags: InitFlags,
}

impl SessionSettings {
    /// What is taken by default of what the kernel offers.
    ///
    /// Cached data and names change only by notification or after their time, so the file system must notify. The
    /// kernel writes through: a reply to WRITE is what write(2) returns. Locks, truncation by OPEN, and the removal of
    /// set-user-id (where a request says so) are the file system's.
    pub const FLAGS: InitFlags = InitFlags::ASYNC_READ
        .union(InitFlags::POSIX_LOCKS)
        .union(InitFlags::FLOCK_LOCKS)
        .union(InitFlags::ATOMIC_O_TRUNC)
        .union(InitFlags::BIG_WRITES)
        .union(InitFlags::MAX_PAGES)
        .union(InitFlags::DO_READDIRPLUS)
        .union(InitFlags::READDIRPLUS_AUTO)
        .union(InitFlags::ASYNC_DIO)
        .union(InitFlags::PARALLEL_DIROPS)
        .union(InitFlags::ABORT_ERROR)
        .union(InitFlags::CACHE_SYMLINKS)
        .union(InitFlags::EXPLICIT_INVAL_DATA)
        .union(InitFlags::HANDLE_KILLPRIV_V2)
        .union(InitFlags::SETXATTR_EXT)
        .union(InitFlags::INIT_EXT)
        .union(InitFlags::HAS_EXPIRE_ONLY)
        .union(InitFlags::HAS_RESEND);

    /// What this crate never takes, because the codec or the session cannot serve it.
    pub(crate) const NEVER: InitFlags = InitFlags::EXPORT_SUPPORT
        .union(InitFlags::WRITEBACK_CACHE)
        .union(InitFlags::NO_OPEN_SUPPORT)
        .union(InitFlags::NO_OPENDIR_SUPPORT)
        .union(InitFlags::MAP_ALIGNMENT)
        .union(InitFlags::SUBMOUNTS)
        .union(InitFlags::SECURITY_CTX)
        .union(InitFlags::HAS_INODE_DAX)
        .union(InitFlags::PASSTHROUGH)
        .union(InitFlags::ALLOW_IDMAP)
        .union(InitFlags::OVER_IO_URING)
        .union(InitFlags::REQUEST_TIMEOUT);

    /// Returns `max_write` within its bounds.
    pub(crate) fn checked_max_write(&self) -> u32 {
        (self.max_write.clamp(PAGE, 1 << 20) / PAGE) * PAGE
    }
}

impl Default for SessionSettings {
    /// Writes of 1 MiB, 64 background requests, 65,536 unanswered requests, and [`SessionSettings::FLAGS`].
    fn default() -> Self {
        Self {
            max_write: 1 << 20,
            max_readahead: 1 << 20,
            max_background: 64,
            congestion_threshold: 48,
            max_unanswered: 65_536,
            flags: Self::FLAGS,
        }
    }
}
