//! Transmission: decides when messages leave, and which are held back.
//!
//! Keeps ENGINE-4 of [`engine`](crate::engine): [`Core::after_command`] sends or holds back, and
//! [`Core::transmit_held_back`] makes up for that.

use super::root::Core;
use crate::engine::cpu::CpuPart;
#[cfg(feature = "tokio")]
use crate::engine::handoff::TaskPlace;
use crate::engine::handoff::WakeList;
use crate::engine::paths::local::{ConnectStart, LocalState};
use crate::error::Closed;
use crate::overload::Work;
use apus_proto::Instant;
use apus_trace::recorder;
use std::io;
use std::net::SocketAddr;

/// Work of a thread after it has released the core lock.
pub(crate) struct UnlockActions {
    /// Waiters that were notified and may sleep.
    pub(crate) wakes: Option<WakeList>,
    /// Addresses to connect to through shared memory.
    pub(crate) connects: Option<Vec<SocketAddr>>,
}

impl Core {
    /// After a command: makes its events visible, and sends its packets unless a cork holds them
    /// back, or the calling thread is about to run the task that sends them.
    pub(super) fn after_command(&mut self) {
        self.deliver();
        if self.cork.is_corked() || self.cork.is_deferred() {
            self.hold_back();
        } else {
            self.transmit();
        }
    }

    /// After a reply. While too many requests wait for a thread of the application, the reply
    /// leaves when the network is polled next, together with others (BACKLOG-3).
    pub(super) fn after_reply(&mut self) {
        if self.holds_replies() {
            self.observation.counters.held_replies += 1;
            self.deliver();
            self.hold_back();
        } else {
            self.after_command();
        }
    }

    /// Returns whether replies wait for the next poll of the network (BACKLOG-3).
    fn holds_replies(&self) -> bool {
        self.polling.is_free() && self.inbox.holds_replies()
    }

    /// Ends the calls of a batch: sends them, unless they are held back as a single one would be.
    pub(crate) fn end_batch(&mut self) {
        self.end_batch_and(false);
    }

    /// Ends the replies of a batch: sends them, unless they are held back as a single one would be.
    pub(crate) fn end_reply_batch(&mut self) {
        self.end_batch_and(self.holds_replies());
    }

    fn end_batch_and(&mut self, hold_back: bool) {
        self.cork.remove();
        if self.cork.is_corked() {
            return;
        }
        if hold_back || self.cork.is_deferred() {
            // Messages through shared memory wait for a cork alone.
            self.flush_local();
        } else {
            self.transmit_held_back();
        }
    }

    fn hold_back(&mut self) {
        if self.cork.hold_back(self.time.now()) {
            self.transmit_held_back();
        }
    }

    /// Called before a task waits: sends messages held back, unless the task of the loop does so
    /// next.
    #[cfg(feature = "tokio")]
    pub(in crate::engine) fn before_task_waits(&mut self) {
        if !self.cork.is_deferred() || self.cork.is_corked() {
            self.transmit_held_back();
        }
    }

    /// Starts a turn of the task that runs the loop: sends messages that other tasks have left to
    /// it. Until the task sleeps, tasks of its runtime on this thread leave their packets to it.
    /// Returns whether there was a message to send.
    #[cfg(feature = "tokio")]
    #[must_use]
    pub(in crate::engine) fn begin_turn(&mut self) -> bool {
        self.cork.set_sender(TaskPlace::current());
        let holds = self.cork.holds_messages() && !self.cork.is_corked();
        if holds {
            self.transmit_held_back();
        }
        holds
    }

    /// Before the task that runs the loop sleeps.
    #[cfg(feature = "tokio")]
    pub(in crate::engine) fn end_turns(&mut self) {
        self.cork.set_sender(None);
    }

    /// Sends messages that are held back. Calls whose deadlines have passed end instead.
    pub(crate) fn transmit_held_back(&mut self) {
        self.flush_local();
        if self.cork.holds_messages() {
            let now = self.time.read_clock();
            if self.network.next_timeout() <= now {
                self.handle_timers();
                self.deliver();
            }
            self.transmit();
        }
    }

    pub(super) fn flush_local(&mut self) {
        if self.local.as_ref().is_some_and(LocalState::holds_calls_with_deadlines) {
            self.time.read_clock();
            if let Some(mut local) = self.local_context() {
                local.handle_timers();
            }
        }
        if let Some(local) = &mut self.local {
            local.flush(&mut self.calls);
        }
    }

    /// Sends all packets that may leave. If the driver has failed, the endpoint is closed.
    pub(super) fn transmit(&mut self) {
        self.transmit_within(usize::MAX);
    }

    /// Sends packets that may leave, up to about the pass's quota; the rest waits for the next
    /// pass.
    pub(in crate::engine) fn transmit_in_pass(&mut self) {
        self.transmit_within(self.quota.left(Work::Transmit));
        if self.quota.more_to_send() {
            self.quota.spend(Work::Transmit, usize::MAX);
        }
    }

    fn transmit_within(&mut self, quota: usize) {
        self.cork.clear_held_back();
        let began = self.observation.cpu().begin(CpuPart::Send);
        let sent = self.try_transmit(quota);
        self.observation.cpu().end(CpuPart::Send, began);
        if let Err(error) = sent {
            self.close(Closed::Driver(error.into()));
        }
    }

    /// Sends packets that may leave, up to about `quota` bytes of payload.
    ///
    /// # Errors
    ///
    /// The driver's: it is broken.
    pub(super) fn try_transmit(&mut self, quota: usize) -> io::Result<()> {
        if self.observation.tracer.take_freezes_peers() {
            self.ask_peers_to_freeze();
        }
        let tracer = &mut self.observation.tracer;
        let sent = self.network.transmit(quota, self.time.now(), tracer);
        self.quota.set_more_to_send(matches!(sent, Ok(true)));
        sent.map(drop)
    }

    /// Requests a freeze of all peers' traces, and freezes the trace of this process. Returns the
    /// number of peers.
    pub(crate) fn freeze_peers(&mut self) -> usize {
        self.time.read_clock();
        let count = self.ask_peers_to_freeze();
        self.transmit();
        recorder::freeze(recorder::FreezeReason::Demand);
        count
    }

    /// Asks all peers to freeze their traces, over the network and through shared memory. Returns
    /// their number.
    fn ask_peers_to_freeze(&mut self) -> usize {
        let tracer = &mut self.observation.tracer;
        let local = self.local.as_ref().map_or(0, |local| local.freeze_peers(tracer));
        let now = self.time.now();
        self.network.transport_mut().freeze_peers(now) + local
    }

    /// Returns whether there is more to do when the core lock is released than to release it.
    pub(in crate::engine) fn has_unlock_actions(&self) -> bool {
        !self.wakes.is_empty()
            || self.host.is_some()
            || self.local.as_ref().is_some_and(LocalState::has_connects)
    }

    /// Collects the work that follows the release of the core lock.
    pub(in crate::engine) fn take_unlock_actions(&mut self) -> UnlockActions {
        let wakes = self.wakes.take();
        self.observation.counters.wakeups += wakes.as_ref().map_or(0, |wakes| wakes.len() as u64);
        let connects = self.local.as_mut().and_then(LocalState::take_connects);
        UnlockActions { wakes, connects }
    }

    /// Returns whether the leader sleeps for longer than until `due`, and must be woken; counts
    /// that.
    pub(in crate::engine) fn must_wake_leader(&mut self, due: Instant) -> bool {
        let must_wake = self.polling.must_wake_leader(due);
        self.observation.counters.kicks += u64::from(must_wake);
        must_wake
    }

    /// Records the start of a connection to a peer through shared memory.
    pub(in crate::engine) fn connecting(
        &mut self,
        peer: SocketAddr,
        start: ConnectStart,
        now: Instant,
    ) {
        if matches!(start, ConnectStart::Impostor) {
            self.observation.counters.local_impostors += 1;
        }
        if let Some(local) = &mut self.local {
            local.connecting(peer, start, now);
        }
    }
}
