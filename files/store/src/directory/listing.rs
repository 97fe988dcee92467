//! Names in a directory, in their order.

use std::os::fd::AsFd;

use apus_fs_core::wire::{Errno, Ino, Name};
use rustix::fs::{Dir, Mode, OFlags};

use super::identity::errno;

/// The sorted names of the directory that was listed last: clients list a large one in parts.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) directory: Ino,
    /// The directory's version when it was read.
    pub(crate) change: u64,
    pub(crate) names: Vec<Name>,
}

/// Returns the names in a directory, unsorted, without `.` and `..`.
pub(crate) fn names(directory: impl AsFd) -> Result<Vec<Vec<u8>>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(directory, ".", flags, Mode::empty()).map_err(errno)?;
    let mut names = Vec::new();
    for entry in Dir::new(opened).map_err(errno)? {
        let entry = entry.map_err(errno)?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}
