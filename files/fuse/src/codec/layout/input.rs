//! Structures that the kernel writes: the beginnings of requests.

use super::structure::structures;

structures! {
    Header {
        len: u32,
        opcode: u32,
        unique: u64,
        nodeid: u64,
        uid: u32,
        gid: u32,
        pid: u32,
        total_extlen: u16,
        padding: u16,
    }
    Forget { nlookup: u64 }
    ForgetOne { nodeid: u64, nlookup: u64 }
    BatchForget { count: u32, dummy: u32 }
    Getattr { getattr_flags: u32, dummy: u32, fh: u64 }
    Setattr {
        valid: u32,
        padding: u32,
        fh: u64,
        size: u64,
        lock_owner: u64,
        atime: u64,
        mtime: u64,
        ctime: u64,
        atimensec: u32,
        mtimensec: u32,
        ctimensec: u32,
        mode: u32,
        unused4: u32,
        uid: u32,
        gid: u32,
        unused5: u32,
    }
    Mknod { mode: u32, rdev: u32, umask: u32, padding: u32 }
    Mkdir { mode: u32, umask: u32 }
    Rename { newdir: u64 }
    Rename2 { newdir: u64, flags: u32, padding: u32 }
    Link { oldnodeid: u64 }
    Open { flags: u32, open_flags: u32 }
    Create { flags: u32, mode: u32, umask: u32, open_flags: u32 }
    Release { fh: u64, flags: u32, release_flags: u32, lock_owner: u64 }
    Flush { fh: u64, unused: u32, padding: u32, lock_owner: u64 }
    Read {
        fh: u64,
        offset: u64,
        size: u32,
        read_flags: u32,
        lock_owner: u64,
        flags: u32,
        padding: u32,
    }
    Write {
        fh: u64,
        offset: u64,
        size: u32,
        write_flags: u32,
        lock_owner: u64,
        flags: u32,
        padding: u32,
    }
    Fsync { fh: u64, fsync_flags: u32, padding: u32 }
    /// Without FUSE_SETXATTR_EXT.
    Setxattr { size: u32, flags: u32 }
    /// With FUSE_SETXATTR_EXT.
    SetxattrExtended { size: u32, flags: u32, setxattr_flags: u32, padding: u32 }
    Getxattr { size: u32, padding: u32 }
    Lock { fh: u64, owner: u64, start: u64, end: u64, kind: u32, pid: u32, lk_flags: u32, padding: u32 }
    Access { mask: u32, padding: u32 }
    Init { major: u32, minor: u32, max_readahead: u32, flags: u32 }
    /// Follows [`Init`] since 7.36.
    InitExtension { flags2: u32, unused: [u32; 11] }
    Interrupt { unique: u64 }
    Ioctl { fh: u64, flags: u32, cmd: u32, arg: u64, in_size: u32, out_size: u32 }
    Poll { fh: u64, kh: u64, flags: u32, events: u32 }
    Fallocate { fh: u64, offset: u64, length: u64, mode: u32, padding: u32 }
    Lseek { fh: u64, offset: u64, whence: u32, padding: u32 }
    CopyFileRange {
        fh_in: u64,
        off_in: u64,
        nodeid_out: u64,
        fh_out: u64,
        off_out: u64,
        len: u64,
        flags: u64,
    }
    Statx { getattr_flags: u32, reserved: u32, fh: u64, sx_flags: u32, sx_mask: u32 }
}
