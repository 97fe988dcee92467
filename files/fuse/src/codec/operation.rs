//! The fields of each operation, as the codec hands them out.
//!
//! Names and data are borrowed from the bytes of the request. Flags of open(2) and modes have the
//! kernel's values.

use super::attributes::{FileLock, Timestamp};
use super::flags::{InitFlags, RenameFlags};
use super::forgets::Forgets;

/// A requested operation with its fields. The node that it concerns is in
/// [`RequestHeader::node`](super::RequestHeader::node).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation<'a> {
    /// Starts the connection. A [`Session`](crate::Session) answers it.
    Init(Init),
    /// Looks up `name`; the reply is an entry.
    Lookup {
        /// The name.
        name: &'a [u8],
    },
    /// Drops `count` of the references that replies with entries gave; no reply.
    Forget {
        /// Number of references.
        count: u64,
    },
    /// Drops references to several nodes; no reply.
    BatchForget(Forgets<'a>),
    /// Reads attributes.
    Getattr {
        /// The open file, if the call was fstat(2).
        handle: Option<u64>,
    },
    /// Changes attributes; the reply is the new attributes.
    Setattr(Setattr),
    /// Reads the target of a symbolic link; the reply is data.
    Readlink,
    /// Creates a symbolic link; the reply is an entry.
    Symlink {
        /// The name of the link.
        name: &'a [u8],
        /// Target of the link.
        target: &'a [u8],
    },
    /// Creates a node without opening it; the reply is an entry.
    Mknod {
        /// The name.
        name: &'a [u8],
        /// Type and permissions.
        mode: u32,
        /// The device, for device nodes.
        device: u32,
        /// The caller's umask, already applied unless [`InitFlags::DONT_MASK`].
        umask: u32,
    },
    /// Creates a directory; the reply is an entry.
    Mkdir {
        /// The name.
        name: &'a [u8],
        /// Permissions.
        mode: u32,
        /// The caller's umask, already applied unless [`InitFlags::DONT_MASK`].
        umask: u32,
    },
    /// Removes a name that is no directory.
    Unlink {
        /// The name.
        name: &'a [u8],
    },
    /// Removes an empty directory.
    Rmdir {
        /// The name.
        name: &'a [u8],
    },
    /// Renames. RENAME and RENAME2 are one operation here.
    Rename {
        /// The old name.
        name: &'a [u8],
        /// The directory of the new name.
        new_parent: u64,
        /// The new name.
        new_name: &'a [u8],
        /// Treatment of an existing node at the new name.
        flags: RenameFlags,
    },
    /// Creates a hard link in the request's node; the reply is an entry.
    Link {
        /// The node that gets one more name.
        existing: u64,
        /// The new name.
        new_name: &'a [u8],
    },
    /// Opens a file; the reply is a handle.
    Open {
        /// Flags of open(2).
        flags: u32,
        /// Remove set-user-id and set-group-id, because the file is truncated.
        kill_suid_gid: bool,
    },
    /// Reads; the reply is data, shorter than `size` only at the end of the file.
    Read(Read),
    /// Writes; the reply is a length.
    Write(Write<'a>),
    /// Reads totals of the file system.
    Statfs,
    /// Closes an open file. The kernel waits for the reply only in part; errors are lost.
    Release(Release),
    /// Makes a file durable.
    Fsync {
        /// The open file.
        handle: u64,
        /// Attributes may be left out, as with fdatasync(2).
        data_only: bool,
    },
    /// Sets an extended attribute.
    Setxattr {
        /// Name of the attribute.
        name: &'a [u8],
        /// Its value.
        value: &'a [u8],
        /// `XATTR_CREATE` (1), `XATTR_REPLACE` (2), or 0.
        flags: u32,
        /// Remove set-group-id, because an access control list is set.
        kill_sgid: bool,
    },
    /// Reads an extended attribute; the reply is data or, if `size` is 0, a size.
    Getxattr {
        /// Name of the attribute.
        name: &'a [u8],
        /// Room for the value in bytes. ERANGE if it is too little.
        size: u32,
    },
    /// Lists extended attributes: names, each with a NUL; the reply is data or, if `size` is 0, a
    /// size.
    Listxattr {
        /// Room for the names in bytes. ERANGE if it is too little.
        size: u32,
    },
    /// Removes an extended attribute.
    Removexattr {
        /// Name of the attribute.
        name: &'a [u8],
    },
    /// A descriptor of an open file is closed.
    Flush {
        /// The open file.
        handle: u64,
        /// Owner whose POSIX locks end.
        lock_owner: u64,
    },
    /// Opens a directory; the reply is a handle.
    Opendir {
        /// Flags of open(2).
        flags: u32,
    },
    /// Reads names; the reply is a [`Directory`](super::Directory), empty at the end.
    Readdir(Readdir),
    /// Closes a directory.
    Releasedir(Release),
    /// Makes a directory durable.
    Fsyncdir {
        /// The open directory.
        handle: u64,
        /// Attributes may be left out, as with fdatasync(2).
        data_only: bool,
    },
    /// Tests for a lock; the reply is a lock.
    Getlk(Lock),
    /// Takes or releases a lock. SETLK and SETLKW are one operation here.
    Setlk {
        /// The lock.
        lock: Lock,
        /// Wait until the lock can be taken; otherwise EAGAIN. A wait ends early with an interrupt,
        /// and EINTR.
        wait: bool,
    },
    /// Checks permissions.
    Access {
        /// `R_OK`, `W_OK`, `X_OK` of access(2).
        mask: u32,
    },
    /// Creates and opens a file; the reply is an entry and a handle.
    Create(Create<'a>),
    /// Interrupts an unanswered request, which is then answered with EINTR; the interrupt itself
    /// has no reply.
    Interrupt {
        /// [`RequestHeader::unique`](super::RequestHeader::unique) of the request that should end.
        unique: u64,
    },
    /// The connection ends.
    Destroy,
    /// A device control request. ENOTTY is the usual reply.
    Ioctl(Ioctl<'a>),
    /// Queries the readiness of an open file. ENOSYS means: always ready, and no more such
    /// requests.
    Poll(Poll),
    /// Allocates or frees space.
    Fallocate {
        /// The open file.
        handle: u64,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
        /// Mode of fallocate(2).
        mode: u32,
    },
    /// Searches for data or holes; the reply is an offset.
    Lseek {
        /// The open file.
        handle: u64,
        /// Start of the search.
        offset: u64,
        /// `SEEK_DATA` (3) or `SEEK_HOLE` (4).
        whence: u32,
    },
    /// Copies between files; the reply is a length.
    CopyFileRange(CopyFileRange),
    /// Makes the file system durable. The kernel sends it only for block devices and virtiofs.
    Syncfs,
    /// Creates and opens a file without a name in a directory; the reply is an entry and a handle.
    Tmpfile(Tmpfile),
    /// Reads attributes, with the time of creation. ENOSYS means: no more such requests, GETATTR in
    /// their place.
    Statx {
        /// The open file, if statx(2) was called on one.
        handle: Option<u64>,
        /// `AT_STATX_*`.
        flags: u32,
        /// `STATX_*`: the requested fields.
        mask: u32,
    },
    /// An operation that this codec does not support. The reply is ENOSYS.
    Unknown {
        /// Its number.
        opcode: u32,
        /// Its fields.
        body: &'a [u8],
    },
}

/// Fields of INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init {
    /// Major version of the protocol.
    pub major: u32,
    /// Minor version of the protocol.
    pub minor: u32,
    /// Longest read-ahead in bytes.
    pub max_readahead: u32,
    /// Features that the kernel offers.
    pub flags: InitFlags,
}

/// A time that SETATTR sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The file system's present time.
    Now,
    /// This time.
    To(Timestamp),
}

/// Fields of SETATTR; `None` leaves an attribute unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setattr {
    /// The open file that the call was made on.
    pub handle: Option<u64>,
    /// Type and permissions.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length in bytes.
    pub size: Option<u64>,
    /// Time of the last access.
    pub atime: Option<SetTime>,
    /// Time of the last change of data.
    pub mtime: Option<SetTime>,
    /// Time of the last change of attributes.
    pub ctime: Option<Timestamp>,
    /// Owner of locks, for a truncation.
    pub lock_owner: Option<u64>,
    /// Remove set-user-id and set-group-id.
    pub kill_suid_gid: bool,
}

/// Fields of READ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// The open file.
    pub handle: u64,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub size: u32,
    /// Present flags of the open file, of open(2).
    pub flags: u32,
    /// Owner of locks, if the read is checked against mandatory locks.
    pub lock_owner: Option<u64>,
}

/// Fields of WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write<'a> {
    /// The open file.
    pub handle: u64,
    /// First byte. With `O_APPEND` in `flags`, the kernel's idea of the end of the file, which may
    /// be out of date.
    pub offset: u64,
    /// The bytes.
    pub data: &'a [u8],
    /// Present flags of the open file, of open(2).
    pub flags: u32,
    /// The write comes from the page cache (a shared mapping): `handle` can write, but need not be
    /// the caller's, and process and user of the header are not meaningful.
    pub from_cache: bool,
    /// Owner of locks, if the write is checked against mandatory locks.
    pub lock_owner: Option<u64>,
    /// Remove set-user-id and set-group-id.
    pub kill_suid_gid: bool,
}

/// Fields of RELEASE and RELEASEDIR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The open file or directory, which is not used again.
    pub handle: u64,
    /// Flags of open(2).
    pub flags: u32,
    /// Owner whose locks end.
    pub lock_owner: u64,
    /// The owner's flock(2) lock ends.
    pub flock_unlock: bool,
}

/// Fields of READDIR and READDIRPLUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readdir {
    /// The open directory.
    pub handle: u64,
    /// Position to continue from: the `next` of the last entry received, or 0.
    pub offset: u64,
    /// Room for entries in bytes.
    pub size: u32,
    /// Entries have attributes, and each gives a reference to its node.
    pub plus: bool,
}

/// Fields of GETLK, SETLK and SETLKW.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The open file.
    pub handle: u64,
    /// The owner: locks of one owner do not exclude each other.
    pub owner: u64,
    /// Range and kind.
    pub lock: FileLock,
    /// The lock comes from flock(2): it covers the whole file and is independent of locks of
    /// fcntl(2).
    pub flock: bool,
}

/// Fields of CREATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Create<'a> {
    /// The name.
    pub name: &'a [u8],
    /// Type and permissions.
    pub mode: u32,
    /// The caller's umask, already applied unless [`InitFlags::DONT_MASK`].
    pub umask: u32,
    /// Flags of open(2).
    pub flags: u32,
    /// Remove set-user-id and set-group-id, because the file is truncated.
    pub kill_suid_gid: bool,
}

/// Fields of TMPFILE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tmpfile {
    /// Type and permissions.
    pub mode: u32,
    /// The caller's umask, already applied unless [`InitFlags::DONT_MASK`].
    pub umask: u32,
    /// Flags of open(2).
    pub flags: u32,
}

/// Fields of IOCTL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ioctl<'a> {
    /// The open file.
    pub handle: u64,
    /// `FUSE_IOCTL_*`.
    pub flags: u32,
    /// The command.
    pub command: u32,
    /// Its argument.
    pub argument: u64,
    /// Bytes that the caller passes.
    pub data: &'a [u8],
    /// Room for the answer in bytes.
    pub out_size: u32,
}

/// Fields of POLL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Poll {
    /// The open file.
    pub handle: u64,
    /// Name of the wait in the kernel.
    pub kernel_handle: u64,
    /// The kernel requests a notification.
    pub schedule_notify: bool,
    /// Events of poll(2).
    pub events: u32,
}

/// Fields of COPY_FILE_RANGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyFileRange {
    /// The open file to read; its node is the request's.
    pub handle_in: u64,
    /// First byte to read.
    pub offset_in: u64,
    /// The node to write.
    pub node_out: u64,
    /// The open file to write.
    pub handle_out: u64,
    /// First byte to write.
    pub offset_out: u64,
    /// Number of bytes.
    pub length: u64,
    /// Flags of copy_file_range(2): 0 at present.
    pub flags: u64,
}
