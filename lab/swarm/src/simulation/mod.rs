//! Simulation: runs a scenario through its phases.
//!
//! ```text
//!   faults and load ──▶ healed ──▶ every call has ended ──▶ probes ──▶ no state is left ──▶ peers dropped
//!         safety all the time             liveness            liveness       memory             memory
//! ```

mod agenda;
mod applications;
mod datagrams;
mod divided_host;
mod envelope;
mod host;
mod hostile_host;
mod neighbours;
mod open_call;
mod phases;
mod probes;
mod run;
mod sealed_end;
mod sealing;
mod stack;
mod state;
#[cfg(test)]
mod tests;
mod waits;
mod world;

pub(crate) use run::{End, run};
