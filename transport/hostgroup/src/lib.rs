//! Values that the transports of a host publish for each other: they share its link, the switch
//! port in front of it, and the queue of its interface (docs/networks.md).
//!
//! The shards of an [apus](https://docs.rs/apus) endpoint have a [`Board`], and so have the hosts
//! of its simulator. With the feature `host`, transports of several processes have a page of shared
//! memory. The protocol defines the published values (`apus_proto::Published`) and their use
//! (`apus_proto::Neighbours`); this crate transports them.

#![forbid(unsafe_code)]

mod board;
#[cfg(all(feature = "host", any(test, not(apus_hostgroup_loom))))]
mod host;
mod sync;

pub use board::Board;
#[cfg(all(feature = "host", not(apus_hostgroup_loom)))]
pub use host::{HostGroup, HostPlace};
