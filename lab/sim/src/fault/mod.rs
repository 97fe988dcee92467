//! Faults of a fabric, in addition to full buffers.
//!
//! ```text
//!   Settings        probabilities of loss, corruption, duplication, delay       configured
//!   Outages         partitions, pauses and crashes of hosts, with times         configured
//!   FaultInjector   decides about each packet at its last link                  while the fabric runs
//! ```
//!
//! Faults apply to packets that have passed the last link and not yet their host's software. This
//! is a single place, and a fabric without faults pays one branch for it. Faults have their own
//! stream of random numbers, so they change neither the packets nor the paths before the fault.

mod burst;
mod counters;
mod injector;
mod outages;
mod settings;

pub use counters::Counters;
pub(crate) use injector::{FaultInjector, HostState, PacketFate};
pub use outages::{Crash, Outages, Partition, Pause};
pub use settings::{Corruption, Settings};
