//! Settings of a session.

use crate::codec::InitFlags;

/// Page size of the kernel in bytes, the unit of the protocol for the length of requests.
pub(crate) const PAGE: u32 = 4096;

/// Features that a session requests of the kernel, and its limits.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SessionSettings {
    /// Longest write in bytes, from 4 KiB to 1 MiB, a multiple of 4 KiB; other values are rounded.
    pub max_write: u32,
    /// Longest read-ahead in bytes. The kernel has its own limit, 128 KiB unless the administrator
    /// changes it.
    pub max_readahead: u32,
    /// Most requests that no thread waits for, such as read-ahead.
    pub max_background: u16,
    /// Number of background requests at which the kernel considers the file system slow.
    pub congestion_threshold: u16,
    /// Most requests that are unanswered at once.
    pub max_unanswered: usize,
    /// Features accepted if the kernel offers them. Unsupported flags of [`InitFlags`] are ignored.
    pub flags: InitFlags,
}

impl SessionSettings {
    /// Features accepted by default if the kernel offers them.
    ///
    /// Cached data and names change only by notification or after their time, so the file system
    /// must notify. The kernel writes through: the reply to WRITE becomes the result of write(2).
    /// The file system implements locks, truncation by OPEN, and the removal of set-user-id (where
    /// a request demands it).
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

    /// Features that this crate never accepts, because the codec or the session does not support
    /// them.
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
    /// Writes of 1 MiB, 64 background requests, 65,536 unanswered requests, and
    /// [`SessionSettings::FLAGS`].
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
