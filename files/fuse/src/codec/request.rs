//! Parsing of requests.

use super::attributes::{FileLock, Timestamp};
use super::bytes::Bytes;
use super::error::ParseError;
use super::flags::{InitFlags, RenameFlags};
use super::forgets::Forgets;
use super::layout::input;
use super::opcode::Opcode;
use super::operation::{
    CopyFileRange, Create, Init, Ioctl, Lock, Operation, Poll, Read, Readdir, Release, SetTime,
    Setattr, Tmpfile, Write,
};

/// Bit of [`RequestHeader::unique`] in requests that the kernel resends.
const RESENT: u64 = 1 << 63;

/// Header of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// Number of the operation; [`Opcode::from_number`] names it.
    pub opcode: u32,
    /// Number of the request, which its reply carries. No two unanswered requests have the same
    /// one.
    pub unique: u64,
    /// The node that the request concerns; the directory, if it has a name. 0 where no node is
    /// concerned.
    pub node: u64,
    /// User of the calling thread, for access checks.
    pub uid: u32,
    /// Group of the calling thread, for access checks.
    pub gid: u32,
    /// Calling thread; 0 if it is outside of the file system's PID namespace, or the kernel itself.
    pub pid: u32,
}

impl RequestHeader {
    /// Parses the header alone. A request whose fields cannot be parsed can still be answered with
    /// an error.
    ///
    /// # Errors
    ///
    /// [`ParseError::Header`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        Self::split(bytes).map(|(header, _)| header)
    }

    /// Returns whether the request was sent before; the file system may have executed it already.
    #[must_use]
    pub fn is_resent(&self) -> bool {
        self.unique & RESENT != 0
    }

    /// Returns the number that the request had before it was resent.
    #[must_use]
    pub fn first_unique(&self) -> u64 {
        self.unique & !RESENT
    }

    fn split(bytes: &[u8]) -> Result<(Self, input::Header), ParseError> {
        let wire: input::Header =
            Bytes::new(bytes).take().map_err(|_| ParseError::Header { length: bytes.len() })?;
        let header = Self {
            opcode: wire.opcode,
            unique: wire.unique,
            node: wire.nodeid,
            uid: wire.uid,
            gid: wire.gid,
            pid: wire.pid,
        };
        Ok((header, wire))
    }
}

/// A request of the kernel. Names and data are borrowed from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Header of every request.
    pub header: RequestHeader,
    /// The requested operation.
    pub operation: Operation<'a>,
}

impl<'a> Request<'a> {
    /// Parses the bytes of one read of the device.
    ///
    /// `negotiated` contains the flags that both sides agreed on; before INIT, it is empty.
    ///
    /// # Errors
    ///
    /// [`ParseError`], if the bytes are not a request. An unknown operation is not an error, but
    /// yields [`Operation::Unknown`].
    pub fn parse(bytes: &'a [u8], negotiated: InitFlags) -> Result<Self, ParseError> {
        let (header, wire) = RequestHeader::split(bytes)?;
        if wire.len as usize != bytes.len() {
            return Err(ParseError::Length { stated: wire.len, length: bytes.len() });
        }
        let extensions = usize::from(wire.total_extlen) * 8;
        let end = bytes.len().checked_sub(extensions).ok_or(ParseError::Truncated)?;
        let body = bytes.get(size_of::<input::Header>()..end).ok_or(ParseError::Truncated)?;
        let operation = match Opcode::from_number(wire.opcode) {
            Some(opcode) => parse_operation(opcode, Bytes::new(body), negotiated)?,
            None => Operation::Unknown { opcode: wire.opcode, body },
        };
        Ok(Self { header, operation })
    }
}

/// Parses the fields of an operation.
fn parse_operation(
    opcode: Opcode,
    mut body: Bytes<'_>,
    negotiated: InitFlags,
) -> Result<Operation<'_>, ParseError> {
    Ok(match opcode {
        Opcode::Init => Operation::Init(init(&mut body)?),
        Opcode::Lookup => Operation::Lookup { name: body.take_name()? },
        Opcode::Forget => Operation::Forget { count: body.take::<input::Forget>()?.nlookup },
        Opcode::BatchForget => {
            let count = body.take::<input::BatchForget>()?.count;
            Operation::BatchForget(Forgets::new(body.rest(), count))
        }
        Opcode::Getattr => {
            let wire: input::Getattr = body.take()?;
            Operation::Getattr { handle: (wire.getattr_flags & 1 != 0).then_some(wire.fh) }
        }
        Opcode::Setattr => Operation::Setattr(setattr(&body.take()?)),
        Opcode::Readlink => Operation::Readlink,
        Opcode::Symlink => {
            Operation::Symlink { name: body.take_name()?, target: body.take_text()? }
        }
        Opcode::Mknod => {
            let input::Mknod { mode, rdev, umask, .. } = body.take()?;
            Operation::Mknod { name: body.take_name()?, mode, device: rdev, umask }
        }
        Opcode::Mkdir => {
            let input::Mkdir { mode, umask } = body.take()?;
            Operation::Mkdir { name: body.take_name()?, mode, umask }
        }
        Opcode::Unlink => Operation::Unlink { name: body.take_name()? },
        Opcode::Rmdir => Operation::Rmdir { name: body.take_name()? },
        Opcode::Rename => {
            let new_parent = body.take::<input::Rename>()?.newdir;
            rename(&mut body, new_parent, RenameFlags::empty())?
        }
        Opcode::Rename2 => {
            let input::Rename2 { newdir, flags, .. } = body.take()?;
            rename(&mut body, newdir, RenameFlags::from_bits_retain(flags))?
        }
        Opcode::Link => {
            let existing = body.take::<input::Link>()?.oldnodeid;
            Operation::Link { existing, new_name: body.take_name()? }
        }
        Opcode::Open => {
            let input::Open { flags, open_flags } = body.take()?;
            Operation::Open { flags, kill_suid_gid: open_flags & 1 != 0 }
        }
        Opcode::Read => Operation::Read(read(&body.take()?)),
        Opcode::Write => Operation::Write(write(&mut body)?),
        Opcode::Statfs => Operation::Statfs,
        Opcode::Release => Operation::Release(release(&body.take()?)),
        Opcode::Fsync => {
            let input::Fsync { fh, fsync_flags, .. } = body.take()?;
            Operation::Fsync { handle: fh, data_only: fsync_flags & 1 != 0 }
        }
        Opcode::Setxattr => setxattr(&mut body, negotiated)?,
        Opcode::Getxattr => {
            let size = body.take::<input::Getxattr>()?.size;
            Operation::Getxattr { name: body.take_text()?, size }
        }
        Opcode::Listxattr => Operation::Listxattr { size: body.take::<input::Getxattr>()?.size },
        Opcode::Removexattr => Operation::Removexattr { name: body.take_text()? },
        Opcode::Flush => {
            let input::Flush { fh, lock_owner, .. } = body.take()?;
            Operation::Flush { handle: fh, lock_owner }
        }
        Opcode::Opendir => Operation::Opendir { flags: body.take::<input::Open>()?.flags },
        Opcode::Readdir => Operation::Readdir(readdir(&body.take()?, false)),
        Opcode::Readdirplus => Operation::Readdir(readdir(&body.take()?, true)),
        Opcode::Releasedir => Operation::Releasedir(release(&body.take()?)),
        Opcode::Fsyncdir => {
            let input::Fsync { fh, fsync_flags, .. } = body.take()?;
            Operation::Fsyncdir { handle: fh, data_only: fsync_flags & 1 != 0 }
        }
        Opcode::Getlk => Operation::Getlk(lock(&body.take()?)),
        Opcode::Setlk => Operation::Setlk { lock: lock(&body.take()?), wait: false },
        Opcode::Setlkw => Operation::Setlk { lock: lock(&body.take()?), wait: true },
        Opcode::Access => Operation::Access { mask: body.take::<input::Access>()?.mask },
        Opcode::Create => {
            let input::Create { flags, mode, umask, open_flags } = body.take()?;
            let (name, kill_suid_gid) = (body.take_name()?, open_flags & 1 != 0);
            Operation::Create(Create { name, mode, umask, flags, kill_suid_gid })
        }
        Opcode::Interrupt => {
            Operation::Interrupt { unique: body.take::<input::Interrupt>()?.unique }
        }
        Opcode::Destroy => Operation::Destroy,
        Opcode::Ioctl => Operation::Ioctl(ioctl(&mut body)?),
        Opcode::Poll => Operation::Poll(poll(&body.take()?)),
        Opcode::Fallocate => {
            let input::Fallocate { fh, offset, length, mode, .. } = body.take()?;
            Operation::Fallocate { handle: fh, offset, length, mode }
        }
        Opcode::Lseek => {
            let input::Lseek { fh, offset, whence, .. } = body.take()?;
            Operation::Lseek { handle: fh, offset, whence }
        }
        Opcode::CopyFileRange | Opcode::CopyFileRange64 => {
            Operation::CopyFileRange(copy_file_range(&body.take()?))
        }
        Opcode::Syncfs => Operation::Syncfs,
        Opcode::Tmpfile => {
            // The kernel also sends a name, "/", which has no meaning (fs/fuse/dir.c fuse_tmpfile).
            let input::Create { flags, mode, umask, .. } = body.take()?;
            Operation::Tmpfile(Tmpfile { mode, umask, flags })
        }
        Opcode::Statx => {
            let input::Statx { getattr_flags, fh, sx_flags, sx_mask, .. } = body.take()?;
            let handle = (getattr_flags & 1 != 0).then_some(fh);
            Operation::Statx { handle, flags: sx_flags, mask: sx_mask }
        }
    })
}

fn init(body: &mut Bytes<'_>) -> Result<Init, ParseError> {
    let wire: input::Init = body.take()?;
    let low = InitFlags::from_bits_retain(u64::from(wire.flags));
    let high = if low.contains(InitFlags::INIT_EXT) {
        u64::from(body.take::<input::InitExtension>()?.flags2) << 32
    } else {
        0
    };
    Ok(Init {
        major: wire.major,
        minor: wire.minor,
        max_readahead: wire.max_readahead,
        flags: low | InitFlags::from_bits_retain(high),
    })
}

fn setattr(wire: &input::Setattr) -> Setattr {
    let has = |bit: u32| wire.valid & (1 << bit) != 0;
    let time = |bit, now, seconds, nanoseconds| {
        has(bit).then(|| match has(now) {
            true => SetTime::Now,
            false => SetTime::To(Timestamp::from_wire(seconds, nanoseconds)),
        })
    };
    Setattr {
        mode: has(0).then_some(wire.mode),
        uid: has(1).then_some(wire.uid),
        gid: has(2).then_some(wire.gid),
        size: has(3).then_some(wire.size),
        atime: time(4, 7, wire.atime, wire.atimensec),
        mtime: time(5, 8, wire.mtime, wire.mtimensec),
        handle: has(6).then_some(wire.fh),
        lock_owner: has(9).then_some(wire.lock_owner),
        ctime: has(10).then(|| Timestamp::from_wire(wire.ctime, wire.ctimensec)),
        kill_suid_gid: has(11),
    }
}

fn rename<'a>(
    body: &mut Bytes<'a>,
    new_parent: u64,
    flags: RenameFlags,
) -> Result<Operation<'a>, ParseError> {
    let (name, new_name) = (body.take_name()?, body.take_name()?);
    Ok(Operation::Rename { name, new_parent, new_name, flags })
}

fn read(wire: &input::Read) -> Read {
    Read {
        handle: wire.fh,
        offset: wire.offset,
        size: wire.size,
        flags: wire.flags,
        lock_owner: (wire.read_flags & 2 != 0).then_some(wire.lock_owner),
    }
}

fn write<'a>(body: &mut Bytes<'a>) -> Result<Write<'a>, ParseError> {
    let wire: input::Write = body.take()?;
    Ok(Write {
        handle: wire.fh,
        offset: wire.offset,
        data: body.take_slice(wire.size as usize)?,
        flags: wire.flags,
        from_cache: wire.write_flags & 1 != 0,
        lock_owner: (wire.write_flags & 2 != 0).then_some(wire.lock_owner),
        kill_suid_gid: wire.write_flags & 4 != 0,
    })
}

fn release(wire: &input::Release) -> Release {
    Release {
        handle: wire.fh,
        flags: wire.flags,
        lock_owner: wire.lock_owner,
        flock_unlock: wire.release_flags & 2 != 0,
    }
}

fn setxattr<'a>(body: &mut Bytes<'a>, negotiated: InitFlags) -> Result<Operation<'a>, ParseError> {
    let (size, flags, kill_sgid) = if negotiated.contains(InitFlags::SETXATTR_EXT) {
        let wire: input::SetxattrExtended = body.take()?;
        (wire.size, wire.flags, wire.setxattr_flags & 1 != 0)
    } else {
        let wire: input::Setxattr = body.take()?;
        (wire.size, wire.flags, false)
    };
    let (name, value) = (body.take_text()?, body.take_slice(size as usize)?);
    Ok(Operation::Setxattr { name, value, flags, kill_sgid })
}

fn readdir(wire: &input::Read, plus: bool) -> Readdir {
    Readdir { handle: wire.fh, offset: wire.offset, size: wire.size, plus }
}

fn lock(wire: &input::Lock) -> Lock {
    Lock {
        handle: wire.fh,
        owner: wire.owner,
        lock: FileLock::from_wire(wire),
        flock: wire.lk_flags & 1 != 0,
    }
}

fn ioctl<'a>(body: &mut Bytes<'a>) -> Result<Ioctl<'a>, ParseError> {
    let wire: input::Ioctl = body.take()?;
    Ok(Ioctl {
        handle: wire.fh,
        flags: wire.flags,
        command: wire.cmd,
        argument: wire.arg,
        data: body.take_slice(wire.in_size as usize)?,
        out_size: wire.out_size,
    })
}

fn poll(wire: &input::Poll) -> Poll {
    Poll {
        handle: wire.fh,
        kernel_handle: wire.kh,
        schedule_notify: wire.flags & 1 != 0,
        events: wire.events,
    }
}

fn copy_file_range(wire: &input::CopyFileRange) -> CopyFileRange {
    CopyFileRange {
        handle_in: wire.fh_in,
        offset_in: wire.off_in,
        node_out: wire.nodeid_out,
        handle_out: wire.fh_out,
        offset_out: wire.off_out,
        length: wire.len,
        flags: wire.flags,
    }
}
