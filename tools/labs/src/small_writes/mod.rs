//! The small-writes lab: a short message written in two pieces.
//!
//! In 2008 a network file system took 40.4 s for a thousand exchanges of 64 bytes, and 1.43 s after it was changed to write
//! each command as a whole: 4 bytes of length and 60 of command had left in two calls, and it took weeks to find (published
//! numbers F). Two rules, each of which is good alone, wait for each other there. Nagle's algorithm (RFC 896) sends no second
//! small segment while the first one is not acknowledged; the delayed ACK (RFC 1122, 4.2.3.2) keeps the acknowledgement back
//! to send it with an answer, which half a command does not get. A timer ends it.
//!
//! Here each [`Variant`] has the same exchange, one at a time: a command of 64 bytes and its echo. It is timed on the loopback
//! interface, and then once more on one of its own, where its packets are read: what a result explains is what was
//! seen in them.
//!
//! | file | question |
//! |---|---|
//! | `options`, `variant` | what can be asked for; how a command is written and read |
//! | `message`, `tally`, `tcp`, `product` | the exchange; how it is timed; over a connection; over apus |
//! | `side` | the processes |
//! | `watch`, `packet`, `counters` | what the interface carried; what a packet is; what the kernel has counted |
//! | `cut`, `anatomy`, `capture` | which packets belong to an exchange; what happened in it; how that is found out for each variant |
//! | `sweep` | all variants, all runs |
//! | `findings`, `words`, `plots`, `published`, `page` | what that means, in tables, in words, as bars and drawings of the packets, beside what others measured, in a browser |
//!
//! # Invariants
//!
//! - **S1** Variants differ in what their names say and in nothing else; nothing is slowed down on purpose.
//! - **S2** No packet is captured while times are taken.
//! - **S3** What is said of packets was seen in this run. Where they cannot be seen it is said so.

mod anatomy;
mod capture;
mod counters;
mod cut;
mod findings;
#[cfg(test)]
mod made_up;
mod message;
mod options;
mod packet;
mod plots;
mod product;
mod published;
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
