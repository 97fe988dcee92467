//! Error numbers of Linux that the store returns. Source: `include/uapi/asm-generic/errno.h`.

use apus_fs_wire::Errno;

pub(super) const EPERM: Errno = Errno(1);
pub(super) const ENOENT: Errno = Errno(2);
pub(super) const ENXIO: Errno = Errno(6);
pub(super) const EEXIST: Errno = Errno(17);
pub(super) const ENODEV: Errno = Errno(19);
pub(super) const ENOTDIR: Errno = Errno(20);
pub(super) const EISDIR: Errno = Errno(21);
pub(super) const EINVAL: Errno = Errno(22);
pub(super) const EFBIG: Errno = Errno(27);
pub(super) const ENOSPC: Errno = Errno(28);
pub(super) const ESPIPE: Errno = Errno(29);
pub(super) const EMLINK: Errno = Errno(31);
pub(super) const ENOTEMPTY: Errno = Errno(39);
pub(super) const ENODATA: Errno = Errno(61);
pub(super) const EOPNOTSUPP: Errno = Errno(95);
pub(super) const ESTALE: Errno = Errno(116);
