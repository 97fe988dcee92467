//! Client and server of the file service as state machines: cache, leases, ordered log, recall,
//! sessions.
//!
//! Neither half does IO: time, messages, operations and the [`Store`] are passed in; messages to
//! send, replies and invalidations are returned as effects. So both run over `apus` and FUSE, and
//! in a simulator with crashes, partitions and clocks that differ.
//!
//! Times are a [`Duration`](std::time::Duration) since an arbitrary origin, on a clock that runs
//! while the machine is suspended.

#![forbid(unsafe_code)]

pub mod client;
mod held_locks;
pub mod rights;
pub mod server;
pub mod store;
mod tally;
pub mod wire;

pub use store::Store;
