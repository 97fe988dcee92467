//! The shared-memory half of the receive path.

use crate::engine::waiting::{Signal, WakeConditions, WakeReasons};
use crate::refusal::warn_about_descriptors;
use apus_driver::ReceiveHalf;
use apus_local::{Arrivals, ConnectError, Local, PollBalance, PollOutcome, PollSet, ReceiveQuota};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Receives from the pairs with local peers.
pub(super) struct LocalReceiver {
    local: Arc<Local>,
    poll_set: PollSet,
    /// Arrivals of the last receive.
    arrivals: Arrivals,
    balance: PollBalance,
    /// Whether as much waits for the application as may be received.
    full: bool,
    /// Since when the leader spins for the rest of a message.
    lingers_since: Option<Instant>,
    /// The system refused a call: the sockets of local peers are not polled until then.
    muted_until: Option<Instant>,
    /// Whether the driver and the signal are watched together with the pairs' sockets; `None`: not
    /// tried yet.
    watches_all: Option<bool>,
}

/// Numbers of the descriptors that are watched together with the pairs' sockets.
const DRIVER: u32 = 0;
const SIGNAL: u32 = 1;

const MILLISECOND: u64 = 1_000_000;

/// Longest time to spin for the rest of a long message. Chosen by us: a chunk of 32 KiB is copied
/// in 3 µs, a wake-up takes 20 µs and more.
const LINGER: Duration = Duration::from_micros(20);

/// Pause of polling the sockets of local peers after the system has refused a call. Chosen by us:
/// the missing resource may be available again.
const MUTED: Duration = Duration::from_millis(100);

impl LocalReceiver {
    pub(super) fn new(local: Arc<Local>) -> Self {
        Self {
            local,
            poll_set: PollSet::default(),
            arrivals: Arrivals::default(),
            balance: PollBalance::default(),
            full: false,
            lingers_since: None,
            muted_until: None,
            watches_all: None,
        }
    }

    /// Returns whether to poll the network in this pass. Polls the sockets of local peers at
    /// intervals.
    pub(super) fn is_network_due(&mut self) -> bool {
        let due = self.balance.take_network_due();
        if due && self.balance.take_sockets_due() {
            self.poll_sockets();
        }
        due
    }

    /// Has the network polled in the next pass.
    pub(super) const fn expect_network(&mut self) {
        self.balance.expect_network();
    }

    /// Receives from the pairs. Returns the number of events to be handled.
    pub(super) fn receive(&mut self) -> usize {
        if self.full {
            return 0;
        }
        let Self { local, poll_set, arrivals, balance, .. } = self;
        let records = local.receive_into(poll_set, ReceiveQuota::default(), arrivals);
        balance.note_records(records);
        if records > 0 {
            self.lingers_since = None;
        }
        self.arrivals.len()
    }

    /// Returns the received events.
    pub(super) const fn arrivals(&mut self) -> &mut Arrivals {
        &mut self.arrivals
    }

    /// Sets whether as much waits for the application as may be received.
    pub(super) const fn set_full(&mut self, full: bool) {
        self.full = full;
    }

    /// Returns whether to spin a little instead of sleeping: a part of a long message has been
    /// copied, and the peer is busy copying the rest. Otherwise each chunk would cost a wake-up on
    /// both sides.
    pub(super) fn lingers(&mut self) -> bool {
        if self.full || !self.poll_set.has_partial_message() {
            self.lingers_since = None;
            return false;
        }
        let now = Instant::now();
        std::hint::spin_loop();
        now.duration_since(*self.lingers_since.get_or_insert(now)) < LINGER
    }

    /// Announces to local peers that this side is about to sleep. Returns `false` if a message has
    /// arrived: then it must not sleep.
    pub(super) fn prepare_to_sleep(&mut self) -> bool {
        let prepared = self.full || self.local.prepare_to_sleep(&mut self.poll_set);
        if !prepared {
            self.local.finish_sleep(&self.poll_set);
        }
        prepared
    }

    /// Announces to local peers that this side is awake. `rung`: the doorbell has rung and its
    /// sockets have not been polled.
    pub(super) fn finish_sleep(&mut self, rung: bool) {
        self.local.finish_sleep(&self.poll_set);
        if rung {
            self.poll_sockets();
        }
    }

    /// Sleeps on the driver, the signal and all pairs in one system call, which costs less than a
    /// call that watches the doorbell if a pair rings. Returns `None` if that is not possible:
    /// there is no pair, the driver has two descriptors, or the conditions are other than whole
    /// milliseconds and a readable driver.
    pub(super) fn sleep(
        &mut self,
        driver: &dyn ReceiveHalf,
        signal: &Signal,
        conditions: WakeConditions<'_>,
        nanos: Option<u64>,
    ) -> Option<WakeReasons> {
        let is_possible = conditions.readable
            && !conditions.writable
            && conditions.companions.is_empty()
            && driver.bulk().is_none()
            && self.poll_set.has_pairs();
        if !is_possible || nanos.is_some_and(|nanos| nanos < MILLISECOND) {
            return None;
        }
        // A task sleeps in its runtime, which would be woken by these descriptors twice: they are
        // registered when a thread sleeps for the first time.
        let watch =
            || self.local.watch(driver, DRIVER).is_ok() && self.local.watch(signal, SIGNAL).is_ok();
        if !*self.watches_all.get_or_insert_with(watch) {
            return None;
        }
        // Rounded down: a thread that wakes too early sleeps again.
        let time = nanos.map(|nanos| Duration::from_millis(nanos / MILLISECOND));
        let outcome = self.poll_sockets_for(time)?;
        let has = |number: u32| outcome.companions >> number & 1 == 1;
        Some(WakeReasons { driver: has(DRIVER), signal: has(SIGNAL), ..WakeReasons::default() })
    }

    /// Returns the descriptor that becomes readable when a local peer rings or a client connects;
    /// `None` while the sockets of local peers are not polled.
    pub(super) fn doorbell(&mut self) -> Option<BorrowedFd<'_>> {
        self.muted_until = self.muted_until.filter(|until| Instant::now() < *until);
        self.muted_until.is_none().then(|| self.local.as_fd())
    }

    /// Accepts clients, finishes connections, and finds peers that were killed.
    fn poll_sockets(&mut self) {
        self.poll_sockets_for(Some(Duration::ZERO));
    }

    /// Polls the sockets of local peers for up to `time`. Returns `None` if the system has refused.
    fn poll_sockets_for(&mut self, time: Option<Duration>) -> Option<PollOutcome> {
        if self.muted_until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let outcome = self.local.poll_sockets(&mut self.poll_set, time);
        if let Err(ConnectError::System { source, .. }) = &outcome {
            warn_about_descriptors(source);
        }
        let outcome = outcome.ok();
        self.muted_until = match outcome {
            Some(_) => None,
            None => Instant::now().checked_add(MUTED),
        };
        outcome
    }

    /// Notes `records` for a test.
    #[cfg(all(test, not(apus_loom)))]
    pub(super) fn note_records(&mut self, records: usize) {
        self.balance.note_records(records);
    }
}
