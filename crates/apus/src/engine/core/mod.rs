//! What lies under the core lock?
//!
//! [`Core`] owns the protocol and the driver's sending half. What happens there has rooms of its own: what a [`pass`]
//! of the loop hands to the protocol; [`transmission`], and who waits for [`room`] to send; [`delivery`] what the protocol
//! has to say, and [`dequeue`] it; [`shutdown`].

mod delivery;
mod dequeue;
mod pass;
mod room;
mod shutdown;
mod transmission;

pub(crate) use delivery::{Arrived, Ended};
pub(super) use dequeue::WaitKind;

use super::alarm::Alarm;
use super::backlog::Backlog;
use super::calls::Calls;
use super::clock::Clock;
use super::cpu::{Cpu, CpuPart};
use super::handoff::Handoff;
use super::local::{Path, Underway};
use super::metrics::EngineMetrics;
use super::paths::Paths;
use super::poll_role::PollRole;
use super::token::ThreadToken;
use super::tracer::Tracer;
use super::waiter::Waiter;
use super::wake_list::WakeList;
use crate::error::Closed;
use crate::overload::{Budget, Quotas, Work};
use apus_driver::TransmitHalf;
use apus_proto::{DurationHistogram, Instant, SizeHistogram, Transport};
use apus_trace::recorder;
use std::sync::Arc;
use std::time::Duration;

/// Everything that one thread at a time may touch.
pub(crate) struct Core {
    pub(crate) transport: Transport,
    pub(crate) clock: Clock,
    /// What the clock said at the last look.
    pub(super) time: Instant,
    transmit: Box<dyn TransmitHalf>,
    paths: Paths,
    /// Calls whose result is awaited.
    pub(crate) calls: Calls,
    /// Calls and requests that go through memory, if the endpoint has that way.
    pub(crate) local: Option<Underway>,
    pub(crate) requests: Handoff<Arrived>,
    /// How many of those may wait.
    pub(super) backlog: Backlog,
    pub(crate) completions: Handoff<Ended>,
    pub(crate) role: PollRole,
    /// Those who wait for room to send, and how often there has been some.
    room: Vec<Arc<Waiter>>,
    room_changes: u64,
    /// Whether a call was refused because there are too many.
    too_many_calls: bool,
    /// Those who wait until everything has been acknowledged.
    pub(super) draining: Vec<Arc<Waiter>>,
    /// Whether the endpoint was closed before that.
    gave_up: bool,
    pub(crate) wakes: WakeList,
    /// Until when the thread with the turn sleeps in the kernel, while it does.
    pub(crate) sleeping_until: Option<Instant>,
    /// Whether it wakes when the full socket has room; nobody needs to tell it then that it is full.
    pub(super) sleeps_for_room: bool,
    /// Whether that thread must look up, whatever the time.
    pub(crate) check_now: bool,
    /// What wakes the keeper, if there is one.
    pub(super) background_poller: Option<Arc<Alarm>>,
    /// If it sleeps until the turn is free: for how long the turn shall be free then.
    pub(super) background_wake_after: Option<Duration>,
    /// How often the turn had changed hands when its alarm was set.
    pub(super) free_since: Option<u64>,
    /// The thread that handles packets at the moment.
    pub(crate) producer: ThreadToken,
    /// Number of corks.
    pub(crate) corks: u32,
    /// What the present pass of the loop may still do.
    budget: Budget,
    /// Whether a quota ended the last transmission before everything had left, or the last delivery before
    /// everything was visible.
    more_to_send: bool,
    more_to_deliver: bool,
    /// Messages that were held back since the last transmission, by a cork or because too many requests wait.
    held_back: u32,
    pub(crate) closed: Option<Closed>,
    pub(super) metrics: EngineMetrics,
    pub(crate) tracer: Tracer,
    /// Messages that the application got.
    pub(crate) sizes: SizeHistogram,
    /// How long calls through memory took that were timed.
    pub(crate) local_calls: DurationHistogram,
    pub(super) cpu: Arc<Cpu>,
}

impl Core {
    pub(crate) fn new(
        mut transport: Transport,
        transmit: Box<dyn TransmitHalf>,
        clock: Clock,
        quotas: Quotas,
        backlog: Backlog,
        local: Option<Path>,
        mut tracer: Tracer,
    ) -> Self {
        tracer.renew(&mut transport);
        Self {
            paths: Paths::new(transport.config().profile()),
            transport,
            clock,
            time: clock.now(),
            transmit,
            calls: Calls::default(),
            local: local.map(Underway::new),
            requests: Handoff::default(),
            backlog,
            completions: Handoff::default(),
            role: PollRole::default(),
            room: Vec::new(),
            room_changes: 0,
            too_many_calls: false,
            draining: Vec::new(),
            gave_up: false,
            wakes: WakeList::default(),
            sleeping_until: None,
            sleeps_for_room: false,
            check_now: false,
            background_poller: None,
            background_wake_after: None,
            free_since: None,
            producer: ThreadToken::current(),
            corks: 0,
            budget: Budget::new(quotas),
            more_to_send: false,
            more_to_deliver: false,
            held_back: 0,
            closed: None,
            metrics: EngineMetrics::default(),
            tracer,
            sizes: SizeHistogram::default(),
            local_calls: DurationHistogram::default(),
            cpu: Arc::default(),
        }
    }

    /// Looks at the clock: once per pass of the loop, as a look costs as much as a fifth of what a
    /// packet does.
    pub(crate) fn read_clock(&mut self) {
        self.time = self.clock.now();
    }

    /// The time of a command. Commands that a cork holds back have the time of the first one, or of the last look
    /// at the clock.
    pub(crate) fn command_time(&mut self) -> Instant {
        if self.held_back == 0 || self.corks == 0 {
            self.read_clock();
        }
        self.time
    }

    /// When the loop must come under the lock even if nothing arrives: at the next timer, or at once if
    /// somebody wants it to look up, or if packets wait for room in the socket.
    pub(crate) fn next_due(&self) -> Instant {
        let is_full = self.is_stuck() && !self.sleeps_for_room;
        if self.check_now || self.has_more_to_do() || is_full {
            return Instant::ZERO;
        }
        let network = self.transport.next_timeout().map_or(Instant::NEVER, |(at, _)| at);
        self.local.as_ref().map_or(network, |local| network.min(local.next_due()))
    }

    /// Whether a quota ended the last pass before everything was done.
    pub(super) const fn has_more_to_do(&self) -> bool {
        self.more_to_send || self.more_to_deliver
    }

    /// Whether a quota ended the last delivery: nothing is received before that was made up for.
    pub(super) const fn has_more_to_deliver(&self) -> bool {
        self.more_to_deliver
    }

    /// The thread with the turn passes it on, or lets it go.
    pub(super) fn pass_role(&mut self) {
        self.finish();
        let passed = self.role.pass(&mut self.wakes);
        self.metrics.turn_passes += u64::from(passed);
        if !passed && let Some(after) = self.background_wake_after.take() {
            self.free_since = Some(self.role.changes());
            self.wake_background_poller(after);
        }
    }

    /// Has the keeper look after that time.
    fn wake_background_poller(&self, after: Duration) {
        if let Some(alarm) = &self.background_poller {
            alarm.set(after);
        }
    }

    /// Freezes the traces of peers and our own; how many peers were asked.
    pub(crate) fn freeze_peers(&mut self) -> usize {
        self.read_clock();
        let count = self.ask_peers_to_freeze();
        self.transmit();
        recorder::freeze(recorder::FreezeReason::Demand);
        count
    }

    /// The same wish to all peers, over the network and through memory; how many were asked.
    fn ask_peers_to_freeze(&mut self) -> usize {
        self.transport.freeze_peers(self.time) + self.freeze_local_peers()
    }

    /// Whether the next call through memory is timed: when it begins, and for how many calls it counts. A clock for each
    /// of them would be a tenth of what they take.
    pub(super) fn time_local_call(&self) -> Option<(std::time::Instant, u64)> {
        /// One in so many.
        const EVERY: u64 = 64;
        let earlier = self.metrics.local_calls;
        let times = if earlier == 0 { 1 } else { EVERY };
        earlier.is_multiple_of(EVERY).then(|| (std::time::Instant::now(), times))
    }

    /// Counts that whoever has the turn sleeps.
    pub(super) const fn count_sleep(&mut self) {
        self.metrics.sleeps += 1;
    }

    /// The engine's counters.
    pub(crate) fn engine_metrics(&self) -> EngineMetrics {
        EngineMetrics {
            quota_exhaustions: Work::ALL.map(|work| self.budget.exhausted(work)).iter().sum(),
            feedback_stops: self.backlog.stops(),
            receive_nanos: self.cpu.nanos(CpuPart::Receive),
            protocol_nanos: self.cpu.nanos(CpuPart::Protocol),
            send_nanos: self.cpu.nanos(CpuPart::Send),
            poll_nanos: self.cpu.nanos(CpuPart::Poll),
            ..self.metrics
        }
    }
}
