//! Status and identity of a backing file, and the number of a node that was found.

use std::hash::Hasher;
use std::os::fd::{AsFd, AsRawFd};

use apus_fs_core::wire::{Attributes, Errno, Ino, NodeKind, Time, Version};
use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, StatxTimestamp};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

/// Numbers of nodes that were found have this bit; numbers that clients choose do not.
const FOUND: u64 = 1 << 63;

/// Distinguishes a backing file from all others of the export, also from later files with the same
/// inode number.
///
/// The device is not part of the identity: the export is one file system, and its device number may
/// change at a reboot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// Inode number.
    pub(crate) inode: u64,
    /// Time of birth; 0 if the file system does not record it.
    pub(crate) born: (i64, u32),
}

impl Identity {
    /// Returns the number of the node if it was found; `attempt` grows while the number belongs to
    /// another identity.
    pub(crate) fn number(&self, secret: &[u8; 16], attempt: u32) -> Ino {
        let mut hasher = SipHasher13::new_with_key(secret);
        hasher.write(b"found node");
        hasher.write_u64(self.inode);
        hasher.write_i64(self.born.0);
        hasher.write_u32(self.born.1);
        hasher.write_u32(attempt);
        Ino(FOUND | hasher.finish())
    }
}

/// Returns whether a number belongs to a node that was found.
pub(crate) const fn is_found(ino: Ino) -> bool {
    ino.0 & FOUND != 0
}

/// A backing file as it is now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Status {
    /// Identity of the file.
    pub(crate) identity: Identity,
    /// Its attributes.
    pub(crate) attributes: Attributes,
    /// Device of its file system.
    pub(crate) device: (u32, u32),
    /// Whether another file system is mounted there.
    pub(crate) is_mount: bool,
}

/// Converts an error of a system call.
pub(crate) fn errno(error: rustix::io::Errno) -> Errno {
    Errno(error.raw_os_error() as u16)
}

/// Returns the status of `name` in `directory`, without following a link.
pub(crate) fn status_at(directory: impl AsFd, name: &[u8]) -> Result<Status, Errno> {
    status(directory, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)
}

/// Returns the status of the file behind a descriptor.
pub(crate) fn status_of(file: impl AsFd) -> Result<Status, Errno> {
    status(file, b"", AtFlags::EMPTY_PATH)
}

fn status(directory: impl AsFd, name: &[u8], flags: AtFlags) -> Result<Status, Errno> {
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let statx = rustix::fs::statx(&directory, name, flags, wanted).map_err(errno)?;
    let born = (statx.stx_mask & StatxFlags::BTIME.bits() != 0).then(|| time(statx.stx_btime));
    let identity = Identity {
        inode: statx.stx_ino,
        born: born.map_or((0, 0), |time| (time.seconds, time.nanoseconds)),
    };
    let mut attributes = attributes(&statx, born);
    if matches!(attributes.kind, NodeKind::File | NodeKind::Directory) {
        attributes.has_xattrs = has_xattrs(&directory, name);
    }
    Ok(Status {
        identity,
        attributes,
        device: (statx.stx_dev_major, statx.stx_dev_minor),
        is_mount: statx.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
    })
}

/// Returns whether a file or directory has extended attributes that clients see.
fn has_xattrs(directory: impl AsFd, name: &[u8]) -> bool {
    let mut path = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd()).into_bytes();
    if !name.is_empty() {
        path.push(b'/');
        path.extend_from_slice(name);
    }
    let mut list = [0_u8; 1_024];
    match rustix::fs::listxattr(path, &mut list[..]) {
        Ok(length) => {
            list[..length].split(|byte| *byte == 0).any(|name| name.starts_with(b"user."))
        }
        Err(error) => error == rustix::io::Errno::RANGE,
    }
}

fn attributes(statx: &Statx, btime: Option<Time>) -> Attributes {
    let kind = kind_of(FileType::from_raw_mode(statx.stx_mode.into()));
    let ctime = time(statx.stx_ctime);
    let change =
        (ctime.seconds as u64).wrapping_mul(1_000_000_000).wrapping_add(ctime.nanoseconds.into());
    let device = match kind {
        NodeKind::CharacterDevice | NodeKind::BlockDevice => {
            rustix::fs::makedev(statx.stx_rdev_major, statx.stx_rdev_minor)
        }
        _ => 0,
    };
    Attributes {
        kind,
        mode: statx.stx_mode & 0o7777,
        links: statx.stx_nlink,
        uid: statx.stx_uid,
        gid: statx.stx_gid,
        device,
        size: statx.stx_size,
        blocks: statx.stx_blocks,
        atime: time(statx.stx_atime),
        mtime: time(statx.stx_mtime),
        ctime,
        btime,
        has_xattrs: false,
        version: Version { change, data: change },
    }
}

fn time(time: StatxTimestamp) -> Time {
    Time { seconds: time.tv_sec, nanoseconds: time.tv_nsec }
}

/// Returns the kind of node that a type of file is.
pub(crate) fn kind_of(file_type: FileType) -> NodeKind {
    match file_type {
        FileType::Directory => NodeKind::Directory,
        FileType::Symlink => NodeKind::Symlink,
        FileType::Fifo => NodeKind::Fifo,
        FileType::Socket => NodeKind::Socket,
        FileType::CharacterDevice => NodeKind::CharacterDevice,
        FileType::BlockDevice => NodeKind::BlockDevice,
        FileType::RegularFile | FileType::Unknown => NodeKind::File,
    }
}
