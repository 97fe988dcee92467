//! The loop, and how a thread comes to turn it.
//!
//! [`Shard::wait_for`] is what every blocking call ends in: take what one wants if it is there, turn
//! the loop if nobody else does, or wait to be told.

use super::backlog::FULL_PASSES;
use super::core::Core;
use super::cpu::Part;
use super::handoff::From;
use super::local::Inlet;
use super::poll::Poll;
use super::shard::{Locked, Shard};
use super::signal::Wanted;
use super::token::ThreadToken;
use super::tracer::{handed_off, woken};
use super::waiter::{SLEEPS_ON_NETWORK, Told, Waiter};
use super::want::Want;
use crate::error::Closed;
use apus_trace::clock::ticks;
use apus_trace::{Event, recorder};
use std::cell::RefCell;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// Idle rounds between two looks at the clock. A round is a system call of 200 ns or so.
pub(super) const ROUNDS_PER_LOOK: u32 = 16;

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

/// Packets in one look from which on another look is worth a system call before one sleeps. Packets that come
/// one by one are followed by nothing, and the call that sleeps sees what is there all the same.
const WORTH_ANOTHER_LOOK: usize = 2;

/// What a pass of the loop does about arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Takes them.
    Take,
    /// Leaves them: probably there are none, and whoever sleeps is woken by them.
    Leave,
}

/// How a pass of the loop ended.
pub(super) enum Pass<'a> {
    /// Something was done; messages may have become visible. So many packets had arrived.
    Worked(Locked<'a>, usize),
    /// There was nothing to do.
    Idle,
    /// The driver is broken.
    Broken(std::io::Error),
}

/// How a sleep with the turn ended.
enum Slept<'a, T> {
    /// There is something to do: first of all, this about arrivals.
    Woken(Look),
    /// There is no reason to wait any more.
    Over(Locked<'a>, Option<T>),
}

impl Shard {
    /// Waits until `want` can be taken, the deadline passes, or the endpoint is closed; the latter two
    /// give `None`.
    pub(crate) fn wait_for<'a, W: Want>(
        &'a self,
        mut core: Locked<'a>,
        want: &W,
        deadline: Option<Instant>,
    ) -> (Locked<'a>, Option<W::Output>) {
        if core.is_look_due() && core.turn.take() {
            // What one wants may be there, but others wait in the socket.
            drop(core);
            core = self.look();
        }
        if let Some(output) = core.take(want, How::None) {
            return (core, Some(output));
        }
        // Whoever waits has nothing more to say.
        core.transmit_held_back();
        if core.closed.is_some() {
            return (core, None);
        }
        if core.turn.take() {
            drop(core);
            return self.turn(want, self.poll, deadline);
        }
        self.wait_to_be_told(core, want, deadline)
    }

    /// Turns the loop until `want` can be taken. The caller has the turn, and passes it on here.
    pub(super) fn turn<W: Want>(
        &self,
        want: &W,
        poll: Poll,
        deadline: Option<Instant>,
    ) -> (Locked<'_>, Option<W::Output>) {
        let mut receive = self.receive.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut core, output) = self.run(&mut receive, want, poll, deadline);
        drop(receive);
        core.pass_turn();
        (core, output)
    }

    /// Takes what has arrived, in a few passes at most, does what is due, and sends what was held back. The caller has
    /// the turn, and passes it on here.
    fn look(&self) -> Locked<'_> {
        let mut receive = self.receive.lock().unwrap_or_else(PoisonError::into_inner);
        // Timers that are due have their turn though nothing arrives: looks keep the keeper away.
        let mut rounds = ROUNDS_PER_LOOK - 1;
        for _ in 0..FULL_PASSES {
            match self.pass(&mut receive, Look::Take, &mut rounds) {
                Pass::Worked(mut core, _) => {
                    core.finish();
                    if !receive.network.may_have_more() {
                        break;
                    }
                }
                Pass::Idle => break,
                Pass::Broken(error) => {
                    self.lock().close(Closed::Driver(error.into()));
                    break;
                }
            }
        }
        drop(receive);
        let mut core = self.lock();
        core.transmit_held_back();
        core.assign();
        core.pass_turn();
        core
    }

    /// The loop.
    pub(super) fn run<W: Want>(
        &self,
        inlet: &mut Inlet,
        want: &W,
        poll: Poll,
        deadline: Option<Instant>,
    ) -> (Locked<'_>, Option<W::Output>) {
        let mut spin = poll.spin();
        // With a deadline the first idle round looks at the clock: it may have passed already.
        let mut rounds = if deadline.is_some() { ROUNDS_PER_LOOK - 1 } else { 0 };
        let mut how = How::Polled;
        let mut arrivals = Look::Take;
        loop {
            // A deadline counts however much arrives, and however soon one sleeps.
            let look;
            let began = self.cpu.begin(Part::Poll);
            match self.pass(inlet, arrivals, &mut rounds) {
                Pass::Worked(mut core, arrived) => {
                    if let Some(output) = core.finish_pass(want, how) {
                        return (core, Some(output));
                    }
                    if core.closed.is_some() {
                        return (core, None);
                    }
                    // A full socket is tried in vain as long as one spins.
                    if !core.is_stuck() {
                        spin = poll.spin();
                    }
                    how = How::Polled;
                    look = true;
                    let alone = poll.sleeps_at_once() && arrived < WORTH_ANOTHER_LOOK;
                    let leave = alone || core.has_more_to_deliver();
                    arrivals = if leave { Look::Leave } else { Look::Take };
                    // What the quotas left over needs no arrival to go on.
                    rounds = if core.has_more_to_do() { ROUNDS_PER_LOOK - 1 } else { 0 };
                }
                Pass::Idle if spin.go_on() || inlet.lingers() => {
                    self.cpu.end(Part::Poll, began);
                    arrivals = Look::Take;
                    look = rounds == 0;
                }
                Pass::Idle => {
                    arrivals = match self.sleep(inlet, want, deadline) {
                        Slept::Over(core, output) => return (core, output),
                        Slept::Woken(arrivals) => arrivals,
                    };
                    spin = poll.spin();
                    how = How::Slept;
                    // Something woke us, perhaps a timer: look at the clock in the next round.
                    rounds = ROUNDS_PER_LOOK - 1;
                    look = true;
                }
                Pass::Broken(error) => {
                    let mut core = self.lock();
                    core.close(Closed::Driver(error.into()));
                    return (core, None);
                }
            }
            if look && deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                let mut core = self.lock();
                let output = core.finish_pass(want, how);
                return (core, output);
            }
        }
    }

    /// One pass of the loop: receive, handle, send.
    pub(super) fn pass(&self, inlet: &mut Inlet, arrivals: Look, rounds: &mut u32) -> Pass<'_> {
        let began = self.cpu.begin(Part::Receive);
        let stopped = self.is_stopped();
        let near = if stopped { 0 } else { inlet.receive_local() };
        let mut arrived = 0;
        let mut reported = false;
        // When a look at the network began, and when it ended.
        let (mut looked, mut came) = (0, 0);
        if arrivals == Look::Take && inlet.is_network_due() {
            if !stopped {
                looked = recorder::stamp();
                match inlet.network.receive(self.receive_quota) {
                    Ok(packets) => arrived = packets,
                    Err(error) => return Pass::Broken(error),
                }
            }
            inlet.network.reports(&mut |report| {
                reported = true;
                self.lock().handle_report(&report);
            });
        }
        if arrived > 0 {
            came = recorder::stamp();
        }
        let quiet = arrived == 0 && !reported;
        if quiet {
            *rounds = (*rounds + 1) % ROUNDS_PER_LOOK;
            let due = *rounds == 0 && self.is_due(self.clock.now());
            if near == 0 && !due {
                return Pass::Idle;
            }
        }
        self.cpu.end(Part::Receive, began);
        let mut core = self.lock();
        if near > 0 {
            core.begin_local_pass();
            core.handle_local(inlet);
            if quiet && *rounds != 0 {
                core.end_local_pass();
                return Pass::Worked(core, 0);
            }
        }
        core.begin_pass(arrived);
        if arrived > 0 {
            core.tracer.came(looked, came, arrived);
            core.handle_packets(&mut *inlet.network);
        }
        core.handle_timers();
        core.transmit_in_pass();
        core.deliver_in_pass(arrived == 0 || !inlet.network.may_have_more());
        inlet.set_full(core.transport.is_receive_full());
        if came > 0 {
            let now = ticks();
            recorder::record_at(now, Event::Pass, arrived as u32, now.saturating_sub(came));
        }
        Pass::Worked(core, arrived)
    }

    /// Sleeps in the kernel until a packet comes, a local peer rings, a timer is due, or somebody kicks; unless there
    /// is no reason to wait any more.
    fn sleep<W: Want>(
        &self,
        inlet: &mut Inlet,
        want: &W,
        deadline: Option<Instant>,
    ) -> Slept<'_, W::Output> {
        if !inlet.prepare_to_sleep() {
            return Slept::Woken(Look::Leave);
        }
        let mut rung = false;
        let slept = self.sleep_prepared(inlet, want, deadline, &mut rung);
        inlet.awake(rung);
        slept
    }

    /// The same, once local peers know. Says also whether one of them has rung.
    fn sleep_prepared<W: Want>(
        &self,
        inlet: &mut Inlet,
        want: &W,
        deadline: Option<Instant>,
        rung: &mut bool,
    ) -> Slept<'_, W::Output> {
        let mut core = self.lock();
        if let Some(output) = core.finish_pass(want, How::Polled) {
            return Slept::Over(core, Some(output));
        }
        if core.closed.is_some() {
            return Slept::Over(core, None);
        }
        let writable = core.is_stuck();
        core.sleeps_for_room = writable;
        let now = core.clock.now();
        let deadline = deadline.map_or(apus_proto::Instant::NEVER, |at| core.clock.convert(at));
        // While receiving has stopped, what arrives is no reason to wake up.
        let stopped = core.backlog.stopped_until().filter(|until| *until > now);
        let until = core.next_due().min(deadline).min(stopped.unwrap_or(deadline));
        if until <= now {
            core.sleeps_for_room = false;
            return Slept::Woken(Look::Take);
        }
        core.sleeping_until = Some(until);
        core.count_sleep();
        drop(core);
        let forever = until == apus_proto::Instant::NEVER;
        let nanos = (!forever).then(|| until.since(now));
        let wanted = Wanted { readable: stopped.is_none(), writable };
        recorder::record(Event::Sleep, SLEEPS_ON_NETWORK, 0);
        let slept = self.signal.sleep(inlet, wanted, nanos);
        recorder::record(Event::Wake, SLEEPS_ON_NETWORK, 0);
        let mut core = self.lock();
        core.sleeping_until = None;
        core.sleeps_for_room = false;
        match slept {
            Ok(woken) => {
                *rung = woken.rung;
                let look = if woken.driver || stopped.is_some() { Look::Take } else { Look::Leave };
                Slept::Woken(look)
            }
            Err(error) => {
                core.close(Closed::Driver(error.into()));
                Slept::Over(core, None)
            }
        }
    }

    /// Somebody else turns the loop: waits to be told that `want` is there, or to get the turn.
    fn wait_to_be_told<'a, W: Want>(
        &'a self,
        mut core: Locked<'a>,
        want: &W,
        deadline: Option<Instant>,
    ) -> (Locked<'a>, Option<W::Output>) {
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            // It only looks; the next time it shall poll itself.
            core.look_up |= core.turn.ask_keeper();
            return (core, None);
        }
        let waiter = waiter();
        waiter.reset();
        want.enlist(&mut core, waiter.clone());
        core.turn.enlist(waiter.clone());
        // The keeper gives the turn to whoever wants it.
        core.look_up |= core.turn.is_kept();
        drop(core);

        let waited = waiter.wait(self.poll.spin(), deadline);
        let mut core = self.lock();
        core.metrics.spurious_wakeups += waited.spurious;
        self.cpu.add(Part::Poll, waited.spun);
        // Under the lock: nobody can tell it anything any more once it is off the lists.
        match waiter.told() {
            Some(Told::Ready) => {
                core.turn.delist(&waiter);
                let how = if waited.slept { How::Slept } else { How::Polled };
                let output = core.take_told(want, how, (waiter.name(), waited.ended));
                (core, output)
            }
            Some(Told::Turn) => {
                want.delist(&mut core, &waiter);
                drop(core);
                self.turn(want, self.poll, deadline)
            }
            None => {
                want.delist(&mut core, &waiter);
                core.turn.delist(&waiter);
                (core, None)
            }
        }
    }
}

/// How a message was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    None,
    Polled,
    Slept,
}

impl Core {
    /// The end of a pass: whoever turns the loop takes what it wants before the others are told.
    pub(super) fn finish_pass<W: Want>(&mut self, want: &W, how: How) -> Option<W::Output> {
        if self.closed.is_none() {
            self.look_up = false;
        }
        let output = self.take(want, how);
        self.assign();
        output
    }

    /// Takes what one wants if it is there, without having been told.
    pub(crate) fn take<W: Want>(&mut self, want: &W, how: How) -> Option<W::Output> {
        let From { message, by } = want.take(self)?;
        if let Some(bytes) = W::message_len(&message) {
            // It crosses from one thread to another all the same.
            self.metrics.handoffs += u64::from(by != ThreadToken::current());
            self.message_taken(bytes, how);
            handed_off(W::rpc(&message), 0);
            woken(W::rpc(&message), 0, 0);
        }
        Some(message)
    }

    /// Takes `first`, which was waited for, and all others that are there, at most `limit`; returns how
    /// many.
    pub(crate) fn take_all<W: Want>(
        &mut self,
        want: &W,
        first: W::Output,
        limit: usize,
        mut sink: impl FnMut(W::Output),
    ) -> usize {
        sink(first);
        let mut count = 1;
        while count < limit
            && let Some(next) = self.take(want, How::None)
        {
            sink(next);
            count += 1;
        }
        count
    }

    /// Takes what one was told is there. That it is not is a wake-up for nothing.
    ///
    /// `waiter` is who was told, and it runs since `ended`, in ticks of the trace.
    pub(crate) fn take_told<W: Want>(
        &mut self,
        want: &W,
        how: How,
        (waiter, ended): (u64, u64),
    ) -> Option<W::Output> {
        let Some(From { message, .. }) = want.take_told(self) else {
            self.metrics.spurious_wakeups += u64::from(self.closed.is_none());
            return None;
        };
        if let Some(bytes) = W::message_len(&message) {
            self.message_taken(bytes, how);
            woken(W::rpc(&message), waiter, ended);
        }
        Some(message)
    }

    /// Counts that whoever has the turn sleeps.
    pub(super) const fn count_sleep(&mut self) {
        self.metrics.sleeps += 1;
    }

    /// The application gets a message of `bytes` bytes; counts how it was waited for.
    fn message_taken(&mut self, bytes: usize, how: How) {
        self.transport.taken(bytes);
        self.metrics.messages += 1;
        if bytes > 0 {
            self.sizes.record(bytes);
        }
        match how {
            How::None => self.metrics.wait_none += 1,
            How::Polled => self.metrics.wait_polled += 1,
            How::Slept => self.metrics.wait_slept += 1,
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
