//! Error numbers of Linux that the server itself returns.

use apus_fs_wire::Errno;

/// No lock with this owner waits any more: it was withdrawn.
pub(super) const EINTR: Errno = Errno(4);
/// The store failed.
pub(super) const EIO: Errno = Errno(5);
/// Too many requests of this session wait.
pub(super) const EAGAIN: Errno = Errno(11);
/// The walk goes through something that is no directory.
pub(super) const ENOTDIR: Errno = Errno(20);
/// A number that is not the client's, or a list that makes no sense.
pub(super) const EINVAL: Errno = Errno(22);
/// The session has its maximum number of leases.
pub(super) const ENFILE: Errno = Errno(23);
/// Changes are refused.
pub(super) const EROFS: Errno = Errno(30);
/// Waiting for this lock would never end.
pub(super) const EDEADLK: Errno = Errno(35);
/// The session has its maximum number of locks.
pub(super) const ENOLCK: Errno = Errno(37);
/// The handle names no node, or the lease that a change needs is missing.
pub(super) const ESTALE: Errno = Errno(116);
