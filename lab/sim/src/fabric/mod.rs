//! Simulated fabric: carries packets from host to host over links and switches.
//!
//! ```text
//!   Host::transmit ─▶ host's link ─▶ enqueue at TOR ─▶ … ─▶ enqueue at TOR ─▶ arrive ─▶ Host::receive
//!        ▲                              │  ▲                                   │
//!        └── link free                  └──┴── port free: strict priority      └─▶ outcomes, link, timer
//! ```
//!
//! Everything that happens is an event; `Fabric::handle_event` lists them. An uncontended hop costs
//! one event (the packet's arrival at the next queue), a contended hop two (also the end of the
//! transmission before it).
//!
//! [`Regions`] is a fabric in parts that several threads simulate at the same time. Each part is a
//! `Fabric` whose packets may leave for another one.
//!
//! # Invariants
//!
//! - FABRIC-SIM-1: An index in an event or a queue refers to a packet, and no index is in two
//!   events or queues.
//! - FABRIC-SIM-2: A port with a non-empty queue has exactly one event for the end of its current
//!   transmission.
//! - FABRIC-SIM-3: Equal settings, hosts and messages give equal events: all random numbers derive
//!   from the seed, and events of the same nanosecond are handled in the order of scheduling.

mod barrier;
mod counts;
mod division;
mod event;
mod event_queue;
mod fault_events;
mod mail;
mod measurement;
mod model;
mod packets;
mod port;
mod queue;
mod regions;
mod route;
mod settings;

pub use crate::network::{Counters, HostCounters, QueueLength};
pub use model::Fabric;
pub use regions::Regions;
pub use settings::{Buffers, Settings, Spreading};
