//! What do a scenario's hosts do, and how does it end?
//!
//! ```text
//!   faults and load ──▶ healed ──▶ every call has ended ──▶ probes ──▶ nothing is left ──▶ peers forgotten
//!        safety all the time             liveness            liveness       memory             memory
//! ```

mod host;
mod run;
mod service;
mod stack;

pub(crate) use run::{End, run};
