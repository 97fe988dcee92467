//! Errors of a session.

use rustix::io::Errno;

use crate::codec::EncodeError;

/// Why no request can be read any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file system was unmounted; the session has served its purpose.
    #[error("the file system was unmounted")]
    Unmounted,
    /// The connection was aborted, by `umount -f` or through /sys/fs/fuse/connections.
    #[error("the connection was aborted by the administrator")]
    Aborted,
    /// The kernel speaks an older protocol than this crate.
    #[error("the kernel speaks FUSE {major}.{minor}, and 7.31 is needed (Linux 5.4)")]
    TooOld {
        /// The kernel's major version.
        major: u32,
        /// The kernel's minor version.
        minor: u32,
    },
    /// The system refuses for another reason.
    #[error("read from the FUSE device: {0}")]
    System(Errno),
}

/// Why a reply did not reach the caller of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// The request has been answered, or was never read. After an interrupt that is the usual end
    /// of the slower reply.
    #[error("the request has been answered before")]
    Answered,
    /// The kernel no longer waits: the connection has ended.
    #[error("the kernel no longer waits for this reply")]
    Gone,
    /// The reply cannot be encoded; the operation fails with EIO.
    #[error("the reply cannot be encoded: {0}")]
    Encode(EncodeError),
    /// The kernel refuses the reply; the operation fails with EIO.
    #[error("the kernel refuses the reply: {0}")]
    Refused(Errno),
}

/// Why a notification has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// The notification cannot be encoded.
    #[error("the notification cannot be encoded: {0}")]
    Encode(EncodeError),
    /// This kernel does not support the notification, or its arguments are wrong (EINVAL).
    #[error("the kernel does not know this notification, or refuses its arguments")]
    Unsupported,
    /// The kernel refuses for another reason: ENODEV after unmounting, ENOTEMPTY or EBUSY for a
    /// deletion.
    #[error("the kernel refuses the notification: {0}")]
    Refused(Errno),
}
