//! The engine's poll loop: receives, handles packets and timers, transmits, delivers, and sleeps
//! when no packet arrives.

use super::wait_target::WaitTarget;
use crate::engine::core::{Core, ReceiveStamps};
use crate::engine::cpu::CpuPart;
use crate::engine::handoff::SLEEPS_ON_NETWORK;
use crate::engine::paths::receive::Receiver;
use crate::engine::shard::{Locked, Shard};
use crate::engine::state::{FULL_PASSES, WaitKind};
use crate::engine::waiting::{PollMode, Spin, WakeConditions, WakeReasons};
use crate::error::Closed;
use crate::warning;
use apus_trace::clock::ticks;
use apus_trace::{Event, recorder};
use std::io;
use std::time::Instant;

/// Idle rounds between two checks of timers and deadlines, which read the clock. A round is a
/// system call of about 200 ns.
const ROUNDS_PER_CHECK: u32 = 16;

/// Minimum number of packets in one receive that makes another poll worth a system call before the
/// thread sleeps, in this wait or in the next one. A single packet is rarely followed by others,
/// and the call that sleeps reports further arrivals.
const WORTH_ANOTHER_POLL: usize = 2;

/// Treatment of the network in a pass of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrivals {
    /// Polls it.
    Poll,
    /// Leaves it alone: it is probably empty, and packets wake a sleeping thread.
    Skip,
}

/// Loop state carried between passes.
#[derive(Debug)]
pub(crate) struct LoopState {
    spin: Spin,
    /// Idle rounds since the last check of the timers, below [`ROUNDS_PER_CHECK`].
    rounds: u32,
    arrivals: Arrivals,
    /// How the thread has waited since the last pass that did something.
    wait_kind: WaitKind,
    /// Whether to check the deadline after this pass.
    check_deadline: bool,
}

impl LoopState {
    /// Returns the state before the first pass. With `check_first` it checks timers even if no
    /// packet arrives.
    pub(crate) fn new(poll: PollMode, check_first: bool) -> Self {
        let mut state = Self {
            spin: Spin::new(poll.spin_for()),
            rounds: 0,
            arrivals: Arrivals::Poll,
            wait_kind: WaitKind::Polled,
            check_deadline: false,
        };
        if check_first {
            state.check_next();
        }
        state
    }

    /// Returns the state before the first pass of a wait that ends at `deadline`, if it has one. A
    /// thread that would sleep anyway does not poll the socket if its last packet was a single one.
    /// A wait that may be over at once polls it: no later pass would.
    fn before_wait(receiver: &Receiver, poll: PollMode, deadline: Option<Instant>) -> Self {
        // A deadline may have passed already: the first idle round checks it.
        let mut state = Self::new(poll, deadline.is_some());
        if deadline.is_none() && is_alone(poll, receiver.last_packets()) {
            state.arrivals = Arrivals::Skip;
        }
        state
    }

    /// Has the next pass check the timers even if no packet arrives.
    pub(crate) const fn check_next(&mut self) {
        self.rounds = ROUNDS_PER_CHECK - 1;
    }

    /// Counts an idle round. Returns whether this one checks the timers.
    const fn count_idle_round(&mut self) -> bool {
        self.rounds = (self.rounds + 1) % ROUNDS_PER_CHECK;
        self.rounds == 0
    }

    /// After a pass that did something and received `packets`.
    fn after_work(&mut self, core: &Core, packets: usize, poll: PollMode) {
        // While the socket is full, attempts to send do not count as work.
        if !core.is_socket_full() {
            self.spin = Spin::new(poll.spin_for());
        }
        self.wait_kind = WaitKind::Polled;
        self.check_deadline = true;
        let skip = is_alone(poll, packets) || core.has_more_to_deliver();
        self.arrivals = if skip { Arrivals::Skip } else { Arrivals::Poll };
        // Work deferred by the quotas continues without an arrival.
        self.rounds = if core.has_more_to_do() { ROUNDS_PER_CHECK - 1 } else { 0 };
    }

    /// After an idle pass, if the thread spins.
    const fn after_idle_round(&mut self) {
        self.arrivals = Arrivals::Poll;
        self.check_deadline = self.rounds == 0;
    }

    /// After a sleep. A timer may have ended it, so the next pass checks.
    fn after_sleep(&mut self, arrivals: Arrivals, poll: PollMode) {
        self.spin = Spin::new(poll.spin_for());
        self.wait_kind = WaitKind::Slept;
        self.arrivals = arrivals;
        self.check_deadline = true;
        self.check_next();
    }
}

/// Returns whether a thread that polls in this mode sleeps after a receive of this number of
/// packets, without another poll.
const fn is_alone(poll: PollMode, packets: usize) -> bool {
    poll.sleeps_at_once() && packets < WORTH_ANOTHER_POLL
}

/// Arrivals of a pass.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    /// Events from shared memory.
    local_events: usize,
    /// Packets from the network.
    packets: usize,
    /// Whether the pass is for shared memory alone: no packet, no timer.
    local_only: bool,
    /// Unread packets, as reported by the receive from the network; `None` without a receive.
    reading: Option<BatchReading>,
    stamps: ReceiveStamps,
}

/// State of the socket's unread packets after a receive.
#[derive(Clone, Copy, Debug)]
struct BatchReading {
    /// Lower bound of the packets' arrival times, if known.
    since: Option<apus_proto::Instant>,
    /// Whether it left the socket empty.
    empty: bool,
}

impl Batch {
    /// Records the pass in the trace.
    fn record(&self) {
        let received = self.stamps.ended;
        if received > 0 {
            let now = ticks();
            let took = now.saturating_sub(received);
            recorder::record_at(now, Event::Pass, self.packets as u32, took);
        }
    }
}

/// The result of a pass of the loop.
pub(crate) enum Pass<'a> {
    /// Work was done, and messages may have become visible.
    Worked {
        core: Locked<'a>,
        /// Packets received, as counted by [`Receiver::last_packets`].
        packets: usize,
    },
    /// No packet had arrived, and no timer was due.
    Idle,
    /// The driver is broken.
    Broken(io::Error),
}

/// The result of a sleep of the leader.
enum SleepOutcome<'a, T> {
    /// There is work, starting with this treatment of the network.
    Woken(Arrivals),
    /// There is no reason to wait any more.
    Over(Locked<'a>, Option<T>),
}

impl Shard {
    /// Runs the loop until `target` can be taken. The caller has the poll role, which is passed on
    /// here.
    pub(crate) fn run_loop<W: WaitTarget>(
        &self,
        target: &W,
        poll: PollMode,
        deadline: Option<Instant>,
    ) -> (Locked<'_>, Option<W::Output>) {
        let mut receiver = self.receiver();
        receiver.take_over(self.clock());
        let (mut core, output) = self.run_until(&mut receiver, target, poll, deadline);
        drop(receiver);
        core.set_leader_waits(target.kinds(), false);
        core.pass_role();
        (core, output)
    }

    /// Receives arrived packets, in a few passes at most, does due work, and sends messages held
    /// back. The caller has the poll role, which is passed on here.
    pub(crate) fn poll_once(&self) -> Locked<'_> {
        let began = self.clock().now();
        let mut receiver = self.receiver();
        receiver.take_over(self.clock());
        receiver.expect_network();
        // Timers are checked even if no packet arrives: explicit polls keep the background poller
        // away.
        let mut state = LoopState::new(PollMode::Block, true);
        for _ in 0..FULL_PASSES {
            match self.pass(&mut receiver, &mut state) {
                Pass::Worked { mut core, .. } => {
                    core.finish();
                    if !receiver.may_have_more() {
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
        drop(receiver);
        let mut core = self.lock();
        core.transmit_held_back();
        core.assign();
        core.end_poll(began);
        core.polling().end_single_poll();
        core.pass_role();
        core
    }

    /// Runs the loop until `target` can be taken, the deadline passes, or the endpoint is closed.
    pub(crate) fn run_until<W: WaitTarget>(
        &self,
        receiver: &mut Receiver,
        target: &W,
        poll: PollMode,
        deadline: Option<Instant>,
    ) -> (Locked<'_>, Option<W::Output>) {
        let mut state = LoopState::before_wait(receiver, poll, deadline);
        loop {
            let began = self.cpu().begin(CpuPart::Poll);
            match self.pass(receiver, &mut state) {
                Pass::Worked { mut core, packets } => {
                    if let Some(output) = core.finish_pass(target, state.wait_kind) {
                        return (core, Some(output));
                    }
                    if core.is_wait_over(target) {
                        return (core, None);
                    }
                    state.after_work(&core, packets, poll);
                }
                Pass::Idle if state.spin.go_on() || receiver.lingers() => {
                    self.cpu().end(CpuPart::Poll, began);
                    state.after_idle_round();
                }
                Pass::Idle => match self.sleep(receiver, target, deadline) {
                    SleepOutcome::Over(core, output) => return (core, output),
                    SleepOutcome::Woken(arrivals) => state.after_sleep(arrivals, poll),
                },
                Pass::Broken(error) => {
                    let mut core = self.lock();
                    core.close(Closed::Driver(error.into()));
                    return (core, None);
                }
            }
            // The deadline counts however much arrives, and however soon the thread sleeps.
            if state.check_deadline && deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                let mut core = self.lock();
                let output = core.finish_pass(target, state.wait_kind);
                return (core, output);
            }
        }
    }

    /// One pass of the loop.
    pub(crate) fn pass(&self, receiver: &mut Receiver, state: &mut LoopState) -> Pass<'_> {
        let batch = match self.receive(receiver, state) {
            Ok(Some(batch)) => batch,
            Ok(None) => return Pass::Idle,
            Err(error) => return Pass::Broken(error),
        };
        let mut core = self.lock();
        if let Some(arrivals) = receiver.local_arrivals() {
            core.handle_local(arrivals);
        }
        if batch.local_only {
            core.end_local_pass();
        } else {
            core.begin_pass(batch.packets);
            core.observe_neighbours(self.sibling());
            core.begin_reading(batch.reading.and_then(|reading| reading.since));
            let bytes = core.handle_packets(receiver.network(), batch.packets, batch.stamps);
            if receiver.take_overflow() {
                core.handle_overflow();
            }
            if let Some(BatchReading { empty, .. }) = batch.reading {
                core.finish_reading(receiver.reading().finish(bytes, empty));
            }
            receiver.reading().note_clock(core.now());
            core.handle_timers();
            core.transmit_in_pass();
            core.deliver_in_pass(batch.packets == 0 || !receiver.may_have_more());
            batch.record();
        }
        receiver.set_full(core.is_receive_full());
        Pass::Worked { core, packets: batch.packets.min(receiver.last_packets()) }
    }

    /// Receives from shared memory and from the network, without the core lock. Returns `None` if
    /// there are no arrivals and no due timers.
    ///
    /// # Errors
    ///
    /// The driver's: it is broken.
    fn receive(&self, receiver: &mut Receiver, state: &mut LoopState) -> io::Result<Option<Batch>> {
        let began = self.cpu().begin(CpuPart::Receive);
        let mut batch = Batch::default();
        let mut reported = false;
        let is_stopped = self.is_stopped();
        if !is_stopped {
            batch.local_events = receiver.receive_local();
        }
        if state.arrivals == Arrivals::Poll && receiver.is_network_due() {
            if !is_stopped {
                batch.stamps.began = recorder::stamp();
                let since = receiver.reading().begin();
                batch.packets = receiver.receive_network(self.receive_quota())?;
                let empty = batch.packets == 0 || !receiver.may_have_more();
                batch.reading = Some(BatchReading { since, empty });
            }
            receiver.reports(&mut |report| {
                reported = true;
                self.lock().handle_report(&report);
            });
            if let Some(text) = receiver.take_warning() {
                warning::print(format_args!("{text}"));
            }
        }
        if batch.packets > 0 {
            batch.stamps.ended = recorder::stamp();
        } else if !reported {
            let now = state.count_idle_round().then(|| self.clock().now());
            let is_due = now.is_some_and(|now| self.is_due(now));
            if batch.local_events == 0 && !is_due {
                receiver.reading().note_idle(batch.reading.is_some(), now);
                return Ok(None);
            }
            batch.local_only = batch.local_events > 0 && state.rounds != 0;
        }
        self.cpu().end(CpuPart::Receive, began);
        Ok(Some(batch))
    }

    /// Sleeps in the kernel until a packet arrives, a local peer rings, a timer is due, or another
    /// thread raises the signal; unless there is no reason to wait any more.
    fn sleep<W: WaitTarget>(
        &self,
        receiver: &mut Receiver,
        target: &W,
        deadline: Option<Instant>,
    ) -> SleepOutcome<'_, W::Output> {
        if !receiver.prepare_to_sleep() {
            return SleepOutcome::Woken(Arrivals::Skip);
        }
        let mut reasons = WakeReasons::default();
        let slept = self.sleep_prepared(receiver, target, deadline, &mut reasons);
        receiver.finish_sleep(reasons, self.clock().now());
        slept
    }

    /// Sleeps after local peers have been notified of that. Sets the reasons of its wake-up.
    fn sleep_prepared<W: WaitTarget>(
        &self,
        receiver: &mut Receiver,
        target: &W,
        deadline: Option<Instant>,
        reasons: &mut WakeReasons,
    ) -> SleepOutcome<'_, W::Output> {
        let mut core = self.lock();
        if let Some(output) = core.finish_pass(target, WaitKind::Polled) {
            return SleepOutcome::Over(core, Some(output));
        }
        if core.is_wait_over(target) {
            return SleepOutcome::Over(core, None);
        }
        let writable = core.is_socket_full();
        core.polling().set_sleeps_for_room(writable);
        let now = self.clock().now();
        let deadline = deadline.map_or(apus_proto::Instant::NEVER, |at| self.clock().convert(at));
        // While receiving is stopped, packets are no reason to wake.
        let stopped = core.stopped_until().filter(|until| *until > now);
        let until = core.next_due().min(deadline).min(stopped.unwrap_or(deadline));
        if until <= now {
            core.polling().set_sleeps_for_room(false);
            return SleepOutcome::Woken(Arrivals::Poll);
        }
        core.polling().begin_sleep(until);
        core.counters().sleeps += 1;
        drop(core);
        let forever = until == apus_proto::Instant::NEVER;
        let nanos = (!forever).then(|| (until - now).as_nanos() as u64);
        let companions = target.companions();
        let conditions = WakeConditions { readable: stopped.is_none(), writable, companions };
        recorder::record(Event::Sleep, SLEEPS_ON_NETWORK, 0);
        let slept = receiver.sleep(now, self.signal(), conditions, nanos);
        recorder::record(Event::Wake, SLEEPS_ON_NETWORK, 0);
        let mut core = self.lock();
        core.polling().end_sleep();
        match slept {
            Ok(by) => {
                *reasons = by;
                if by.companion {
                    target.note_companion();
                }
                // A timer checks whether a peer is silent, which only another poll can tell.
                let timer = !by.signal && !by.doorbell && !by.companion;
                let poll = by.driver || timer || stopped.is_some();
                SleepOutcome::Woken(if poll { Arrivals::Poll } else { Arrivals::Skip })
            }
            Err(error) => {
                core.close(Closed::Driver(error.into()));
                SleepOutcome::Over(core, None)
            }
        }
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;
    use crate::{Config, EndpointBuilder};
    use apus_driver::loopback::LoopbackNetwork;

    #[test]
    fn a_thread_that_sleeps_at_once_polls_before_it_waits_only_if_packets_came_together() {
        let network = LoopbackNetwork::new();
        // No RESEND arrives in addition, however slow the machine is.
        let config = Config::builder().resend_usecs(10_000_000).timeout_usecs(60_000_000);
        let builder = EndpointBuilder::default().config(config.build().unwrap());
        let [waits, sends] =
            [(); 2].map(|()| builder.clone().with_driver(Box::new(network.host())).unwrap());
        let shard = waits.shard();
        // With the poll role no other thread takes the packets.
        while !shard.lock().polling().take_role() {
            std::thread::yield_now();
        }
        let mut receiver = shard.receiver();
        let mut expect = |packets: usize, blocking: Arrivals| {
            assert_eq!(receiver.receive_network(64).unwrap(), packets);
            let first = |poll, deadline| LoopState::before_wait(&receiver, poll, deadline).arrivals;
            assert_eq!(first(PollMode::Block, None), blocking, "{packets} packets");
            assert_eq!(first(PollMode::Spin, None), Arrivals::Poll);
            // A wait that is over at once takes arrived messages.
            assert_eq!(first(PollMode::Block, Some(Instant::now())), Arrivals::Poll);
        };
        expect(0, Arrivals::Skip);
        sends.send(waits.local_addr(), "alone", 0).unwrap();
        expect(1, Arrivals::Skip);
        let cork = sends.cork();
        for cookie in 1..3 {
            sends.send(waits.local_addr(), "together", cookie).unwrap();
        }
        drop(cork);
        expect(2, Arrivals::Poll);
        expect(0, Arrivals::Skip);
        drop(receiver);
        shard.lock().pass_role();
    }
}
