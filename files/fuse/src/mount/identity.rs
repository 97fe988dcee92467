//! The identity of a mount at a path.

use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxFlags};
use rustix::io::Errno;

/// Identity of the mount at a path; distinguishes it from earlier and later mounts there.
///
/// The device number of a FUSE mount is unique while it is mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MountIdentity {
    major: u32,
    minor: u32,
}

impl MountIdentity {
    /// Queries the kernel without a request to the file system (MOUNT-2): attributes need not be up
    /// to date, and the path's last component is a mount, which is crossed without a lookup.
    pub(crate) fn of(path: &Path) -> Result<Self, Errno> {
        let flags = AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let found = rustix::fs::statx(CWD, path, flags, StatxFlags::empty())?;
        Ok(Self { major: found.stx_dev_major, minor: found.stx_dev_minor })
    }
}
