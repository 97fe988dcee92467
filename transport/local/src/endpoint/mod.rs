//! All pairs of one endpoint: lookup, the order of reception, and waiting for any of them.

#[cfg(not(apus_local_loom))]
mod doorbell;
#[cfg(not(apus_local_loom))]
pub(crate) mod local;
#[cfg(not(apus_local_loom))]
mod newcomers;
#[cfg(not(apus_local_loom))]
pub(crate) mod poll_set;
pub(crate) mod registry;
