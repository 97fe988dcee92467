//! Checks and settings for a host that runs apus.
//!
//! [`doctor`] examines the host and the path to a peer, and explains the necessary changes.
//! [`tune`] compares settings by measurement, and writes a configuration file with the evidence.

#![forbid(unsafe_code)]

pub mod doctor;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tune;
