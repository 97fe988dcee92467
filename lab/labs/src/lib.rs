//! Four classic pathologies of receiving hosts, each reproduced on purpose beside its cures and apus; an attack on
//! apus, and a soak of it.
//!
//! - [`livelock`]: the output of a router while its input grows beyond what it can carry;
//! - [`handoff`]: a thread woken twice for one message;
//! - [`contention`]: one lock for all pairs of local peers;
//! - [`small_writes`]: a short message written in two pieces;
//! - [`hostile`]: a server and its honest clients beside an attacker;
//! - [`soak`]: what apus promises, while processes are killed and paused and links fail.

#![deny(unsafe_code)]

pub mod agent;
pub mod contention;
pub mod handoff;
pub mod hostile;
pub mod livelock;
pub mod small_writes;
pub mod soak;
