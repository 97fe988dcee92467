//! Means of waiting: spinning for a limited time, and the kernel objects that a sleeper waits on.
//!
//! Threads spin ([`spin`]) and tasks poll cooperatively ([`cooperative`]) for the time of the
//! [`PollMode`]. A sleeping leader is woken by its [`signal`], by the driver's descriptor or by a
//! timer; tasks register these with their runtime ([`descriptor`]), and the background poller
//! sleeps on an [`alarm`]. The folder is independent of the protocol and of the core lock.

mod alarm;
#[cfg(feature = "tokio")]
mod cooperative;
#[cfg(feature = "tokio")]
mod descriptor;
mod poll_mode;
mod signal;
mod spin;

pub(crate) use alarm::Alarm;
#[cfg(feature = "tokio")]
pub(crate) use cooperative::CooperativeSpin;
#[cfg(feature = "tokio")]
pub(crate) use descriptor::{ARRIVAL, readable};
pub use poll_mode::{ParsePollModeError, PollMode};
pub(crate) use signal::{Descriptors, Signal, WakeConditions, WakeReasons};
pub(crate) use spin::Spin;
