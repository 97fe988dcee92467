//! Attributes of nodes, entries, locks and totals, and their form on the wire.

use std::time::Duration;

use super::layout::{input, output};

/// Node of the root directory; it exists without a lookup.
pub const ROOT: u64 = 1;

/// A time: seconds since 1970, and nanoseconds below 10^9 that are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970; negative before.
    pub seconds: i64,
    /// Nanoseconds, below 10^9.
    pub nanoseconds: u32,
}

impl Timestamp {
    /// From the wire, where seconds are unsigned by type and signed by meaning.
    pub(crate) fn from_wire(seconds: u64, nanoseconds: u32) -> Self {
        Self { seconds: seconds.cast_signed(), nanoseconds }
    }

    fn to_statx(self) -> output::StatxTime {
        output::StatxTime { seconds: self.seconds, nanoseconds: self.nanoseconds, reserved: 0 }
    }
}

/// Attributes of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Inode number that stat(2) shows; usually the node.
    pub inode: u64,
    /// Length in bytes.
    pub size: u64,
    /// Space in units of 512 bytes.
    pub blocks: u64,
    /// Time of the last access.
    pub atime: Timestamp,
    /// Time of the last change of data.
    pub mtime: Timestamp,
    /// Time of the last change of attributes.
    pub ctime: Timestamp,
    /// Type and permissions, as in `st_mode`.
    pub mode: u32,
    /// Number of names.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The device, for device nodes.
    pub device: u32,
    /// Preferred length of reads and writes in bytes.
    pub block_size: u32,
}

impl Attributes {
    pub(crate) fn to_wire(self) -> output::Attr {
        output::Attr {
            ino: self.inode,
            size: self.size,
            blocks: self.blocks,
            atime: self.atime.seconds.cast_unsigned(),
            mtime: self.mtime.seconds.cast_unsigned(),
            ctime: self.ctime.seconds.cast_unsigned(),
            atimensec: self.atime.nanoseconds,
            mtimensec: self.mtime.nanoseconds,
            ctimensec: self.ctime.nanoseconds,
            mode: self.mode,
            nlink: self.links,
            uid: self.uid,
            gid: self.gid,
            rdev: self.device,
            blksize: self.block_size,
            flags: 0,
        }
    }

    /// The form of statx(2), with the time of creation, if available.
    pub(crate) fn to_statx(self, created: Option<Timestamp>) -> output::StatxBody {
        /// `STATX_BASIC_STATS` and `STATX_BTIME`.
        const BASIC: u32 = 0x7ff;
        const CREATED: u32 = 0x800;
        // The kernel's packing of devices in 32 bits: 12 bits of major among 20 of minor.
        let (major, minor) =
            ((self.device >> 8) & 0xfff, (self.device & 0xff) | ((self.device >> 12) & 0xf_ff00));
        output::StatxBody {
            mask: BASIC | if created.is_some() { CREATED } else { 0 },
            blksize: self.block_size,
            nlink: self.links,
            uid: self.uid,
            gid: self.gid,
            mode: self.mode as u16, // Type and permissions are 16 bits.
            ino: self.inode,
            size: self.size,
            blocks: self.blocks,
            atime: self.atime.to_statx(),
            btime: created.unwrap_or_default().to_statx(),
            ctime: self.ctime.to_statx(),
            mtime: self.mtime.to_statx(),
            rdev_major: major,
            rdev_minor: minor,
            ..output::StatxBody::default()
        }
    }
}

/// A node under a name, as the reply to a lookup or a creation. It gives the kernel one reference
/// to the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The node. 0 means that the name does not exist, which the kernel remembers for
    /// `entry_timeout`.
    pub node: u64,
    /// Makes a node unique that is used for one inode after another.
    pub generation: u64,
    /// Period for which the name leads to this node without a new lookup. [`Duration::MAX`] is
    /// forever.
    pub entry_timeout: Duration,
    /// Period for which the attributes are valid. [`Duration::MAX`] is forever.
    pub attributes_timeout: Duration,
    /// The attributes.
    pub attributes: Attributes,
}

impl Entry {
    /// Returns an entry for a name that does not exist; the kernel may cache that for `timeout`.
    #[must_use]
    pub fn absent(timeout: Duration) -> Self {
        Self { entry_timeout: timeout, ..Self::default() }
    }

    pub(crate) fn to_wire(self) -> output::Entry {
        output::Entry {
            nodeid: self.node,
            generation: self.generation,
            entry_valid: self.entry_timeout.as_secs(),
            attr_valid: self.attributes_timeout.as_secs(),
            entry_valid_nsec: self.entry_timeout.subsec_nanos(),
            attr_valid_nsec: self.attributes_timeout.subsec_nanos(),
            attr: self.attributes.to_wire(),
        }
    }
}

/// A range that is locked, or could be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLock {
    /// First byte.
    pub start: u64,
    /// Last byte, included; `i64::MAX` for the end of the file.
    pub end: u64,
    /// `F_RDLCK` (0), `F_WRLCK` (1) or `F_UNLCK` (2).
    pub kind: u32,
    /// Process that holds or requests it.
    pub process: u32,
}

impl FileLock {
    pub(crate) fn from_wire(lock: &input::Lock) -> Self {
        Self { start: lock.start, end: lock.end, kind: lock.kind, process: lock.pid }
    }

    pub(crate) fn to_wire(self) -> output::Lock {
        output::Lock { start: self.start, end: self.end, kind: self.kind, pid: self.process }
    }
}

/// Totals of a file system, as in statvfs(3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statfs {
    /// Space, in units of `fragment_size`.
    pub blocks: u64,
    /// Free space, in units of `fragment_size`.
    pub free_blocks: u64,
    /// Free space for users without privileges, in units of `fragment_size`.
    pub available_blocks: u64,
    /// Number of inodes.
    pub files: u64,
    /// Number of free inodes.
    pub free_files: u64,
    /// Preferred length of reads and writes in bytes.
    pub block_size: u32,
    /// Longest name in bytes.
    pub max_name: u32,
    /// Unit of space in bytes.
    pub fragment_size: u32,
}

impl Statfs {
    pub(crate) fn to_wire(self) -> output::Statfs {
        output::Statfs {
            blocks: self.blocks,
            bfree: self.free_blocks,
            bavail: self.available_blocks,
            files: self.files,
            ffree: self.free_files,
            bsize: self.block_size,
            namelen: self.max_name,
            frsize: self.fragment_size,
            ..output::Statfs::default()
        }
    }
}
