//! How is a client put under load?
//!
//! - [`open_loop`]: requests begin when they are due, whatever became of earlier ones; a client that
//!   is too slow cannot make its load smaller. This is what is compared.
//! - [`closed_loop`]: a fixed number of requests is always under way. Tells what a client can do.
//! - [`unloaded`]: one request at a time. Tells the best possible time of each size.
//!
//! # Invariants
//!
//! - **G1** A latency counts from the instant at which the request was due, not from when it could be
//!   sent (no coordinated omission).
//! - **G2** Which sizes are due when depends on the seed alone, so that all contenders carry the same
//!   messages.

mod closed;
mod flight;
mod open;
mod unloaded;

pub(super) use closed::closed_loop;
pub(super) use flight::Request;
pub(super) use open::{OpenLoop, open_loop};
pub(super) use unloaded::unloaded;

use std::thread;

/// What the generator does when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Idle {
    /// Looks again. Never late.
    Spin,
    /// Lets others have the core, if the server has no other one.
    Yield,
}

impl Idle {
    fn pause(self) {
        if self == Self::Yield {
            thread::yield_now();
        }
    }
}
