//! What does a thread do that wants something?
//!
//! [`Shard::wait_for`] is what every blocking call ends in: take what one wants if it is there, turn
//! the loop if nobody else does, or wait to be told.

use super::core::WaitKind;
use super::cpu::CpuPart;
use super::shard::{Locked, Shard};
use super::wait_target::WaitTarget;
use super::waiter::{Notice, Waiter};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

thread_local! {
    /// The thread as a waiter.
    static WAITER: RefCell<Arc<Waiter>> = RefCell::new(Arc::new(Waiter::thread()));
}

/// The present thread as a waiter to whom nobody else has a reference.
///
/// Whoever told it something may be about to rouse it, after the lock was released, although it was not
/// asleep yet and has gone on. That waiter is left to be roused in vain: it must not be one that sleeps
/// again.
fn waiter() -> Arc<Waiter> {
    WAITER.with_borrow_mut(|waiter| {
        if Arc::get_mut(waiter).is_none() {
            *waiter = Arc::new(Waiter::thread());
        }
        waiter.clone()
    })
}

impl Shard {
    /// Waits until `want` can be taken, the deadline passes, or the endpoint is closed; the latter two
    /// give `None`.
    pub(crate) fn wait_for<'a, W: WaitTarget>(
        &'a self,
        mut core: Locked<'a>,
        want: &W,
        deadline: Option<Instant>,
    ) -> (Locked<'a>, Option<W::Output>) {
        if core.is_poll_due() && core.role.take() {
            // What one wants may be there, but others wait in the socket.
            drop(core);
            core = self.poll_once();
        }
        if let Some(output) = core.take(want, WaitKind::None) {
            return (core, Some(output));
        }
        // Whoever waits has nothing more to say.
        core.transmit_held_back();
        if core.closed.is_some() {
            return (core, None);
        }
        if core.role.take() {
            drop(core);
            return self.run_loop(want, self.poll, deadline);
        }
        self.wait_for_notice(core, want, deadline)
    }

    /// Somebody else turns the loop: waits to be told that `want` is there, or to get the turn.
    fn wait_for_notice<'a, W: WaitTarget>(
        &'a self,
        mut core: Locked<'a>,
        want: &W,
        deadline: Option<Instant>,
    ) -> (Locked<'a>, Option<W::Output>) {
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            // It only looks; the next time it shall poll itself.
            core.check_now |= core.role.ask_background_poller();
            return (core, None);
        }
        let waiter = waiter();
        waiter.reset();
        want.enlist(&mut core, waiter.clone());
        core.role.enlist(waiter.clone());
        // The keeper gives the turn to whoever wants it.
        core.check_now |= core.role.is_in_background();
        drop(core);

        let waited = waiter.wait(self.poll.spin(), deadline);
        let mut core = self.lock();
        core.metrics.spurious_wakeups += waited.spurious;
        self.cpu.add(CpuPart::Poll, waited.spun);
        // Under the lock: nobody can tell it anything any more once it is off the lists.
        match waiter.notice() {
            Some(Notice::Ready) => {
                core.role.delist(&waiter);
                let how = if waited.slept { WaitKind::Slept } else { WaitKind::Polled };
                let output = core.take_notified(want, how, (waiter.name(), waited.ended));
                (core, output)
            }
            Some(Notice::PollRole) => {
                want.delist(&mut core, &waiter);
                drop(core);
                self.run_loop(want, self.poll, deadline)
            }
            None => {
                want.delist(&mut core, &waiter);
                core.role.delist(&waiter);
                (core, None)
            }
        }
    }
}

#[cfg(all(test, not(apus_loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_that_is_still_to_be_roused_does_not_wait_again() {
        let to_be_roused = waiter();
        let next = waiter();
        assert!(!Arc::ptr_eq(&to_be_roused, &next));
        let address = Arc::as_ptr(&next);
        drop((to_be_roused, next));
        assert_eq!(address, Arc::as_ptr(&waiter()), "reused when nobody else has it");
    }
}
