//! Owner and times of a backing file in the form of system calls.

use std::os::fd::OwnedFd;

use apus_fs_core::wire::{Errno, Time};
use rustix::fs::{AtFlags, Gid, Timespec, Timestamps, UTIME_OMIT, Uid};

use super::identity::errno;

/// Converts times for system calls; `None` leaves a time unchanged.
pub(crate) fn times(atime: Option<Time>, mtime: Option<Time>) -> Timestamps {
    let spec = |time: Option<Time>| match time {
        Some(time) => Timespec { tv_sec: time.seconds, tv_nsec: time.nanoseconds.into() },
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
    };
    Timestamps { last_access: spec(atime), last_modification: spec(mtime) }
}

/// Sets the owner of the file behind a descriptor.
pub(crate) fn set_owner(file: &OwnedFd, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
    // The highest number means "unchanged" to the system call, and is no user.
    if uid == Some(u32::MAX) || gid == Some(u32::MAX) {
        return Err(Errno::INVAL);
    }
    let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
    rustix::fs::chownat(file, "", uid, gid, AtFlags::EMPTY_PATH).map_err(errno)
}
