//! How does the simulator compare with what is published, and how are many of its runs made?
//!
//! [`apus_sim`] runs one experiment; here are sweeps over many of them, in several threads or on several
//! machines, and what they say to people and to machines.

pub mod report;
pub mod sweep;
