//! Error numbers.

use serde::{Deserialize, Serialize};

/// An error number of Linux. Source: `errno-base.h` and `errno.h` of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Errno(pub u16);

impl Errno {
    /// Not permitted.
    pub const PERM: Self = Self(1);
    /// No such file or directory.
    pub const NOENT: Self = Self(2);
    /// Interrupted.
    pub const INTR: Self = Self(4);
    /// Input or output failed.
    pub const IO: Self = Self(5);
    /// No such position.
    pub const NXIO: Self = Self(6);
    /// Would have to wait.
    pub const AGAIN: Self = Self(11);
    /// Permission denied.
    pub const ACCES: Self = Self(13);
    /// File exists.
    pub const EXIST: Self = Self(17);
    /// Another file system.
    pub const XDEV: Self = Self(18);
    /// No such device.
    pub const NODEV: Self = Self(19);
    /// Not a directory.
    pub const NOTDIR: Self = Self(20);
    /// Is a directory.
    pub const ISDIR: Self = Self(21);
    /// Invalid argument.
    pub const INVAL: Self = Self(22);
    /// Too many of something.
    pub const NFILE: Self = Self(23);
    /// File too large.
    pub const FBIG: Self = Self(27);
    /// No space left.
    pub const NOSPC: Self = Self(28);
    /// Positions make no sense here.
    pub const SPIPE: Self = Self(29);
    /// Read-only file system.
    pub const ROFS: Self = Self(30);
    /// Too many links.
    pub const MLINK: Self = Self(31);
    /// Result does not fit.
    pub const RANGE: Self = Self(34);
    /// Locks would wait for each other.
    pub const DEADLK: Self = Self(35);
    /// Name too long.
    pub const NAMETOOLONG: Self = Self(36);
    /// Too many locks.
    pub const NOLCK: Self = Self(37);
    /// Directory not empty.
    pub const NOTEMPTY: Self = Self(39);
    /// Too many symbolic links.
    pub const LOOP: Self = Self(40);
    /// No such extended attribute.
    pub const NODATA: Self = Self(61);
    /// Not supported.
    pub const OPNOTSUPP: Self = Self(95);
    /// The server did not respond.
    pub const TIMEDOUT: Self = Self(110);
    /// The node is gone.
    pub const STALE: Self = Self(116);
    /// The quota is used up.
    pub const DQUOT: Self = Self(122);
}

impl std::fmt::Display for Errno {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::io::Error::from_raw_os_error(self.0.into()).fmt(f)
    }
}
