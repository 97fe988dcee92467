//! Measurements on this host, each shorter than a second.
//!
//! They depend on the moment, so they accompany findings and never decide their severity
//! (DOCTOR-1).

pub(super) mod burst;
pub(super) mod pace;
pub(super) mod segments;
pub(super) mod stall;
pub(super) mod wakeup;
