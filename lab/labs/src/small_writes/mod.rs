//! The small-writes lab: a short message written in two pieces.
//!
//! In 2008 a network file system took 40.4 s for a thousand exchanges of 64 bytes, and 1.43 s after it was changed to write
//! each command as a whole: 4 bytes of length and 60 of command had left in two calls, and it took weeks to find
//! (docs/reference/papers.md, *Small TCP writes*). Two rules, each of which is good alone, wait for each other there.
//! Nagle's algorithm (RFC 896) sends no second small segment while the first one is not acknowledged; the delayed ACK
//! (RFC 1122, 4.2.3.2) holds the acknowledgement back to send it with an answer, which half a command does not get. A
//! timer ends the wait.
//!
//! Here each [`Variant`] has the same exchange, one at a time: a command of 64 bytes and its echo. It is timed on the loopback
//! interface, and then repeated on a loopback interface of its own, where its packets are captured: the explanation of a
//! result rests on these packets.
//!
//! | file | content |
//! |---|---|
//! | `options`, `variant` | the options; how a command is written and read |
//! | `message`, `tally`, `tcp`, `product` | the exchange, its time, over a connection, over apus |
//! | `side` | the processes |
//! | `watch`, `packet`, `counters` | captured packets, and counters of the kernel |
//! | `cut`, `anatomy`, `capture` | the packets of an exchange, which side waited for which, for each variant |
//! | `sweep`, `measured` | all variants, all runs |
//! | `findings`, `words`, `plots`, `published` | rows, tables, sentences, charts and drawings of packets, beside figures of others |
//!
//! # Invariants
//!
//! - **SPLIT-1** Variants differ in what their names say and in nothing else; there are no artificial delays.
//! - **SPLIT-2** No packet is captured while times are taken.
//! - **SPLIT-3** Statements about packets rest on packets captured in this run. Where none can be captured, the result says so.

mod anatomy;
mod capture;
mod counters;
mod cut;
mod findings;
mod measurements;
mod message;
mod options;
mod packet;
mod plots;
mod product;
mod published;
#[cfg(test)]
mod sample_packets;
mod side;
mod sweep;
mod tally;
mod tcp;
mod variant;
mod watch;
mod words;

pub use apus_report::findings::Findings;
pub use options::Options;
pub use sweep::run;
pub use variant::{Carrier, Reading, Variant, Writing};

pub(crate) use side::{JOB, agent};
