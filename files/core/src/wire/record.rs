//! Records: the changes of a batch.
//!
//! A record can be applied twice: after a crash, a server applies the records again whose effects
//! may be lost. So a record names nodes by number, and states the earlier node of a name wherever
//! the name alone would be ambiguous.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::wire::attributes::{NodeKind, Time};
use crate::wire::handle::{Handle, Ino};
use crate::wire::name::Name;

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Record {
    /// Creates a node with a number of the client's range.
    Create {
        /// Directory of the name; `None` creates a file without a name (`O_TMPFILE`).
        parent: Option<(Handle, Name)>,
        /// Number of the new node.
        ino: Ino,
        /// Kind of node.
        node: NewNode,
        /// Permission bits: 0 to 0o7777.
        mode: u16,
        /// Owner.
        uid: u32,
        /// Group.
        gid: u32,
        /// When the client created it.
        time: Time,
    },
    /// Gives a node one more name.
    Link {
        /// The node.
        node: Handle,
        /// Directory of the name.
        parent: Handle,
        /// The name.
        name: Name,
    },
    /// Removes the name of a node that is no directory.
    Unlink {
        /// Directory that loses the name.
        parent: Handle,
        /// The name.
        name: Name,
        /// The node that has this name.
        node: Handle,
    },
    /// Removes an empty directory.
    RemoveDirectory {
        /// Directory that loses the name.
        parent: Handle,
        /// The name.
        name: Name,
        /// The directory that has this name.
        node: Handle,
    },
    /// Moves a name and removes the node with the new name, or exchanges two names.
    Rename {
        /// Directory and name before.
        from: (Handle, Name),
        /// Directory and name afterwards.
        to: (Handle, Name),
        /// The node that moves.
        node: Handle,
        /// The node that had the name `to` before.
        replaced: Option<Handle>,
        /// Whether `replaced` gets the name `from`.
        exchange: bool,
    },
    /// Writes bytes of a file.
    Write {
        /// The file.
        file: Handle,
        /// Position of the first byte.
        offset: u64,
        /// The bytes.
        data: Data,
        /// When the client wrote.
        time: Time,
    },
    /// Changes attributes.
    SetAttributes {
        /// The node.
        node: Handle,
        /// The changes.
        set: SetAttributes,
    },
    /// Allocates, frees or zeroes a range of a file (`fallocate`).
    Allocate {
        /// The file.
        file: Handle,
        /// Kind of allocation.
        mode: AllocateMode,
        /// Position of the first byte.
        offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Copies bytes from one file to another at the server.
    CopyRange {
        /// File that is read.
        from: Handle,
        /// Position of the first byte that is read.
        from_offset: u64,
        /// File that is written.
        to: Handle,
        /// Position of the first byte that is written.
        to_offset: u64,
        /// Number of bytes.
        length: u64,
    },
    /// Sets an extended attribute.
    SetXattr {
        /// The node.
        node: Handle,
        /// Name of the attribute, with its namespace.
        name: Bytes,
        /// Its value.
        value: Bytes,
    },
    /// Removes an extended attribute.
    RemoveXattr {
        /// The node.
        node: Handle,
        /// Name of the attribute, with its namespace.
        name: Bytes,
    },
    /// The client has closed a node without a name: it may be removed.
    Close {
        /// The node.
        node: Handle,
    },
}

/// Kind of a new node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NewNode {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// Its target: 1 to 4,095 bytes without NUL.
        target: Bytes,
    },
    /// A pipe, socket or device.
    Special {
        /// Kind.
        kind: NodeKind,
        /// Device number of a device; else 0.
        device: u64,
    },
}

/// Written bytes: a part of the payload of the message with the batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Data {
    /// Position of the first byte in the payload.
    pub start: u32,
    /// Number of bytes.
    pub length: u32,
}

/// Attributes that change; `None` stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAttributes {
    /// Permission bits: 0 to 0o7777.
    pub mode: Option<u16>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Bytes of a file: it is cut off, or extended by a hole.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<Time>,
    /// Last change of contents.
    pub mtime: Option<Time>,
}

/// Effect of `fallocate` on a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AllocateMode {
    /// Reserves space; extends the file if the range exceeds it.
    Extend,
    /// Reserves space; the file keeps its length.
    KeepSize,
    /// Frees the space: the range reads as zeros.
    PunchHole,
    /// The range reads as zeros; extends the file if the range exceeds it.
    Zero,
    /// The range reads as zeros; the file keeps its length.
    ZeroKeepSize,
}
