//! The steps of a pass of the loop that need the core lock.
//!
//! [`poll`](crate::engine::poll) orders them; each method is one of its lines.

use super::root::Core;
use crate::engine::cpu::CpuPart;
use crate::overload::Work;
use apus_driver::{NetworkReport, ReceiveHalf};
use apus_local::Arrivals;
use apus_proto::Instant;

/// Start and end of a receive from the network, in ticks of the trace; 0 if not recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::engine) struct ReceiveStamps {
    pub(in crate::engine) began: u64,
    pub(in crate::engine) ended: u64,
}

impl Core {
    /// Starts a pass that has received `packets`.
    pub(in crate::engine) fn begin_pass(&mut self, packets: usize) {
        self.time.read_clock();
        self.inbox.set_producer();
        self.network.renew_probe_filter(&mut self.observation.tracer);
        self.quota.begin_pass(packets);
    }

    /// Handles arrivals from shared memory. Does not read the clock, as the events need no time.
    pub(in crate::engine) fn handle_local(&mut self, arrivals: &mut Arrivals) {
        self.inbox.set_producer();
        if self.local_context().is_some_and(|mut local| local.handle(arrivals)) {
            self.transmit();
        }
    }

    /// Ends a pass that has received from shared memory alone.
    pub(in crate::engine) fn end_local_pass(&mut self) {
        self.inbox.end_pass(true, self.time.now());
    }

    /// Hands the packets of the last receive to the protocol. Returns
    /// the bytes of the packets.
    pub(in crate::engine) fn handle_packets(
        &mut self,
        receive: &mut dyn ReceiveHalf,
        packets: usize,
        stamps: ReceiveStamps,
    ) -> usize {
        if packets == 0 {
            return 0;
        }
        let now = self.time.now();
        self.observation.tracer.batch_received(stamps.began, stamps.ended, packets);
        let cpu = self.observation.cpu().begin(CpuPart::Protocol);
        self.inbox.note_poll(now);
        let room = self.inbox.room(now);
        let bytes = self.network.handle_packets(receive, now, room, &mut self.observation);
        self.observation.cpu().end(CpuPart::Protocol, cpu);
        bytes
    }

    /// Returns the time of this pass.
    pub(in crate::engine) const fn now(&self) -> Instant {
        self.time.now()
    }

    /// Reports that the socket had no unread packets at `since`, if that is known.
    pub(in crate::engine) fn begin_reading(&mut self, since: Option<Instant>) {
        if let Some(since) = since {
            self.network.transport_mut().begin_reading(since);
        }
    }

    /// Reports that the system has dropped packets before this pass.
    pub(in crate::engine) fn handle_overflow(&mut self) {
        self.network.transport_mut().handle_overflow(self.time.now());
    }

    /// Reports that all packets up to `read_up_to` have been handled, if that is known.
    pub(in crate::engine) fn finish_reading(&mut self, read_up_to: Option<Instant>) {
        if let Some(read_up_to) = read_up_to {
            self.network.transport_mut().finish_reading(read_up_to);
        }
    }

    /// Forwards an ICMP or socket error for an earlier packet to the protocol.
    pub(in crate::engine) fn handle_report(&mut self, report: &NetworkReport<'_>) {
        let now = self.time.read_clock();
        self.observation.counters.reports += 1;
        self.network.handle_report(report, now);
    }

    /// Handles due timers.
    pub(in crate::engine) fn handle_timers(&mut self) {
        let now = self.time.now();
        self.handle_call_timeout(now);
        if self.driver_due() <= now {
            self.network.handle_driver_timeout();
        }
        if self.network.handle_timers(now, &mut self.observation.tracer) {
            self.quota.spend(Work::Timers, usize::MAX);
        }
        if let Some(mut local) = self.local_context() {
            local.handle_timers();
        }
    }

    /// Makes the messages of this pass visible, up to the pass's quota; the rest follows in the
    /// next pass, before anything else is received. Stops receiving if too many requests wait.
    /// `drained`: the socket is empty.
    pub(in crate::engine) fn deliver_in_pass(&mut self, drained: bool) {
        let quota = self.quota.left(Work::Deliveries);
        self.deliver_within(quota);
        if self.quota.more_to_deliver() {
            self.quota.spend(Work::Deliveries, quota);
        }
        self.inbox.end_pass(drained, self.time.now());
    }

    /// Makes messages visible. [`Core::assign`] then notifies waiters.
    #[inline]
    pub(super) fn deliver(&mut self) {
        // Most commands leave no event.
        if self.network.transport().has_events() {
            self.deliver_within(usize::MAX);
        } else {
            self.quota.set_more_to_deliver(false);
        }
    }

    fn deliver_within(&mut self, quota: usize) {
        let more = self.delivery().deliver(quota);
        self.quota.set_more_to_deliver(more);
    }

    /// Notifies waiters that have a message, the newest first, and waiters for all
    /// acknowledgements.
    pub(in crate::engine) fn assign(&mut self) {
        self.observation.counters.handoffs += self.inbox.assign(&mut self.wakes);
        if !self.drain.is_empty() && self.is_drained() {
            self.drain.notify(&mut self.wakes);
        }
    }

    /// Completes work that the quotas have deferred, as there may not be another pass soon.
    pub(in crate::engine) fn finish(&mut self) {
        if self.quota.more_to_send() {
            self.transmit();
        }
        if self.quota.more_to_deliver() {
            self.deliver();
            self.assign();
        }
    }

    /// Passes the poll role of the calling thread to a follower, or frees it.
    pub(in crate::engine) fn pass_role(&mut self) {
        self.finish();
        let passed = self.polling.pass_role(&mut self.wakes);
        self.observation.counters.turn_passes += u64::from(passed);
    }

    /// Frees the poll role of the background poller, which watches the shard until `until`. No
    /// thread waits for the role.
    pub(in crate::engine) fn watch_until(&mut self, until: Instant) {
        self.polling.watch_until(until, &mut self.wakes);
    }

    /// Returns whether a quota ended the last pass before everything was done.
    pub(in crate::engine) const fn has_more_to_do(&self) -> bool {
        self.quota.more_to_send() || self.quota.more_to_deliver()
    }

    /// Returns whether a quota ended the last delivery: the next pass must not receive before it
    /// has made up for that.
    pub(in crate::engine) const fn has_more_to_deliver(&self) -> bool {
        self.quota.more_to_deliver()
    }

    /// Returns whether as much waits for the application as may be received.
    pub(in crate::engine) fn is_receive_full(&self) -> bool {
        self.transport().is_receive_full()
    }

    /// Returns when the loop must take the core lock even if no packet arrives: at the next timer,
    /// or at once if a check is requested or packets wait for room in the socket.
    pub(in crate::engine) fn next_due(&self) -> Instant {
        let is_full = self.is_socket_full() && !self.polling.sleeps_for_room();
        if self.polling.is_check_requested() || self.has_more_to_do() || is_full {
            return Instant::ZERO;
        }
        let due =
            self.network.next_timeout().min(self.call_timeout.next_due()).min(self.driver_due());
        self.local.as_ref().map_or(due, |local| due.min(local.next_due()))
    }

    /// Returns when the driver's next timer is due.
    fn driver_due(&self) -> Instant {
        let due = self.network.driver_timeout();
        due.map_or(Instant::NEVER, |due| self.time.clock().convert(due))
    }

    /// Returns whether the socket is full.
    pub(in crate::engine) fn is_socket_full(&self) -> bool {
        !self.network.has_room()
    }

    /// Records the end of a poll, started at `began`, for a thread that had found a request.
    pub(in crate::engine) fn end_poll(&mut self, began: Instant) {
        let now = self.time.read_clock();
        self.inbox.note_poll_end(began, now);
    }

    /// Returns whether requests wait and the network has not been polled for a while; then it
    /// counts as polled.
    pub(in crate::engine) fn take_poll_due(&mut self) -> bool {
        if self.cork.holds_messages() && self.cork.is_corked() {
            // Commands that a cork holds back do not read the clock.
            self.time.read_clock();
        }
        self.inbox.take_poll_due(self.time.now())
    }
}
