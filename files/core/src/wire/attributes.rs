//! Attributes of a node.

use serde::{Deserialize, Serialize};

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum NodeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device. The server never opens it.
    CharacterDevice,
    /// A block device. The server never opens it.
    BlockDevice,
}

/// An instant of the server's or client's wall clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time {
    /// Seconds since 1970; negative before.
    pub seconds: i64,
    /// Nanoseconds: 0 to 999,999,999.
    pub nanoseconds: u32,
}

/// Numbers that increase with each change of a node: equal numbers mean that a cached copy is
/// valid.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Version {
    /// Grows with each change of attributes, names in a directory, or contents.
    pub change: u64,
    /// Grows with each change of a file's contents.
    pub data: u64,
}

/// Attributes of a node, as `stat` returns them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Kind.
    pub kind: NodeKind,
    /// Permission bits with set-user-ID, set-group-ID and sticky bit: 0 to 0o7777.
    pub mode: u16,
    /// Number of names.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device, encoded as Linux does; else 0.
    pub device: u64,
    /// Bytes of a file; bytes of a link's target.
    pub size: u64,
    /// Allocated space, in units of 512 bytes.
    pub blocks: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of contents.
    pub mtime: Time,
    /// Last change of contents or attributes.
    pub ctime: Time,
    /// Creation, if the server's file system records it.
    pub btime: Option<Time>,
    /// Whether it has extended attributes.
    pub has_xattrs: bool,
    /// Version of the node with these attributes.
    pub version: Version,
}
