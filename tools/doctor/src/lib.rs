//! What on a host stands in the way of apus, and which settings suit it.
//!
//! [`doctor`] checks the host and the path to a peer and says what to change and why; [`tune`] tries settings
//! and writes a file with the evidence.

#![forbid(unsafe_code)]

pub mod doctor;
pub mod tune;
