//! Mounting and unmounting: by mount(2) with privileges, else by `fusermount3`.
//!
//! [`Mount::new`] yields the device, which a [`Session`](crate::Session) serves, and the mount,
//! which ends with [`Mount::unmount`] or when it is dropped.
//!
//! - **MOUNT-1** A dropped mount is detached, but only if it is still the original mount: a file
//!   system that was mounted over the same directory later is left alone.
//! - **MOUNT-2** Neither mounting nor dropping waits for the file system's replies, so the serving
//!   thread may do both.

mod direct;
mod error;
mod helper;
mod identity;
mod mounted;
mod options;

pub use error::{MountError, UnmountError};
pub use mounted::{Mount, Unmount, unmount};
pub use options::{MountMethod, MountOptions};
