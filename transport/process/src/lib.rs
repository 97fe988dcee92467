//! Values that belong to one process: what a child of fork(2) must neither use nor release.
//!
//! A fork copies memory and shares everything else: sockets, epoll sets, shared memory. Its child
//! has one thread, so that a lock which another thread held stays locked, and state that another
//! thread was changing is half changed. An endpoint that worked in both processes would seal
//! different packets with one number and give each process replies of the other one. So each value
//! that has such parts notes the process that it belongs to.
//!
//! | type | in a child |
//! |---|---|
//! | [`Owner`] | reports that the value is another process's |
//! | [`Owned`] | the value is not dropped |
//! | [`Descriptor`] | closed before fork(2) returns, and not again on drop |
//! | [`PerProcess`] | a static starts anew |
//!
//! # Invariants
//!
//! - **PROCESS-1** An [`Owner`] of a parent is foreign in each of its descendants, even if one of
//!   them has the parent's process id.
//! - **PROCESS-2** A descriptor is closed in a child before any other code of the child runs, so
//!   no number is closed that has another meaning by then. A child that was made without
//!   fork(3), for example by the system call clone, keeps the descriptors open.
//! - **PROCESS-3** [`Owner::is_current`] makes no system call where the system has MADV_WIPEONFORK
//!   (Linux 4.14).

mod descriptor;
mod fork;
mod open_files;
mod owned;
mod owner;
mod per_process;

pub use descriptor::{ClosedInChildren, Descriptor};
pub use owned::Owned;
pub use owner::{ForeignProcess, Owner};
pub use per_process::PerProcess;
