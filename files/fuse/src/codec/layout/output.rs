//! Structures that the kernel reads: replies and notifications.

use super::structure::structures;

structures! {
    Header { len: u32, error: i32, unique: u64 }
    Attr {
        ino: u64,
        size: u64,
        blocks: u64,
        atime: u64,
        mtime: u64,
        ctime: u64,
        atimensec: u32,
        mtimensec: u32,
        ctimensec: u32,
        mode: u32,
        nlink: u32,
        uid: u32,
        gid: u32,
        rdev: u32,
        blksize: u32,
        flags: u32,
    }
    Entry {
        nodeid: u64,
        generation: u64,
        entry_valid: u64,
        attr_valid: u64,
        entry_valid_nsec: u32,
        attr_valid_nsec: u32,
        attr: Attr,
    }
    AttrOut { attr_valid: u64, attr_valid_nsec: u32, dummy: u32, attr: Attr }
    Open { fh: u64, open_flags: u32, padding: u32 }
    Write { size: u32, padding: u32 }
    Statfs {
        blocks: u64,
        bfree: u64,
        bavail: u64,
        files: u64,
        ffree: u64,
        bsize: u32,
        namelen: u32,
        frsize: u32,
        padding: u32,
        spare: [u32; 6],
    }
    Getxattr { size: u32, padding: u32 }
    Lock { start: u64, end: u64, kind: u32, pid: u32 }
    Init {
        major: u32,
        minor: u32,
        max_readahead: u32,
        flags: u32,
        max_background: u16,
        congestion_threshold: u16,
        max_write: u32,
        time_gran: u32,
        max_pages: u16,
        map_alignment: u16,
        flags2: u32,
        max_stack_depth: u32,
        request_timeout: u16,
        unused: [u16; 11],
    }
    Poll { revents: u32, padding: u32 }
    Lseek { offset: u64 }
    CopyFileRange { bytes_copied: u64 }
    StatxTime { seconds: i64, nanoseconds: u32, reserved: i32 }
    StatxBody {
        mask: u32,
        blksize: u32,
        attributes: u64,
        nlink: u32,
        uid: u32,
        gid: u32,
        mode: u16,
        spare0: u16,
        ino: u64,
        size: u64,
        blocks: u64,
        attributes_mask: u64,
        atime: StatxTime,
        btime: StatxTime,
        ctime: StatxTime,
        mtime: StatxTime,
        rdev_major: u32,
        rdev_minor: u32,
        dev_major: u32,
        dev_minor: u32,
        spare2: [u64; 14],
    }
    Statx { attr_valid: u64, attr_valid_nsec: u32, flags: u32, spare: [u64; 2], stat: StatxBody }
    /// The name follows, padded to 8 bytes.
    Dirent { ino: u64, off: u64, namelen: u32, kind: u32 }
    InvalInode { ino: u64, off: i64, len: i64 }
    /// The name follows, with its NUL.
    InvalEntry { parent: u64, namelen: u32, flags: u32 }
    /// The name follows, with its NUL.
    Delete { parent: u64, child: u64, namelen: u32, padding: u32 }
    /// The data follows.
    Store { nodeid: u64, offset: u64, size: u32, padding: u32 }
    /// Node ids follow.
    Prune { count: u32, padding: u32, spare: u64 }
}
