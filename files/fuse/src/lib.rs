//! FUSE in three layers: the kernel protocol as bytes, mounting, and a session that blocks only on
//! request.
//!
//! - [`codec`] parses requests and encodes replies and notifications, without IO.
//! - [`Mount`] mounts and unmounts: as root, in a user namespace, or by `fusermount3`.
//! - [`Session`] reads requests and sends replies. Its owner's loop polls it together with another
//!   source in the same thread, or sleeps on both; it answers interrupts, and sends notifications
//!   from another thread.
//!
//! No threads, no callbacks and no runtime: the owner decides where requests are served and when
//! they are answered.
//!
//! ```no_run
//! use apus_fuse::{Errno, Mount, MountOptions, ReadOutcome, RequestBuffer, Session, SessionSettings};
//! use apus_fuse::codec::{Attributes, Operation, Reply};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = SessionSettings::default();
//! let (mount, device) = Mount::new("/mnt/empty".as_ref(), &MountOptions::default())?;
//! let session = Session::new(device, settings)?;
//! let mut buffer = RequestBuffer::new(&settings);
//! loop {
//!     match session.try_read(&mut buffer)? {
//!         ReadOutcome::Request(request) => {
//!             let unique = request.header.unique;
//!             match request.operation {
//!                 Operation::Forget { .. } | Operation::BatchForget(_) => {}
//!                 Operation::Interrupt { unique } => { let _ = session.fail(unique, Errno::INTR); }
//!                 Operation::Getattr { .. } => {
//!                     let root = Attributes { inode: 1, mode: 0o40755, links: 2, ..Attributes::default() };
//!                     session.reply(unique, &Reply::Attributes(&root, Duration::MAX))?;
//!                 }
//!                 _ => session.fail(unique, Errno::NOSYS)?,
//!             }
//!         }
//!         ReadOutcome::Handled => {}
//!         ReadOutcome::Idle => { session.wait(None)?; }
//!     }
//! }
//! # }
//! ```
//!
//! `examples/memory` is a whole file system.
//!
//! For the kernel's expectations of a file system, see the documents of libfuse, `linux/fuse.h`,
//! and fs/fuse of the kernel. Comments cite the latter as file and function.

#![forbid(unsafe_code)]

pub mod codec;
mod mount;
mod session;

pub use mount::{Mount, MountError, MountMethod, MountOptions, Unmount, UnmountError, unmount};
pub use rustix::io::Errno;
pub use session::{
    Negotiated, Notifier, NotifyError, ReadError, ReadOutcome, ReplyError, RequestBuffer, Session,
    SessionSettings,
};
