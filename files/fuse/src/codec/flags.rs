//! Sets of flags of the protocol; names follow `linux/fuse.h`, without its prefix.

bitflags::bitflags! {
    /// Features that both sides of a connection support (`FUSE_*` of INIT).
    ///
    /// The kernel offers a set, and the file system accepts a subset.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct InitFlags: u64 {
        /// Reads of one file may be outstanding at once.
        const ASYNC_READ = 1 << 0;
        /// The file system keeps the locks of fcntl(2).
        const POSIX_LOCKS = 1 << 1;
        /// OPEN truncates if its flags have `O_TRUNC`.
        const ATOMIC_O_TRUNC = 1 << 3;
        /// The file system looks up `.` and `..`. This crate never accepts it.
        const EXPORT_SUPPORT = 1 << 4;
        /// Writes may be longer than a page.
        const BIG_WRITES = 1 << 5;
        /// The file system applies the umask.
        const DONT_MASK = 1 << 6;
        /// The device can be written by splice(2).
        const SPLICE_WRITE = 1 << 7;
        /// Pages can be moved by splice(2).
        const SPLICE_MOVE = 1 << 8;
        /// The device can be read by splice(2).
        const SPLICE_READ = 1 << 9;
        /// The file system keeps the locks of flock(2).
        const FLOCK_LOCKS = 1 << 10;
        /// Directories have device control requests.
        const HAS_IOCTL_DIR = 1 << 11;
        /// Cached data is dropped when size or modification time changes.
        const AUTO_INVAL_DATA = 1 << 12;
        /// The kernel may send READDIRPLUS.
        const DO_READDIRPLUS = 1 << 13;
        /// The kernel sends READDIRPLUS only where it expects to use the attributes.
        const READDIRPLUS_AUTO = 1 << 14;
        /// Direct reads and writes may be outstanding at once.
        const ASYNC_DIO = 1 << 15;
        /// The kernel buffers writes. This crate never accepts it.
        const WRITEBACK_CACHE = 1 << 16;
        /// ENOSYS as a reply to OPEN means that no OPEN is needed. This crate never accepts it.
        const NO_OPEN_SUPPORT = 1 << 17;
        /// Lookups and reads of one directory may be outstanding at once.
        const PARALLEL_DIROPS = 1 << 18;
        /// The file system removes set-user-id, set-group-id and capabilities at each write.
        const HANDLE_KILLPRIV = 1 << 19;
        /// The file system has POSIX access control lists.
        const POSIX_ACL = 1 << 20;
        /// Reading from an aborted connection fails with ECONNABORTED in place of ENODEV.
        const ABORT_ERROR = 1 << 21;
        /// INIT's reply has the number of pages of the longest request.
        const MAX_PAGES = 1 << 22;
        /// The kernel caches targets of symbolic links.
        const CACHE_SYMLINKS = 1 << 23;
        /// ENOSYS as a reply to OPENDIR means that no OPENDIR is needed. This crate never accepts
        /// it.
        const NO_OPENDIR_SUPPORT = 1 << 24;
        /// Cached data is dropped only on request.
        const EXPLICIT_INVAL_DATA = 1 << 25;
        /// The reply to INIT has an alignment of mappings.
        const MAP_ALIGNMENT = 1 << 26;
        /// Directories may be separate mounts.
        const SUBMOUNTS = 1 << 27;
        /// The file system removes set-user-id and set-group-id where a request demands it.
        const HANDLE_KILLPRIV_V2 = 1 << 28;
        /// SETXATTR has a longer header.
        const SETXATTR_EXT = 1 << 29;
        /// INIT has 32 more flags.
        const INIT_EXT = 1 << 30;
        /// Requests that create carry a security context.
        const SECURITY_CTX = 1 << 32;
        /// Inodes choose direct access to memory.
        const HAS_INODE_DAX = 1 << 33;
        /// Requests that create carry the supplementary group that matches their directory.
        const CREATE_SUPP_GROUP = 1 << 34;
        /// Entries can expire by notification without being dropped.
        const HAS_EXPIRE_ONLY = 1 << 35;
        /// Files with direct IO may be mapped shared.
        const DIRECT_IO_ALLOW_MMAP = 1 << 36;
        /// Files may be backed by other files.
        const PASSTHROUGH = 1 << 37;
        /// File handles of name_to_handle_at(2) are refused.
        const NO_EXPORT_SUPPORT = 1 << 38;
        /// The kernel can resend unanswered requests.
        const HAS_RESEND = 1 << 39;
        /// Mounts may map ids.
        const ALLOW_IDMAP = 1 << 40;
        /// Requests may travel through io_uring.
        const OVER_IO_URING = 1 << 41;
        /// The kernel aborts the connection if a request takes longer than a stated time.
        const REQUEST_TIMEOUT = 1 << 42;
    }

    /// Treatment of an open file by the kernel (`FOPEN_*`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct OpenFlags: u32 {
        /// Reads and writes bypass the page cache.
        const DIRECT_IO = 1 << 0;
        /// Cached data of the file remains valid.
        const KEEP_CACHE = 1 << 1;
        /// The file has no positions to seek to.
        const NONSEEKABLE = 1 << 2;
        /// The kernel may cache the names of the directory.
        const CACHE_DIR = 1 << 3;
        /// The file has no position at all.
        const STREAM = 1 << 4;
        /// Closing a descriptor sends no FLUSH.
        const NOFLUSH = 1 << 5;
        /// Direct writes to the file may be outstanding at once.
        const PARALLEL_DIRECT_WRITES = 1 << 6;
    }

    /// Treatment of existing names by RENAME2 (renameat2(2)).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct RenameFlags: u32 {
        /// Fails if the new name exists.
        const NOREPLACE = 1 << 0;
        /// Exchanges the two.
        const EXCHANGE = 1 << 1;
        /// Leaves a whiteout behind.
        const WHITEOUT = 1 << 2;

        /// Flags of later kernels are retained, so that a file system can refuse them.
        const _ = !0;
    }
}
