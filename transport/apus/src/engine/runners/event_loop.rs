//! The loop for a runner with other duties: a task of a runtime, or the background poller of the
//! process. It runs until no work is left, and returns the conditions of its sleep.

use crate::engine::paths::receive::Receiver;
use crate::engine::poll::{LoopState, Pass, UntilClosed};
use crate::engine::shard::{Locked, Shard};
use crate::engine::state::WaitKind;
use crate::engine::waiting::{PollMode, WakeReasons};
use crate::error::Closed;
use apus_proto::Instant;
use std::sync::MutexGuard;
use std::time::Duration;

/// Number of passes after which the runner continues with its other duties.
const PASSES_PER_TURN: usize = 16;

/// Time after which sending to a full socket is retried. Chosen by us: 1 MiB of send buffer lasts
/// for it at 40 Gbit/s.
const FULL_SOCKET_RETRY: Duration = Duration::from_micros(200);

/// Until when a runner sleeps, and whether it wakes when packets arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sleep {
    pub(crate) until: Instant,
    pub(crate) receiving: bool,
}

impl Shard {
    /// Runs the loop for a while. Returns whether all work is done. The caller has the poll role.
    pub(crate) fn work(&self) -> bool {
        let mut receiver = self.receiver();
        // Each pass checks the timers: the runner does not spin.
        let mut state = LoopState::new(PollMode::Block, true);
        for _ in 0..PASSES_PER_TURN {
            match self.pass(&mut receiver, &mut state) {
                Pass::Worked { mut core, .. } => {
                    let none = core.finish_pass(&UntilClosed, WaitKind::Polled);
                    debug_assert!(none.is_none(), "the runner waits for no message");
                }
                Pass::Idle => return true,
                Pass::Broken(error) => {
                    self.lock().close(Closed::Driver(error.into()));
                    return true;
                }
            }
            state.check_next();
        }
        false
    }

    /// Prepares the runner's sleep. Returns its duration, with the core locked so that the caller
    /// can announce it; `None` if there is something to do at once.
    pub(crate) fn prepare_sleep(&self) -> Option<(Sleep, Locked<'_>, MutexGuard<'_, Receiver>)> {
        let mut receiver = self.receiver();
        if !receiver.prepare_to_sleep() {
            return None;
        }
        let mut core = self.lock();
        // While the socket is full, the runner tries it again soon: it is not woken when the socket
        // has room.
        let now = self.clock().now();
        let is_full = core.is_socket_full();
        core.polling().set_sleeps_for_room(is_full);
        let again = if is_full { now + FULL_SOCKET_RETRY } else { Instant::NEVER };
        // While receiving is stopped, packets are no reason to wake.
        let stopped = core.stopped_until().filter(|until| *until > now);
        let until = core.next_due().min(again).min(stopped.unwrap_or(again));
        if until <= now {
            core.polling().set_sleeps_for_room(false);
            receiver.finish_sleep(WakeReasons::default(), now);
            return None;
        }
        core.polling().checked();
        core.counters().sleeps += 1;
        Some((Sleep { until, receiving: stopped.is_none() }, core, receiver))
    }
}
