//! How is a client put under load?
//!
//! - [`open_loop`]: requests begin when they are due, whatever became of earlier ones; a client that
//!   is too slow cannot make its load smaller. This is what is compared.
//! - [`closed_loop`]: a fixed number of requests is always under way. Tells what a client can do.
//! - [`unloaded()`]: one request at a time. Tells the best possible time of each size.
//!
//! # Invariants
//!
//! - **G1** A latency counts from the instant at which the request was due, not from when it could be
//!   sent (no coordinated omission).
//! - **G2** Which sizes are due when depends on the seed alone, so that all contenders carry the same
//!   messages.

mod closed;
mod flight;
pub mod open;
pub mod unloaded;

pub use closed::closed_loop;
pub use flight::Request;
pub use open::{OpenLoop, open_loop};
pub use unloaded::unloaded;

use std::thread;
use std::time::Duration;

/// How long a client looks for replies at most before it returns, if it is not known how long it should.
const LOOK: Duration = Duration::from_secs(1);

/// What the generator does when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Looks again. Never late.
    Spin,
    /// Lets others have the core, if the server has no other one.
    Yield,
    /// Waits inside the transport, in the way that its threads wait.
    Wait,
}

impl Idle {
    /// How long the transport may wait if nothing is to be done for a `time`.
    fn wait(self, time: impl FnOnce() -> Duration) -> Duration {
        if self == Self::Wait { time() } else { Duration::ZERO }
    }

    fn pause(self) {
        if self == Self::Yield {
            thread::yield_now();
        }
    }
}
