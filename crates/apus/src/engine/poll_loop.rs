//! What does the loop do, round by round?
//!
//! It receives, hands what came to the protocol, sends, and takes what is wanted; when nothing comes, it sleeps.

use super::backlog::FULL_PASSES;
use super::core::WaitKind;
use super::cpu::CpuPart;
use super::local::Receiver;
use super::poll_mode::PollMode;
use super::shard::{Locked, Shard};
use super::signal::{Wanted, Woken};
use super::wait_target::WaitTarget;
use super::waiter::SLEEPS_ON_NETWORK;
use crate::error::Closed;
use apus_trace::clock::ticks;
use apus_trace::{Event, recorder};
use std::sync::PoisonError;
use std::time::Instant;

/// Idle rounds between two looks at the clock. A round is a system call of 200 ns or so.
pub(super) const ROUNDS_PER_CHECK: u32 = 16;

/// Packets in one look from which on another look is worth a system call before one sleeps. Packets that come
/// one by one are followed by nothing, and the call that sleeps sees what is there all the same.
const WORTH_ANOTHER_POLL: usize = 2;

/// What a pass of the loop does about arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrivals {
    /// Takes them.
    Poll,
    /// Leaves them: probably there are none, and whoever sleeps is woken by them.
    Skip,
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
    Woken(Arrivals),
    /// There is no reason to wait any more.
    Over(Locked<'a>, Option<T>),
}

impl Shard {
    /// Turns the loop until `want` can be taken. The caller has the turn, and passes it on here.
    pub(super) fn run_loop<W: WaitTarget>(
        &self,
        want: &W,
        poll: PollMode,
        deadline: Option<Instant>,
    ) -> (Locked<'_>, Option<W::Output>) {
        let mut receive = self.receive.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut core, output) = self.run(&mut receive, want, poll, deadline);
        drop(receive);
        core.pass_role();
        (core, output)
    }

    /// Takes what has arrived, in a few passes at most, does what is due, and sends what was held back. The caller has
    /// the turn, and passes it on here.
    pub(super) fn poll_once(&self) -> Locked<'_> {
        let mut receive = self.receive.lock().unwrap_or_else(PoisonError::into_inner);
        receive.expect_network();
        // Timers that are due have their turn though nothing arrives: looks keep the keeper away.
        let mut rounds = ROUNDS_PER_CHECK - 1;
        for _ in 0..FULL_PASSES {
            match self.pass(&mut receive, Arrivals::Poll, &mut rounds) {
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
        core.pass_role();
        core
    }

    /// The loop.
    pub(super) fn run<W: WaitTarget>(
        &self,
        receiver: &mut Receiver,
        want: &W,
        poll: PollMode,
        deadline: Option<Instant>,
    ) -> (Locked<'_>, Option<W::Output>) {
        let mut spin = poll.spin();
        // With a deadline the first idle round looks at the clock: it may have passed already.
        let mut rounds = if deadline.is_some() { ROUNDS_PER_CHECK - 1 } else { 0 };
        let mut how = WaitKind::Polled;
        let mut arrivals = Arrivals::Poll;
        loop {
            // A deadline counts however much arrives, and however soon one sleeps.
            let look;
            let began = self.cpu.begin(CpuPart::Poll);
            match self.pass(receiver, arrivals, &mut rounds) {
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
                    how = WaitKind::Polled;
                    look = true;
                    let alone = poll.sleeps_at_once() && arrived < WORTH_ANOTHER_POLL;
                    let leave = alone || core.has_more_to_deliver();
                    arrivals = if leave { Arrivals::Skip } else { Arrivals::Poll };
                    // What the quotas left over needs no arrival to go on.
                    rounds = if core.has_more_to_do() { ROUNDS_PER_CHECK - 1 } else { 0 };
                }
                Pass::Idle if spin.go_on() || receiver.lingers() => {
                    self.cpu.end(CpuPart::Poll, began);
                    arrivals = Arrivals::Poll;
                    look = rounds == 0;
                }
                Pass::Idle => {
                    arrivals = match self.sleep(receiver, want, deadline) {
                        Slept::Over(core, output) => return (core, output),
                        Slept::Woken(arrivals) => arrivals,
                    };
                    spin = poll.spin();
                    how = WaitKind::Slept;
                    // Something woke us, perhaps a timer: look at the clock in the next round.
                    rounds = ROUNDS_PER_CHECK - 1;
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
    pub(super) fn pass(
        &self,
        receiver: &mut Receiver,
        arrivals: Arrivals,
        rounds: &mut u32,
    ) -> Pass<'_> {
        let began = self.cpu.begin(CpuPart::Receive);
        let stopped = self.is_stopped();
        let near = if stopped { 0 } else { receiver.receive_local() };
        let mut arrived = 0;
        let mut reported = false;
        // When a look at the network began, and when it ended.
        let (mut looked, mut came) = (0, 0);
        if arrivals == Arrivals::Poll && receiver.is_network_due() {
            if !stopped {
                looked = recorder::stamp();
                match receiver.receive_network(self.receive_quota) {
                    Ok(packets) => arrived = packets,
                    Err(error) => return Pass::Broken(error),
                }
            }
            receiver.network.reports(&mut |report| {
                reported = true;
                self.lock().handle_report(&report);
            });
        }
        if arrived > 0 {
            came = recorder::stamp();
        }
        let quiet = arrived == 0 && !reported;
        if quiet {
            *rounds = (*rounds + 1) % ROUNDS_PER_CHECK;
            let due = *rounds == 0 && self.is_due(self.clock.now());
            if near == 0 && !due {
                return Pass::Idle;
            }
        }
        self.cpu.end(CpuPart::Receive, began);
        let mut core = self.lock();
        if near > 0 {
            core.begin_local_pass();
            core.handle_local(receiver);
            if quiet && *rounds != 0 {
                core.end_local_pass();
                return Pass::Worked(core, 0);
            }
        }
        core.begin_pass(arrived);
        if arrived > 0 {
            core.tracer.came(looked, came, arrived);
            core.handle_packets(&mut *receiver.network);
        }
        core.handle_timers();
        core.transmit_in_pass();
        core.deliver_in_pass(arrived == 0 || !receiver.network.may_have_more());
        receiver.set_full(core.transport.is_receive_full());
        if came > 0 {
            let now = ticks();
            recorder::record_at(now, Event::Pass, arrived as u32, now.saturating_sub(came));
        }
        Pass::Worked(core, arrived)
    }

    /// Sleeps in the kernel until a packet comes, a local peer rings, a timer is due, or somebody kicks; unless there
    /// is no reason to wait any more.
    fn sleep<W: WaitTarget>(
        &self,
        receiver: &mut Receiver,
        want: &W,
        deadline: Option<Instant>,
    ) -> Slept<'_, W::Output> {
        if !receiver.prepare_to_sleep() {
            return Slept::Woken(Arrivals::Skip);
        }
        let mut woken = Woken::default();
        let slept = self.sleep_prepared(receiver, want, deadline, &mut woken);
        receiver.awake(woken);
        slept
    }

    /// The same, once local peers know. Says also what has ended it.
    fn sleep_prepared<W: WaitTarget>(
        &self,
        receiver: &mut Receiver,
        want: &W,
        deadline: Option<Instant>,
        woken: &mut Woken,
    ) -> Slept<'_, W::Output> {
        let mut core = self.lock();
        if let Some(output) = core.finish_pass(want, WaitKind::Polled) {
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
            return Slept::Woken(Arrivals::Poll);
        }
        core.sleeping_until = Some(until);
        core.count_sleep();
        drop(core);
        let forever = until == apus_proto::Instant::NEVER;
        let nanos = (!forever).then(|| (until - now).as_nanos() as u64);
        let wanted = Wanted { readable: stopped.is_none(), writable };
        recorder::record(Event::Sleep, SLEEPS_ON_NETWORK, 0);
        let slept = self.signal.sleep(receiver, wanted, nanos);
        recorder::record(Event::Wake, SLEEPS_ON_NETWORK, 0);
        let mut core = self.lock();
        core.sleeping_until = None;
        core.sleeps_for_room = false;
        match slept {
            Ok(by) => {
                *woken = by;
                let look =
                    if woken.driver || stopped.is_some() { Arrivals::Poll } else { Arrivals::Skip };
                Slept::Woken(look)
            }
            Err(error) => {
                core.close(Closed::Driver(error.into()));
                Slept::Over(core, None)
            }
        }
    }
}
