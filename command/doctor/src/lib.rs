//! Checks and settings for the host on which apus runs.
//!
//! [`doctor`] examines the host and the path to a peer, and explains what to change. [`tune`] compares settings by
//! measurement, and writes a configuration file with the evidence.

#![forbid(unsafe_code)]

pub mod doctor;
pub mod tune;
