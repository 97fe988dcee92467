//! The small-writes lab: a short message written in two pieces.
//!
//! In 2008 a network file system took 40.4 s for a thousand exchanges of 64 bytes, and 1.43 s after
//! a change that wrote each command as a whole. It had written 4 bytes of length and 60 of command
//! in two calls, and the cause took weeks to find (docs/reference/papers.md, *Small TCP writes*).
//! Two rules that are good alone wait for each other there. Nagle's algorithm (RFC 896) sends no
//! second small segment until the first is acknowledged; the delayed ACK (RFC 1122, 4.2.3.2) holds
//! the acknowledgement back to send it with a reply, and half a command has no reply. A timer ends
//! the wait.
//!
//! Here each [`Variant`] makes the same exchange, one at a time: a command of 64 bytes and its
//! echo. Exchanges are timed on the loopback interface, then repeated on a separate loopback
//! interface where their packets are captured; these packets explain the result.
//!
//! | file | content |
//! |---|---|
//! | `options`, `variant` | the options; how a command is written and read |
//! | `message`, `tally`, `tcp`, `product` | the exchange, its time, over a connection, over apus |
//! | `side` | the processes |
//! | `watch`, `packet`, `counters` | captured packets, and counters of the kernel |
//! | `cut`, `anatomy`, `capture` | the packets of an exchange and the waits of its sides, for each variant |
//! | `measurements`, `published` | the measurements of a variant; published figures |
//! | `declaration`, `sentences`, `plots` | the report |
//! | `sweep` | all variants, all runs |
//!
//! # Invariants
//!
//! - **SPLIT-1** Variants differ only in what their names state; there are no artificial delays.
//! - **SPLIT-2** No packet is captured while times are taken.
//! - **SPLIT-3** Statements about packets rest on packets captured in this run. If none can be
//!   captured, the result says so.

mod anatomy;
mod capture;
mod counters;
mod cut;
mod declaration;
mod measurements;
mod message;
mod options;
mod packet;
mod plots;
mod product;
mod published;
#[cfg(test)]
mod sample_packets;
mod sentences;
mod side;
mod sweep;
mod tally;
mod tcp;
mod variant;
mod watch;

pub use options::SmallWritesOptions;
pub use sweep::run;
pub use variant::{Carrier, Reading, Variant, Writing};

pub(crate) use side::{JOB, agent};
