//! Runners of the poll loop: waiting threads ([`blocking`]), a dedicated thread ([`dedicated`]),
//! and a task of a tokio runtime ([`asynchronous`]).
//!
//! [`event_loop`] is the part for runners that serve other things as well and must not block.

#[cfg(feature = "tokio")]
pub(crate) mod asynchronous;
mod blocking;
pub(crate) mod dedicated;
mod event_loop;
