//! Operations of a file system, in the terms of POSIX, and their replies.

use std::time::Duration;

use crate::wire::{
    AllocateMode, Attributes, Ino, LockConflict, LockKind, LockOwner, LockRange, Name, NewNode,
    NodeKind, SeekTarget, SpaceStatus, Time,
};
use bytes::Bytes;

/// The user on whose behalf an operation is done. The kernel has checked permissions already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// A time that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewTime {
    /// The client's present time.
    Now,
    /// This time.
    At(Time),
}

/// Attributes that are set; `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributeChange {
    /// Permission bits: 0 to 0o7777.
    pub mode: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes of a file.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<NewTime>,
    /// Last change of contents.
    pub mtime: Option<NewTime>,
    /// Clears set-user-ID and set-group-ID.
    pub kill_privileges: bool,
}

/// A place in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The directory.
    pub directory: Ino,
    /// The name.
    pub name: Name,
}

/// A request of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Looks up a name: [`Reply::Entry`] or [`Reply::Absent`].
    LookUp(Place),
    /// Drops references that replies with entries gave. No reply.
    Forget {
        /// The node.
        node: Ino,
        /// Number of references.
        count: u64,
    },
    /// Returns attributes: [`Reply::Attributes`].
    GetAttributes {
        /// The node.
        node: Ino,
    },
    /// Changes attributes: [`Reply::Attributes`].
    SetAttributes {
        /// The node.
        node: Ino,
        /// The changes.
        change: AttributeChange,
    },
    /// Returns the target of a symbolic link: [`Reply::Data`].
    ReadLink {
        /// The link.
        node: Ino,
    },
    /// Creates a node, and opens it if it is a file and `open` is set: [`Reply::Entry`] or
    /// [`Reply::Created`].
    Create {
        /// Where.
        place: Place,
        /// The kind of node.
        node: NewNode,
        /// Permission bits, with the umask applied.
        mode: u16,
        /// Whether the new file is opened.
        open: bool,
    },
    /// Creates and opens a file without a name: [`Reply::Created`].
    CreateTemporary {
        /// The directory that determines its file system and group.
        directory: Ino,
        /// Permission bits, with the umask applied.
        mode: u16,
    },
    /// Removes a name that is no directory.
    Unlink(Place),
    /// Removes an empty directory.
    RemoveDirectory(Place),
    /// Renames.
    Rename {
        /// Before.
        from: Place,
        /// Afterwards.
        to: Place,
        /// The two places exchange their nodes.
        exchange: bool,
        /// Fails if `to` exists.
        no_replace: bool,
    },
    /// Gives a node one more name: [`Reply::Entry`].
    Link {
        /// The node.
        node: Ino,
        /// Its new name.
        place: Place,
    },
    /// Opens a file: [`Reply::Opened`].
    Open {
        /// The file.
        node: Ino,
        /// Removes its contents.
        truncate: bool,
        /// It may be written through this opening.
        writable: bool,
        /// Clears set-user-ID and set-group-ID, because the file is truncated.
        kill_privileges: bool,
    },
    /// Reads: [`Reply::Data`], shorter only at the end of the file.
    Read {
        /// The file.
        node: Ino,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        size: u32,
    },
    /// Writes: [`Reply::Written`].
    Write {
        /// The file.
        node: Ino,
        /// First byte; ignored if `append` is set.
        offset: u64,
        /// The bytes.
        data: Bytes,
        /// Writes at the end of the file, wherever that is.
        append: bool,
        /// The kernel writes pages of a shared mapping.
        from_cache: bool,
        /// Clears set-user-ID and set-group-ID.
        kill_privileges: bool,
    },
    /// Closes a descriptor: POSIX locks of `owner` end.
    Flush {
        /// The file.
        node: Ino,
        /// Owner of locks.
        owner: u64,
    },
    /// Closes the last descriptor of an opening.
    Release {
        /// The file.
        node: Ino,
        /// Whether the opening could write.
        writable: bool,
        /// Owner whose `flock` lock ends.
        flock_owner: Option<u64>,
    },
    /// Makes all earlier changes of the client durable.
    Sync {
        /// The node of the request: errors of its changes are reported.
        node: Ino,
    },
    /// Opens a directory: [`Reply::Opened`].
    OpenDirectory {
        /// The directory.
        node: Ino,
    },
    /// Reads names: [`Reply::Entries`], none at the end.
    ReadDirectory {
        /// The directory.
        node: Ino,
        /// The opening.
        handle: u64,
        /// [`DirectoryEntry::next`] of the last entry that was received; 0 rewinds.
        offset: u64,
        /// Number of entries at most.
        most: usize,
        /// Returns attributes; each entry that the kernel accepts gives it a reference to its node.
        with_attributes: bool,
    },
    /// Closes a directory.
    ReleaseDirectory {
        /// The opening.
        handle: u64,
    },
    /// Sets an extended attribute.
    SetXattr {
        /// The node.
        node: Ino,
        /// Name with its namespace.
        name: Bytes,
        /// Its value.
        value: Bytes,
        /// It must not exist.
        create: bool,
        /// It must exist.
        replace: bool,
    },
    /// Returns an extended attribute: [`Reply::Data`].
    GetXattr {
        /// The node.
        node: Ino,
        /// Name with its namespace.
        name: Bytes,
    },
    /// Returns the names of extended attributes: [`Reply::Names`].
    ListXattr {
        /// The node.
        node: Ino,
    },
    /// Removes an extended attribute.
    RemoveXattr {
        /// The node.
        node: Ino,
        /// Name with its namespace.
        name: Bytes,
    },
    /// Returns the space of the file system: [`Reply::Space`].
    GetSpace,
    /// Acquires or releases a lock; fails with `EAGAIN` if it is held and `wait` is not set.
    Lock {
        /// The file.
        node: Ino,
        /// Owner.
        owner: LockOwner,
        /// Kind of lock, or unlock.
        kind: LockKind,
        /// Range.
        range: LockRange,
        /// Waits until the lock is free.
        wait: bool,
    },
    /// Returns the lock that conflicts: [`Reply::Conflict`].
    TestLock {
        /// The file.
        node: Ino,
        /// Owner.
        owner: LockOwner,
        /// Kind of the lock.
        kind: LockKind,
        /// Range.
        range: LockRange,
    },
    /// Allocates, frees or zeroes a range.
    Allocate {
        /// The file.
        node: Ino,
        /// Kind of allocation.
        mode: AllocateMode,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Finds data or a hole: [`Reply::Position`].
    Seek {
        /// The file.
        node: Ino,
        /// Where the search starts.
        offset: u64,
        /// Data or hole.
        target: SeekTarget,
    },
    /// Copies bytes at the server: [`Reply::Copied`].
    CopyRange {
        /// File that is read.
        from: Ino,
        /// First byte that is read.
        from_offset: u64,
        /// File that is written.
        to: Ino,
        /// First byte that is written.
        to_offset: u64,
        /// Number of bytes.
        length: u64,
    },
}

/// A node as it is shown to the kernel. It gives the kernel one reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeEntry {
    /// The node.
    pub node: Ino,
    /// Its attributes.
    pub attributes: Attributes,
    /// How long the name may be used without asking.
    pub name_valid: Duration,
    /// How long the attributes may be used without asking.
    pub attributes_valid: Duration,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// The name.
    pub name: Bytes,
    /// Its node.
    pub node: Ino,
    /// Its kind.
    pub kind: NodeKind,
    /// Where to continue behind it.
    pub next: u64,
    /// The node with attributes, if requested; absent for `.` and `..`.
    pub entry: Option<NodeEntry>,
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Success.
    Done,
    /// A node.
    Entry(NodeEntry),
    /// No such name, which is valid for some time.
    Absent(Duration),
    /// Attributes, and how long they are valid.
    Attributes(Ino, Attributes, Duration),
    /// A file or directory was opened.
    Opened {
        /// Number of the opening of a directory; 0 for files.
        handle: u64,
        /// Whether the kernel's cached pages of it remain valid.
        keep_cache: bool,
    },
    /// A file was created and opened.
    Created(NodeEntry),
    /// Bytes, in pieces that follow one another.
    Data(Vec<Bytes>),
    /// Number of bytes written.
    Written(u32),
    /// Names in a directory.
    Entries(Vec<DirectoryEntry>),
    /// Names of extended attributes.
    Names(Vec<Bytes>),
    /// Space.
    Space(SpaceStatus),
    /// The lock that conflicts.
    Conflict(Option<LockConflict>),
    /// A position.
    Position(u64),
    /// Number of bytes copied.
    Copied(u64),
}
