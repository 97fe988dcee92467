//! The protocol of the FUSE device as bytes: requests are parsed, replies and notifications
//! encoded. No IO.
//!
//! A request is the bytes of one read of the device, and a [`Message`] is written in one call. The
//! layouts follow `linux/fuse.h`, protocol 7.31 to 7.45; where a structure depends on the
//! negotiated flags, the parser takes them as an argument.
//!
//! # Invariants
//!
//! - **FUSE-1** Parsing never panics and never reads past the slice, whatever the bytes are,
//!   although the kernel is trusted.
//! - **FUSE-2** A parsed name of an entry is a single component of a path: not empty, without slash
//!   or NUL, neither `.` nor `..`.
//! - **FUSE-3** The kernel accepts everything that the codec encodes: names are checked, lengths
//!   are right. A name from an untrusted server is an [`EncodeError`], and fails no other entry of
//!   its directory.

mod attributes;
mod bytes;
mod directory;
mod error;
mod flags;
mod forgets;
mod layout;
mod message;
mod name;
mod notification;
mod opcode;
mod operation;
mod reply;
mod request;

pub use attributes::{Attributes, Entry, FileLock, ROOT, Statfs, Timestamp};
pub use directory::Directory;
pub use error::{EncodeError, ParseError};
pub use flags::{InitFlags, OpenFlags, RenameFlags};
pub use forgets::Forgets;
pub use message::Message;
pub use name::{MAX_NAME, is_component};
pub use notification::Notification;
pub use opcode::Opcode;
pub use operation::{
    CopyFileRange, Create, Init, Ioctl, Lock, Operation, Poll, Read, Readdir, Release, SetTime,
    Setattr, Tmpfile, Write,
};
pub use reply::{InitReply, Opened, Reply};
pub use request::{Request, RequestHeader};
