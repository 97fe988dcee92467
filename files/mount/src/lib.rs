//! The file service as processes: joins the state machines of `apus-fs-core` to the network, to the
//! kernel and to clocks.
//!
//! ```text
//!   application ── kernel ══ apus-fuse ── mount::Mounted ── apus_fs_core::client
//!                                              ║ apus
//!                              DIR ── store ── serve::Service ── apus_fs_core::server
//! ```
//!
//! - [`serve::Service`] serves a store: one thread that receives requests, hands them to the
//!   server's core, commits once for each burst, and responds.
//! - [`mount::Mounted`] mounts a served directory: one thread that serves the kernel and the
//!   network, and other threads that only notify the kernel, because a notification may wait for
//!   replies of the first thread.
//!
//! Both threads sleep on all their event sources in one system call
//! ([`apus::Endpoint::recv_arrival`]).
//!
//! # Invariants
//!
//! - **FSRUN-1** A peer that is neither on this host nor in a trusted network gets no response
//!   except [`NotTrusted`](apus_fs_core::wire::Failure::NotTrusted), and its requests do not reach
//!   the core.
//! - **FSRUN-8** A request has the rights of the user that the kernel names as its sender, on this
//!   host; the rights of another host never include root's, unless the export trusts them.
//! - **FSRUN-2** Every request of the kernel that was read is answered, or the connection to the
//!   kernel ends.
//! - **FSRUN-3** References to nodes that the kernel did not take are released, whether it no
//!   longer waited for the reply or the reply had no room.
//! - **FSRUN-4** A mount ends with all changes at the server, unless a person ends it at once.
//! - **FSRUN-5** An operation of the kernel that waits for a lease does not delay the return of
//!   another lease.
//! - **FSRUN-6** A request reaches only the export that its session belongs to, or that its Hello
//!   names.
//! - **FSRUN-7** Short work does not wait for queued bulk work: a mount sends replies with few
//!   bytes before replies with many, a server serves all other requests before reads of many bytes,
//!   and both check for new work after each bulk item.

#![deny(unsafe_code)]

mod bulk;
mod clock;
mod mailbox;
mod metrics;
pub mod mount;
mod poll;
pub mod serve;
pub mod server_status;
mod stations;
pub mod status;
mod time_slice;
pub mod trust;

pub use clock::boot_time;
pub use poll::endpoint_poll_mode;

/// Reports a line to the administrator: a warning, or a notable change.
pub type Report = Box<dyn Fn(&str) + Send>;
