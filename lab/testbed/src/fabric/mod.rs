//! Fabrics: networks of several hosts on one machine, built from network namespaces.
//!
//! Each host has a namespace, and so does the switch that connects them. Namespaces belong to
//! *processes* and have no names. When these processes exit, the kernel removes the namespaces and
//! every interface in them, even if the program that created them crashed.
//!
//! ```text
//!   host h1 ── fab0 ════ p1 ┐                 ┌ p2 ════ fab0 ── host h2
//!              │            │     bridge      │          │
//!     a NIC: one queue,     ├──  (switch)  ───┤     10.77.0.2, fd61:7075:73::2
//!     the link's rate       │                 │
//!                        p1 and p2: the link's rate, eight queues in strict order of their
//!                        priority, each as long as the buffer
//! ```
//!
//! A [`Fabric`] is for experiments: dropping the value removes it. A fabric of [`persistent`] is
//! for interactive use: it exists until it is taken down. Both provide a [`Layout`]: addresses, and
//! commands that enter a host.
//!
//! | file | content |
//! |---|---|
//! | `spec`, `layout` | settings; namespaces, addresses and ways to enter them |
//! | `identity`, `holder` | processes that hold the namespaces, and their identification |
//! | `error`, `tool` | system programs and their failures |
//! | `wiring`, `shaping`, `loss` | input of these programs |
//! | `counters` | packet counts of the switch |
//! | `router_path`, `isolated_host` | two hosts with a program under test as router; one isolated host |
//! | `persistent` | fabrics that outlive the command that created them |
//!
//! # Invariants
//!
//! - **FABRIC-1**: Interfaces and rules are created only in new namespaces, so the existing network
//!   configuration cannot change.
//! - **FABRIC-2**: A namespace exists as long as its holder and the programs in it. A holder exists
//!   as long as the process that started it.
//! - **FABRIC-3**: This module kills and enters only processes that it started. Processes of other
//!   commands are identified by their number *and* their start time.
//!
//! # Differences from wires
//!
//! - A token bucket sends a packet and delays the next one. The first packet over an idle link
//!   arrives immediately, where a wire would add its serialization time; the rate is the same.
//! - One long send ("segmentation offload") is split into packets where it leaves the host: the
//!   switch handles the packets that a wire would carry. Checksums are not computed, because
//!   packets cannot be corrupted in transit.
//! - All addresses are configured up front: no ARP, no neighbour discovery, no flooding.

mod counters;
mod error;
mod holder;
mod identity;
mod isolated_host;
mod layout;
mod loss;
mod network;
pub mod persistent;
mod router_path;
mod shaping;
mod spec;
mod tool;
mod wiring;

pub use counters::PortCounters;
pub use error::FabricError;
pub use identity::Process;
pub use isolated_host::IsolatedHost;
pub use layout::{INTERFACE, Layout};
pub use network::Fabric;
pub use router_path::{PathNode, RouterPath};
pub use shaping::LEVELS;
pub use spec::{MAX_NODES, Spec, Uplink};
pub use tool::Tool;
