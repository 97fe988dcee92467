//! The structures of `linux/fuse.h`, field by field.
//!
//! Names follow the header, without its prefix. All integers are in the machine's byte order, since
//! both ends are on one machine. Structures are read by copying, so that a buffer may have any
//! alignment. The tests compare sizes and offsets with the values that a C compiler computes from
//! the header.

pub(crate) mod input;
pub(crate) mod output;
pub(crate) mod structure;

#[cfg(test)]
mod tests {
    use super::{input, output};
    use std::mem::{offset_of, size_of};

    /// Sizes as a C compiler prints them for linux/fuse.h 7.38; newer structures by hand.
    #[test]
    fn structures_have_the_sizes_of_the_header() {
        let sizes = [
            ("fuse_in_header", size_of::<input::Header>(), 40),
            ("fuse_forget_in", size_of::<input::Forget>(), 8),
            ("fuse_forget_one", size_of::<input::ForgetOne>(), 16),
            ("fuse_batch_forget_in", size_of::<input::BatchForget>(), 8),
            ("fuse_getattr_in", size_of::<input::Getattr>(), 16),
            ("fuse_setattr_in", size_of::<input::Setattr>(), 88),
            ("fuse_mknod_in", size_of::<input::Mknod>(), 16),
            ("fuse_mkdir_in", size_of::<input::Mkdir>(), 8),
            ("fuse_rename_in", size_of::<input::Rename>(), 8),
            ("fuse_rename2_in", size_of::<input::Rename2>(), 16),
            ("fuse_link_in", size_of::<input::Link>(), 8),
            ("fuse_open_in", size_of::<input::Open>(), 8),
            ("fuse_create_in", size_of::<input::Create>(), 16),
            ("fuse_release_in", size_of::<input::Release>(), 24),
            ("fuse_flush_in", size_of::<input::Flush>(), 24),
            ("fuse_read_in", size_of::<input::Read>(), 40),
            ("fuse_write_in", size_of::<input::Write>(), 40),
            ("fuse_fsync_in", size_of::<input::Fsync>(), 16),
            ("fuse_setxattr_in", size_of::<input::Setxattr>(), 8),
            ("fuse_setxattr_in, extended", size_of::<input::SetxattrExtended>(), 16),
            ("fuse_getxattr_in", size_of::<input::Getxattr>(), 8),
            ("fuse_lk_in", size_of::<input::Lock>(), 48),
            ("fuse_access_in", size_of::<input::Access>(), 8),
            ("fuse_init_in, first part", size_of::<input::Init>(), 16),
            ("fuse_init_in, second part", size_of::<input::InitExtension>(), 48),
            ("fuse_interrupt_in", size_of::<input::Interrupt>(), 8),
            ("fuse_ioctl_in", size_of::<input::Ioctl>(), 32),
            ("fuse_poll_in", size_of::<input::Poll>(), 24),
            ("fuse_fallocate_in", size_of::<input::Fallocate>(), 32),
            ("fuse_lseek_in", size_of::<input::Lseek>(), 24),
            ("fuse_copy_file_range_in", size_of::<input::CopyFileRange>(), 56),
            ("fuse_statx_in", size_of::<input::Statx>(), 24),
            ("fuse_out_header", size_of::<output::Header>(), 16),
            ("fuse_attr", size_of::<output::Attr>(), 88),
            ("fuse_entry_out", size_of::<output::Entry>(), 128),
            ("fuse_attr_out", size_of::<output::AttrOut>(), 104),
            ("fuse_open_out", size_of::<output::Open>(), 16),
            ("fuse_write_out", size_of::<output::Write>(), 8),
            ("fuse_statfs_out", size_of::<output::Statfs>(), 80),
            ("fuse_getxattr_out", size_of::<output::Getxattr>(), 8),
            ("fuse_lk_out", size_of::<output::Lock>(), 24),
            ("fuse_init_out", size_of::<output::Init>(), 64),
            ("fuse_poll_out", size_of::<output::Poll>(), 8),
            ("fuse_lseek_out", size_of::<output::Lseek>(), 8),
            ("fuse_copy_file_range_out", size_of::<output::CopyFileRange>(), 8),
            ("fuse_statx", size_of::<output::StatxBody>(), 256),
            ("fuse_statx_out", size_of::<output::Statx>(), 288),
            ("fuse_dirent", size_of::<output::Dirent>(), 24),
            ("fuse_notify_inval_inode_out", size_of::<output::InvalInode>(), 24),
            ("fuse_notify_inval_entry_out", size_of::<output::InvalEntry>(), 16),
            ("fuse_notify_delete_out", size_of::<output::Delete>(), 24),
            ("fuse_notify_store_out", size_of::<output::Store>(), 24),
            ("fuse_notify_prune_out", size_of::<output::Prune>(), 16),
        ];
        for (name, size, expected) in sizes {
            assert_eq!(size, expected, "{name}");
        }
    }

    #[test]
    fn fields_are_where_the_header_has_them() {
        let offsets = [
            ("in_header.nodeid", offset_of!(input::Header, nodeid), 16),
            ("in_header.pid", offset_of!(input::Header, pid), 32),
            ("in_header.total_extlen", offset_of!(input::Header, total_extlen), 36),
            ("setattr_in.lock_owner", offset_of!(input::Setattr, lock_owner), 24),
            ("setattr_in.atimensec", offset_of!(input::Setattr, atimensec), 56),
            ("setattr_in.mode", offset_of!(input::Setattr, mode), 68),
            ("setattr_in.gid", offset_of!(input::Setattr, gid), 80),
            ("write_in.lock_owner", offset_of!(input::Write, lock_owner), 24),
            ("read_in.flags", offset_of!(input::Read, flags), 32),
            ("lk_in.lk_flags", offset_of!(input::Lock, lk_flags), 40),
            ("attr.atimensec", offset_of!(output::Attr, atimensec), 48),
            ("attr.mode", offset_of!(output::Attr, mode), 60),
            ("attr.blksize", offset_of!(output::Attr, blksize), 80),
            ("entry_out.attr", offset_of!(output::Entry, attr), 40),
            ("attr_out.attr", offset_of!(output::AttrOut, attr), 16),
            ("init_out.max_background", offset_of!(output::Init, max_background), 16),
            ("init_out.max_pages", offset_of!(output::Init, max_pages), 28),
            ("init_out.flags2", offset_of!(output::Init, flags2), 32),
            ("init_out.request_timeout", offset_of!(output::Init, request_timeout), 40),
            ("kstatfs.bsize", offset_of!(output::Statfs, bsize), 40),
            ("statx.ino", offset_of!(output::StatxBody, ino), 32),
            ("statx.atime", offset_of!(output::StatxBody, atime), 64),
            ("statx.rdev_major", offset_of!(output::StatxBody, rdev_major), 128),
        ];
        for (name, offset, expected) in offsets {
            assert_eq!(offset, expected, "{name}");
        }
    }
}
