//! SIRD, a transport whose receivers schedule their own links, while senders report that their
//! uplinks are busy.
//!
//! SIRD (Prasopoulos et al., NSDI 2025) as published: short messages are sent at once, longer
//! messages request credit first. A receiver gives credit packet by packet, at the pace of its
//! link, in SRPT order. All credit that has not returned as data stays below a limit, and the
//! credit of each sender below a separate limit, which falls while the sender reports unused credit
//! or while switches mark its packets. `lab/adr/0015-sird-as-published.md` lists the modelled and
//! the omitted parts, and the source of each parameter.
//!
//! ```text
//!   host
//!     ├── outgoing ── half of the packets by SRPT, half in turn between receivers
//!     └── incoming ── credit, paced ── sender_limit, two for each sender
//! ```
//!
//! # Invariants
//!
//! - **SIRD-1** Credit is given only if all bytes that the receiver expects, unscheduled bytes
//!   included, are then within the global limit.
//! - **SIRD-2** A packet with scheduled data is sent only with credit for exactly this packet.
//!
//! Packets must not be lost: a packet dropped by a full buffer is never sent again, so the buffers
//! of the fabric must be unlimited.

mod config;
mod host;
mod incoming;
mod outgoing;
mod segment;
mod sender_limit;

pub use config::Config;
pub use host::SirdHost;
pub use segment::{Kind, Segment};
