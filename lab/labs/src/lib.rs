//! Four classic failures of receiving hosts, reproduced together with their cures and apus; an
//! attack on apus; a soak.
//!
//! - [`livelock`]: the output of a router whose input exceeds its capacity;
//! - [`handoff`]: a thread woken twice for one message;
//! - [`contention`]: one lock for all pairs of local peers;
//! - [`small_writes`]: a short message written in two pieces;
//! - [`hostile`]: a server and its honest client under attack;
//! - [`soak`]: the promises of apus while processes are killed and paused and links fail.
//!
//! Each lab has `options` (the clap type, which is the experiment), its measurement code, and a
//! `declaration` of what it reports; `apus-report` renders that. [`agent`] starts the labs'
//! processes.

#![deny(unsafe_code)]

pub mod agent;
pub mod contention;
pub mod handoff;
pub mod hostile;
pub mod livelock;
pub mod small_writes;
pub mod soak;
mod turns;
