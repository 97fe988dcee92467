//! DCTCP, the transport of today's datacenters.
//!
//! DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257) as in Linux: one permanent TCP connection
//! between each pair of hosts. Switches mark packets while their queue is longer than a threshold,
//! receivers report to senders exactly which packets were marked, and senders reduce their windows
//! in proportion to the marked fraction. `lab/adr/0004-dctcp-as-linux-has-it.md` lists the modelled
//! and the omitted parts.
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
mod connection_info;
mod fair_queue;
mod fraction;
mod host;
mod rack;
mod reassembly;
mod rtt;
mod scoreboard;
mod segment;
mod sender;
mod usage;
mod window;

pub use config::{Config, FULL_FRAME, MSS, marking_bound, marking_threshold};
pub use connection_info::{ConnectionInfo, Counters};
pub use host::DctcpHost;
pub use segment::{Ack, End, Position, Sack, Segment};
