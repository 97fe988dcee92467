//! Processors of hosts: receiving and sending a packet takes time.
//!
//! A [`ProcessorHost`] puts a processor between a host and the fabric. The processor does one thing
//! at a time, in passes like the engine's loop (`transport/apus/src/engine/poll/poll_loop.rs`):
//!
//! ```text
//!   network ─▶ socket buffer ─▶ receive up to 32 packets ─▶ host: packets, calls, timers
//!                 │ full: dropped                                          │
//!   network ◀─ send buffer ◀───── send up to the quota ◀───────────────────┘ ─▶ outcomes
//! ```
//!
//! The host sees a packet when the processor has received it, and a timer when the processor gets
//! to it. Hosts without a processor are unaffected: their fabric contains no part of this module.
//!
//! # Invariants
//!
//! - **PROCESSOR-1** A processor is in one step at a time, and every step takes the time that its
//!   packets cost; a stalled processor is in no step.
//! - **PROCESSOR-2** The packets in the socket buffer never have more bytes than the buffer.

mod costs;
mod host;
mod settings;
mod socket;
mod stalls;

pub use costs::{Cost, Costs};
pub use host::ProcessorHost;
pub use settings::Processor;
pub use stalls::Stall;
