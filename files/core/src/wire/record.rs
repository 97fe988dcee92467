//! Records: the changes of which a batch consists.
//!
//! A record can be applied twice, because a server that crashed applies those again whose effects it may have lost. So a record
//! names what it changes by number, and says what was there before, wherever a name alone would be ambiguous.

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
        /// Directory that gets the name; `None` creates a file without a name (`O_TMPFILE`).
        parent: Option<(Handle, Name)>,
        /// Number of the new node.
        ino: Ino,
        /// What it is.
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
        /// Directory that gets the name.
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
    /// Moves a name, and removes what had the new name; or exchanges two names.
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
        /// What changes.
        set: SetAttributes,
    },
    /// Allocates, frees or zeroes a range of a file (`fallocate`).
    Allocate {
        /// The file.
        file: Handle,
        /// What happens to the range.
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
    /// The client has closed a node without a name: it may go.
    Close {
        /// The node.
        node: Handle,
    },
}

/// What a new node is.
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
        /// What it is.
        kind: NodeKind,
        /// Device number of a device; else 0.
        device: u64,
    },
}

/// Bytes that are written: a part of the payload of the message that has the batch.
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

/// What `fallocate` does to a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AllocateMode {
    /// Reserves space; the file becomes longer if the range goes beyond its end.
    Extend,
    /// Reserves space; the file keeps its length.
    KeepSize,
    /// Frees the space: the range reads as zeros.
    PunchHole,
    /// The range reads as zeros; the file becomes longer if the range goes beyond its end.
    Zero,
    /// The range reads as zeros; the file keeps its length.
    ZeroKeepSize,
}
