//! Requests of the kernel as operations of the core.

use apus_fs_core::client::{AttributeChange, NewTime, Operation, Place};
use apus_fs_core::wire::{
    AllocateMode, Ino, LockKind, LockOwner, LockRange, Name, NameError, NewNode, SeekTarget,
};
use apus_fuse::Errno;
use apus_fuse::codec::{
    self, FileLock, Lock, Operation as Request, Readdir, RenameFlags, SetTime, Setattr,
};
use bytes::Bytes;

use super::attributes::{kind, time};
use super::replies::Shape;

const O_ACCMODE: u32 = 0o3;
const O_TRUNC: u32 = 0o1000;
const O_APPEND: u32 = 0o2000;

const XATTR_CREATE: u32 = 1;
const XATTR_REPLACE: u32 = 2;

/// Bytes of the shortest entry of a directory, and of its attributes (`struct fuse_dirent`,
/// `struct fuse_entry_out`).
const SHORTEST_ENTRY: usize = 32;
const ENTRY_ATTRIBUTES: usize = 128;

/// End of a file as the kernel has it in a lock (`OFFSET_MAX`).
const LOCK_END: u64 = i64::MAX as u64;

/// Handling of a request.
#[derive(Debug)]
pub(super) enum Task<'a> {
    /// The operation is submitted to the core; its reply is sent in this shape.
    Submit(Operation, Shape),
    /// References are dropped, without a reply.
    Forget(codec::Forgets<'a>),
    /// An operation is to end.
    Interrupt(u64),
    /// Success.
    Done,
}

/// Decides how to handle a request that concerns `node`.
///
/// # Errors
///
/// The reply, for requests that the core does not handle.
pub(super) fn task<'a>(node: u64, request: &Request<'a>) -> Result<Task<'a>, Errno> {
    let node = Ino(node);
    let place = |name: &[u8]| Ok::<_, Errno>(Place { directory: node, name: self::name(name)? });
    let create = |place, new, mode: u32, open| Operation::Create {
        place,
        node: new,
        mode: permissions(mode),
        open,
    };
    let operation = match *request {
        Request::Lookup { name } => Operation::LookUp(place(name)?),
        Request::Forget { count } => Operation::Forget { node, count },
        Request::BatchForget(list) => return Ok(Task::Forget(list)),
        Request::Interrupt { unique } => return Ok(Task::Interrupt(unique)),
        Request::Getattr { .. } => Operation::GetAttributes { node },
        Request::Statx { .. } => {
            return Ok(Task::Submit(Operation::GetAttributes { node }, Shape::Statx));
        }
        Request::Setattr(set) => Operation::SetAttributes { node, change: change(&set) },
        Request::Readlink => Operation::ReadLink { node },
        Request::Symlink { name, target } => {
            let new = NewNode::Symlink { target: Bytes::copy_from_slice(target) };
            create(place(name)?, new, 0o777, false)
        }
        Request::Mknod { name, mode, device, .. } => {
            create(place(name)?, new_node(mode, device)?, mode, false)
        }
        Request::Mkdir { name, mode, .. } => create(place(name)?, NewNode::Directory, mode, false),
        Request::Create(new) => {
            let operation = create(place(new.name)?, NewNode::File, new.mode, true);
            return Ok(Task::Submit(operation, opening(new.flags)));
        }
        Request::Tmpfile(new) => {
            let mode = permissions(new.mode);
            let operation = Operation::CreateTemporary { directory: node, mode };
            return Ok(Task::Submit(operation, opening(new.flags)));
        }
        Request::Unlink { name } => Operation::Unlink(place(name)?),
        Request::Rmdir { name } => Operation::RemoveDirectory(place(name)?),
        Request::Rename { name, new_parent, new_name, flags } => {
            let known = RenameFlags::NOREPLACE | RenameFlags::EXCHANGE;
            if !known.contains(flags) || flags == known {
                return Err(Errno::INVAL);
            }
            let to = Place { directory: Ino(new_parent), name: self::name(new_name)? };
            Operation::Rename {
                from: place(name)?,
                to,
                exchange: flags.contains(RenameFlags::EXCHANGE),
                no_replace: flags.contains(RenameFlags::NOREPLACE),
            }
        }
        Request::Link { existing, new_name } => {
            Operation::Link { node: Ino(existing), place: place(new_name)? }
        }
        Request::Open { flags, kill_suid_gid } => {
            let operation = Operation::Open {
                node,
                truncate: flags & O_TRUNC != 0,
                writable: flags & O_ACCMODE != 0,
                kill_privileges: kill_suid_gid,
            };
            return Ok(Task::Submit(operation, opening(flags)));
        }
        Request::Read(read) => Operation::Read { node, offset: read.offset, size: read.size },
        Request::Write(write) => Operation::Write {
            node,
            offset: write.offset,
            data: Bytes::copy_from_slice(write.data),
            append: write.flags & O_APPEND != 0 && !write.from_cache,
            from_cache: write.from_cache,
            kill_privileges: write.kill_suid_gid,
        },
        Request::Flush { lock_owner, .. } => Operation::Flush { node, owner: lock_owner },
        Request::Release(release) => Operation::Release {
            node,
            writable: release.flags & O_ACCMODE != 0,
            flock_owner: release.flock_unlock.then_some(release.lock_owner),
        },
        Request::Fsync { .. } | Request::Fsyncdir { .. } => Operation::Sync { node },
        Request::Syncfs => Operation::Sync { node: Ino::ROOT },
        Request::Opendir { .. } => {
            return Ok(Task::Submit(Operation::OpenDirectory { node }, Shape::OpenDirectory));
        }
        Request::Readdir(wanted) => return Ok(read_directory(node, &wanted)),
        Request::Releasedir(release) => Operation::ReleaseDirectory { handle: release.handle },
        Request::Setxattr { name, value, flags, .. } => Operation::SetXattr {
            node,
            name: Bytes::copy_from_slice(name),
            value: Bytes::copy_from_slice(value),
            create: flags & XATTR_CREATE != 0,
            replace: flags & XATTR_REPLACE != 0,
        },
        Request::Getxattr { name, size } => {
            let operation = Operation::GetXattr { node, name: Bytes::copy_from_slice(name) };
            return Ok(Task::Submit(operation, Shape::Sized { room: size }));
        }
        Request::Listxattr { size } => {
            return Ok(Task::Submit(Operation::ListXattr { node }, Shape::Sized { room: size }));
        }
        Request::Removexattr { name } => {
            Operation::RemoveXattr { node, name: Bytes::copy_from_slice(name) }
        }
        Request::Statfs => Operation::GetSpace,
        Request::Getlk(lock) => return test_lock(node, &lock),
        Request::Setlk { lock, wait } => Operation::Lock {
            node,
            owner: owner(&lock),
            kind: lock_kind(&lock.lock)?,
            range: range(&lock),
            wait,
        },
        Request::Fallocate { offset, length, mode, .. } => {
            Operation::Allocate { node, mode: allocate_mode(mode)?, offset, length }
        }
        Request::Lseek { offset, whence, .. } => {
            let target = match whence {
                3 => SeekTarget::Data,
                4 => SeekTarget::Hole,
                _ => return Err(Errno::INVAL),
            };
            Operation::Seek { node, offset, target }
        }
        Request::CopyFileRange(copy) if copy.flags == 0 => Operation::CopyRange {
            from: node,
            from_offset: copy.offset_in,
            to: Ino(copy.node_out),
            to_offset: copy.offset_out,
            length: copy.length,
        },
        Request::CopyFileRange(_) => return Err(Errno::INVAL),
        // The kernel checks permissions itself.
        Request::Access { .. } | Request::Destroy => return Ok(Task::Done),
        Request::Ioctl(_) => return Err(Errno::NOTTY),
        _ => return Err(Errno::NOSYS),
    };
    Ok(Task::Submit(operation, Shape::Plain))
}

fn opening(flags: u32) -> Shape {
    Shape::Open { writable: flags & O_ACCMODE != 0 }
}

fn name(bytes: &[u8]) -> Result<Name, Errno> {
    Name::new(Bytes::copy_from_slice(bytes)).map_err(|error| match error {
        NameError::TooLong => Errno::NAMETOOLONG,
        NameError::Empty | NameError::Separator | NameError::Dots => Errno::INVAL,
    })
}

fn permissions(mode: u32) -> u16 {
    (mode & 0o7777) as u16
}

fn new_node(mode: u32, device: u32) -> Result<NewNode, Errno> {
    use apus_fs_core::wire::NodeKind;
    match kind(mode).ok_or(Errno::INVAL)? {
        NodeKind::File => Ok(NewNode::File),
        NodeKind::Directory | NodeKind::Symlink => Err(Errno::INVAL),
        kind => Ok(NewNode::Special { kind, device: device.into() }),
    }
}

fn change(set: &Setattr) -> AttributeChange {
    let new_time = |set: SetTime| match set {
        SetTime::Now => NewTime::Now,
        SetTime::To(at) => NewTime::At(time(at)),
    };
    AttributeChange {
        mode: set.mode.map(permissions),
        uid: set.uid,
        gid: set.gid,
        size: set.size,
        atime: set.atime.map(new_time),
        mtime: set.mtime.map(new_time),
        kill_privileges: set.kill_suid_gid,
    }
}

fn read_directory<'a>(node: Ino, wanted: &Readdir) -> Task<'a> {
    let Readdir { handle, offset, size, plus } = *wanted;
    let entry = SHORTEST_ENTRY + if plus { ENTRY_ATTRIBUTES } else { 0 };
    let most = (size as usize / entry).max(1);
    let operation = Operation::ReadDirectory { node, handle, offset, most, with_attributes: plus };
    Task::Submit(operation, Shape::Directory { room: size, plus })
}

fn test_lock<'a>(node: Ino, lock: &Lock) -> Result<Task<'a>, Errno> {
    let (owner, kind, range) = (owner(lock), lock_kind(&lock.lock)?, range(lock));
    let operation = Operation::TestLock { node, owner, kind, range };
    Ok(Task::Submit(operation, Shape::Lock { wanted: lock.lock }))
}

fn owner(lock: &Lock) -> LockOwner {
    LockOwner { owner: lock.owner, is_flock: lock.flock }
}

fn lock_kind(lock: &FileLock) -> Result<LockKind, Errno> {
    match lock.kind {
        0 => Ok(LockKind::Read),
        1 => Ok(LockKind::Write),
        2 => Ok(LockKind::Unlock),
        _ => Err(Errno::INVAL),
    }
}

fn range(lock: &Lock) -> LockRange {
    let FileLock { start, end, .. } = lock.lock;
    LockRange { start, end: if end >= LOCK_END { u64::MAX } else { end } }
}

/// Source: `linux/falloc.h`.
fn allocate_mode(mode: u32) -> Result<AllocateMode, Errno> {
    const KEEP_SIZE: u32 = 0x01;
    const PUNCH_HOLE: u32 = 0x02 | KEEP_SIZE;
    const ZERO_RANGE: u32 = 0x10;
    const ZERO_KEEP_SIZE: u32 = ZERO_RANGE | KEEP_SIZE;
    match mode {
        0 => Ok(AllocateMode::Extend),
        KEEP_SIZE => Ok(AllocateMode::KeepSize),
        PUNCH_HOLE => Ok(AllocateMode::PunchHole),
        ZERO_RANGE => Ok(AllocateMode::Zero),
        ZERO_KEEP_SIZE => Ok(AllocateMode::ZeroKeepSize),
        _ => Err(Errno::OPNOTSUPP),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn submitted(request: &Request<'_>) -> Operation {
        match task(7, request) {
            Ok(Task::Submit(operation, _)) => operation,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_are_checked_before_the_core_sees_them() {
        let long = [b'x'; 256];
        let failed = |name| task(1, &Request::Lookup { name }).unwrap_err();
        assert_eq!(failed(&long), Errno::NAMETOOLONG);
        assert_eq!(failed(b".."), Errno::INVAL);
    }

    #[test]
    fn appending_is_for_writes_of_applications() {
        let write = |from_cache| {
            Request::Write(codec::Write {
                handle: 0,
                offset: 9,
                data: b"x",
                flags: O_APPEND | 1,
                from_cache,
                lock_owner: None,
                kill_suid_gid: false,
            })
        };
        assert!(matches!(submitted(&write(false)), Operation::Write { append: true, .. }));
        assert!(matches!(submitted(&write(true)), Operation::Write { append: false, .. }));
    }

    #[test]
    fn a_lock_to_the_end_of_the_file_has_no_end() {
        let lock = FileLock { start: 4, end: LOCK_END, kind: 1, process: 3 };
        let lock = Lock { handle: 0, owner: 5, lock, flock: false };
        let Operation::Lock { range, kind, .. } = submitted(&Request::Setlk { lock, wait: true })
        else {
            panic!("a lock");
        };
        assert_eq!((range, kind), (LockRange { start: 4, end: u64::MAX }, LockKind::Write));
    }

    #[test]
    fn flags_that_are_not_known_are_refused() {
        let rename =
            |flags| task(1, &Request::Rename { name: b"a", new_parent: 1, new_name: b"b", flags });
        assert!(rename(RenameFlags::EXCHANGE).is_ok());
        assert_eq!(rename(RenameFlags::WHITEOUT).unwrap_err(), Errno::INVAL);
        assert_eq!(
            rename(RenameFlags::EXCHANGE | RenameFlags::NOREPLACE).unwrap_err(),
            Errno::INVAL
        );
        assert_eq!(allocate_mode(0x40), Err(Errno::OPNOTSUPP));
        assert_eq!(new_node(0o040_755, 0), Err(Errno::INVAL));
    }
}
