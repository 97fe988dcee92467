//! Pairs: messages between one client process and one server process.

mod close;
mod free_list;
pub(crate) mod inbox;
pub(crate) mod limits;
pub(crate) mod link;
pub(crate) mod outbox;
mod peek;
#[cfg(not(apus_local_loom))]
pub(crate) mod side;
pub(crate) mod sleep;
