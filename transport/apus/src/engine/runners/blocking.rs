//! A waiting thread: the end of every blocking call.
//!
//! [`Shard::wait_for`] takes the thread's target if it is available. Otherwise the thread runs the
//! loop if the poll role is free, or waits until it is notified.

use crate::engine::cpu::CpuPart;
use crate::engine::handoff::{Notice, Waiter};
use crate::engine::poll::WaitTarget;
use crate::engine::shard::{Locked, Shard};
use crate::engine::state::WaitKind;
use crate::engine::waiting::{PollMode, Spin};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

thread_local! {
    /// The calling thread as a waiter.
    static WAITER: RefCell<Arc<Waiter>> = RefCell::new(Arc::new(Waiter::thread()));
}

/// Returns the calling thread as a waiter that no other thread has a reference to.
///
/// A thread that has notified the previous waiter may still be about to wake it, after it has
/// released the lock, although the waiter was not asleep yet and has continued. That waiter must
/// not sleep again, or it would be woken needlessly.
fn waiter() -> Arc<Waiter> {
    WAITER.with_borrow_mut(|waiter| {
        if Arc::get_mut(waiter).is_none() {
            *waiter = Arc::new(Waiter::thread());
        }
        waiter.clone()
    })
}

impl Shard {
    /// Waits until `target` can be taken, the deadline passes, the endpoint is closed, or the
    /// thread is asked to steal from other shards; the latter three return `None`.
    pub(crate) fn wait_for<'a, W: WaitTarget>(
        &'a self,
        core: Locked<'a>,
        target: &W,
        deadline: Option<Instant>,
    ) -> (Locked<'a>, Option<W::Output>) {
        self.wait_in_mode(core, target, self.poll_mode(), deadline)
    }

    /// Waits as [`Shard::wait_for`] does, in the given poll mode.
    pub(crate) fn wait_in_mode<'a, W: WaitTarget>(
        &'a self,
        mut core: Locked<'a>,
        target: &W,
        poll: PollMode,
        deadline: Option<Instant>,
    ) -> (Locked<'a>, Option<W::Output>) {
        if core.take_poll_due() && core.polling().take_role_once() {
            // The target may be there, but other messages wait in the socket.
            drop(core);
            core = self.poll_once();
        }
        if let Some(output) = core.take(target, WaitKind::None) {
            return (core, Some(output));
        }
        // A waiting thread sends no further messages.
        core.transmit_held_back();
        // STEAL-1: announce first, then read the surplus of the others.
        let _idle = self.sibling().map(|sibling| sibling.idle(target.kinds()));
        if core.is_wait_over(target) || self.has_to_steal(target) {
            return (core, None);
        }
        if core.polling().take_role() {
            core.set_leader_waits(target.kinds(), true);
            drop(core);
            return self.run_loop(target, poll, deadline);
        }
        self.wait_for_notice(core, target, poll, deadline)
    }

    /// Returns whether other shards have messages to steal.
    pub(crate) fn has_to_steal<W: WaitTarget>(&self, target: &W) -> bool {
        self.sibling().is_some_and(|sibling| sibling.surpluses(target.kinds()).next().is_some())
    }

    /// Waits, while another thread runs the loop, for a notification or the poll role.
    fn wait_for_notice<'a, W: WaitTarget>(
        &'a self,
        mut core: Locked<'a>,
        target: &W,
        poll: PollMode,
        deadline: Option<Instant>,
    ) -> (Locked<'a>, Option<W::Output>) {
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return (core, None);
        }
        let waiter = waiter();
        waiter.reset();
        target.enlist(&mut core, waiter.clone());
        core.polling().follow(waiter.clone());
        drop(core);

        let waited = waiter.wait(Spin::new(poll.spin_for()), deadline);
        let mut core = self.lock();
        core.counters().spurious_wakeups += waited.spurious;
        self.cpu().add(CpuPart::Poll, waited.spun);
        // Under the lock the notice is final: no thread notifies a waiter that is on no list.
        match waiter.notice() {
            Some(Notice::Ready) => {
                core.polling().unfollow(&waiter);
                let kind = if waited.slept { WaitKind::Slept } else { WaitKind::Polled };
                let output = core.take_notified(target, kind, (waiter.name(), waited.ended));
                (core, output)
            }
            Some(Notice::PollRole) => {
                target.delist(&mut core, &waiter);
                core.set_leader_waits(target.kinds(), true);
                drop(core);
                self.run_loop(target, poll, deadline)
            }
            Some(Notice::Steal) => {
                core.polling().unfollow(&waiter);
                (core, None)
            }
            None => {
                target.delist(&mut core, &waiter);
                core.polling().unfollow(&waiter);
                (core, None)
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;

    #[test]
    fn a_waiter_that_is_still_to_be_woken_does_not_wait_again() {
        let to_be_woken = waiter();
        let next = waiter();
        assert!(!Arc::ptr_eq(&to_be_woken, &next));
        let address = Arc::as_ptr(&next);
        drop((to_be_woken, next));
        assert_eq!(address, Arc::as_ptr(&waiter()), "reused without other references");
    }
}
