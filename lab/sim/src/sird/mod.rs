//! SIRD, a transport whose receivers schedule their own link and learn from senders which of theirs are busy.
//!
//! SIRD (Prasopoulos et al., NSDI 2025) as published: short messages are sent at once, longer ones
//! ask for credit first. A receiver gives credit packet by packet, at the pace of its link, in SRPT
//! order. All credit that has not come back as data stays below a limit, and that of each sender
//! below one of its own, which falls while the sender says that credit waits with it, or while
//! switches mark its packets. `lab/adr/0015-sird-as-published.md` lists what is modelled, what is
//! not, and the source of each parameter.
//!
//! ```text
//!   host
//!     ├── outgoing ── half of the packets by SRPT, half in turn between receivers
//!     └── incoming ── credit, paced ── sender_limit, two for each sender
//! ```
//!
//! # Invariants
//!
//! - **SIRD-1** Credit is given only if all bytes that the receiver expects, unscheduled ones included, are then within the
//!   global limit.
//! - **SIRD-2** A packet with scheduled data is sent only with credit for exactly this packet.
//!
//! No packet is lost: what is sent into a full buffer is never sent again, so the buffers of the fabric have to be unlimited.

mod config;
mod host;
mod incoming;
mod outgoing;
mod segment;
mod sender_limit;

pub use config::Config;
pub use host::SirdHost;
pub use segment::{Kind, Segment};
