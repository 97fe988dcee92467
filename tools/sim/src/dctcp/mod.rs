//! What do datacenters use today?
//!
//! DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257) as Linux has it: TCP connections, one between each pair of
//! hosts, established and kept; switches mark packets while their queue is longer than a threshold, receivers
//! tell senders exactly which were marked, and senders reduce their windows in proportion to the fraction.
//! What is modelled, what is not and why: `docs/adr/0015-dctcp-baseline.md`.
//!
//! ```text
//!   host ── fair_queue, one flow for each
//!     └── connection
//!           ├── sender ── window (usage), fraction, scoreboard, rack, rtt
//!           └── reassembly, acks
//! ```

mod acks;
mod config;
mod connection;
mod fair_queue;
mod fraction;
mod host;
mod info;
mod rack;
mod reassembly;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod usage;
mod window;

pub use config::{Config, FULL_FRAME, MSS, marking_bound, marking_threshold};
pub use host::DctcpHost;
pub use info::{ConnectionInfo, Counters};
pub use segment::{Ack, End, Position, Sack, Segment};
