//! Histories: the requests of applications to their mounts, and the answers.
//!
//! Events have a total order, the [`Moment`]s. An operation took effect at some instant between its
//! invocation and its return; an operation that never returned may take effect at any later
//! instant, or never.

use std::fmt;

use apus_fs_core::wire::{Errno, Ino, Name};
use bytes::Bytes;

/// Position of an event in the order of all events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

/// A mount, for the whole run: a client that is restarted is another mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountId(pub u32);

impl fmt::Display for MountId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mount {}", self.0)
    }
}

/// Something that an application did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<A> {
    /// The mount of the application.
    pub mount: MountId,
    /// Time of invocation.
    pub invoked: Moment,
    /// When it returned.
    pub returned: Option<Moment>,
    /// Request and answer.
    pub action: A,
}

/// An operation on names, with its result; `None` if it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameAction {
    /// Creates a node with a name that is free.
    Create {
        /// Directory and name.
        at: (Ino, Name),
        /// Whether it is a directory.
        is_directory: bool,
        /// The new node.
        result: Option<Result<Ino, Errno>>,
    },
    /// Gives a file one more name.
    Link {
        /// The file.
        node: Ino,
        /// Directory and name.
        at: (Ino, Name),
        /// Whether it was done.
        result: Option<Result<(), Errno>>,
    },
    /// Removes the name of a file, or an empty directory.
    Remove {
        /// Directory and name.
        at: (Ino, Name),
        /// Whether a directory is removed.
        is_directory: bool,
        /// Whether it was done.
        result: Option<Result<(), Errno>>,
    },
    /// Moves a name.
    Rename {
        /// Directory and name before.
        from: (Ino, Name),
        /// Directory and name afterwards.
        to: (Ino, Name),
        /// Treatment of the node that had the name.
        mode: RenameMode,
        /// Whether it was done.
        result: Option<Result<(), Errno>>,
    },
    /// Finds a name.
    LookUp {
        /// Directory and name.
        at: (Ino, Name),
        /// The node, if there is one.
        result: Option<Result<Option<Ino>, Errno>>,
    },
    /// Lists a directory.
    List {
        /// The directory.
        directory: Ino,
        /// All names and nodes.
        result: Option<Result<Vec<(Name, Ino)>, Errno>>,
    },
}

/// Effect of a rename on an existing name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenameMode {
    /// Takes it away.
    Replace,
    /// Fails.
    NoReplace,
    /// Exchanges the names.
    Exchange,
}

/// An operation on the contents of one file, with its result; `None` if it is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileAction {
    /// Writes bytes.
    Write {
        /// Position of the first one.
        offset: u64,
        /// The bytes.
        data: Bytes,
        /// Whether it was done.
        is_done: bool,
    },
    /// Writes bytes at the end.
    Append {
        /// The bytes.
        data: Bytes,
        /// Whether it was done.
        is_done: bool,
    },
    /// Cuts the file off, or extends it.
    Truncate {
        /// Number of bytes afterwards.
        size: u64,
        /// Whether it was done.
        is_done: bool,
    },
    /// Reads bytes.
    Read {
        /// Position of the first one.
        offset: u64,
        /// Number of requested bytes.
        length: u64,
        /// The bytes.
        result: Option<Bytes>,
    },
    /// Reads the size.
    Size {
        /// Number of bytes.
        result: Option<u64>,
    },
}

/// Events that affect all operations of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening<A> {
    /// The mount's application did something.
    Action(A),
    /// `fsync` succeeded: all that the mount had done when it was invoked survives.
    Synced,
    /// The mount crashed, or its session was ended: the last changes that it had not synced may be
    /// lost.
    Lost,
}

/// The history of one object: of one file, or of all names.
pub type ObjectHistory<A> = Vec<Event<Happening<A>>>;
