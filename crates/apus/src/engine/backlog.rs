//! How many requests may wait for the application?
//!
//! As a rule any number: a burst costs nothing but its own time, and a client that keeps a hundred requests under
//! way knows why. But when a queue that is never empty gets so long that its requests wait for many times as long as
//! they are worth ([`Backlog::MAX_QUEUEING`], or what the endpoint was given in its place), then more is offered
//! than can be served, and waiting makes it worse: clients give up, and are served all the same. From then on the
//! queue may hold what the application takes in that time; what comes beyond is refused at once
//! ([`Refusal::Overloaded`](crate::Refusal::Overloaded)), the newest first.
//!
//! ```text
//!   pace     time / requests taken      over 10 ms of a queue that was never empty, and 16 requests
//!   bound    max_queueing / pace        16 requests at least
//!     20 x bound are waiting            the bound begins to hold
//!     75 % of bound                     receiving stops, for 125 µs at most, or until 25 % (Feedback)
//!     100 %                             requests that begin are refused (CAP-16)
//!     10 ms without being full          the bound is lifted
//! ```
//!
//! While the bound holds, the replies of an application that makes several between two looks at the network leave at
//! the next look, together and with the refusals: on its own each would cost a system call, about as much as a
//! dozen refusals.
//!
//! While receiving stops, packets gather in the kernel's socket buffer; taken together they cost a third of
//! what they cost one by one, and what does not fit there is dropped for nothing. Nothing that was accepted
//! waits for longer than that: control packets and the rest of requests that have begun are in the same socket.
//!
//! # Invariants
//!
//! - **B1** Without a bound nothing is refused and receiving never stops; below 320 requests there is none.
//! - **B2** Time during which nobody looked (the system had other plans) is not held against the application:
//!   between two looks at most 1 ms counts.
//! - **B3** A reply is held only if other requests wait and nobody has the turn. It leaves at the latest when a
//!   thread asks for something, and the last look is 125 µs ago or there is nothing for it; if nobody asks, with
//!   the keeper; and before the endpoint is shut down.

use crate::overload::Feedback;
use apus_proto::Instant;
use std::time::Duration;

/// The queue of requests, as far as its length and its pace are concerned. Lives under the core lock.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// In nanoseconds; the largest value is none.
    max_queueing: u64,
    /// While there are requests in the queue.
    standing: Option<Standing>,
    /// While the bound holds.
    bounded: Option<Bounded>,
    feedback: Feedback,
    /// The last look at the network.
    polled_at: Instant,
    /// Passes since then, or since receiving stopped, that left something in the socket.
    full_passes: u32,
}

/// What has been seen of a queue since it was empty, or since its pace was measured.
#[derive(Clone, Copy, Debug)]
struct Standing {
    /// Up to when it was slow_watch.
    seen: Instant,
    /// Nanoseconds that count, and requests taken in them.
    time: u64,
    taken: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bounded {
    bound: usize,
    /// Nanoseconds between two requests that are taken.
    pace: u64,
    /// When the queue was as long as that, lately.
    full: Instant,
}

/// Nanoseconds over which the pace of a queue is measured, and without being full after which its bound is
/// lifted. Ours: long against a burst of packets, short against a client's patience.
const WINDOW: u64 = 10_000_000;

/// Requests that must have been taken in this time, or it goes on. Also the least bound: whatever a request
/// costs, 16 of them wait at 90 % load now and then.
const LEAST: u64 = 16;

/// Bounds that must be waiting before the bound begins to hold. Ours: 10 ms of waiting, and 320 requests; fewer
/// are what clients that keep a number of requests under way mean to have waiting.
const PATIENCE: usize = 20;

/// Nanoseconds between two looks at most (B2).
const MAX_COUNTED_GAP: u64 = 1_000_000;

/// Nanoseconds after which the network is looked at although requests are waiting, and for which receiving stops
/// at most. Ours: a quarter of the time that a request may wait; at 100,000 packets a second a dozen are taken
/// at once, and a look costs less than 1 %.
const POLL_INTERVAL: u64 = 125_000;

/// Passes of the loop in a row that leave something in the socket, after which receiving may stop all the same.
/// Ours: 64 packets of the UDP driver's batches of 16, as much work as fits between two looks; what is left becomes
/// stale there, but a core that only reads serves nobody.
pub(super) const FULL_PASSES: u32 = 4;

impl Backlog {
    /// How long a request may wait for a thread of the application, as far as can be foreseen, once too many do.
    /// Ours: a small multiple of what waking a thread costs, and of what requests of 20 µs wait for at 75 % load.
    pub(crate) const MAX_QUEUEING: Duration = Duration::from_micros(500);

    /// An empty queue. [`Duration::MAX`] never refuses.
    pub(crate) fn new(max_queueing: Duration) -> Self {
        Self {
            max_queueing: u64::try_from(max_queueing.as_nanos()).unwrap_or(u64::MAX),
            standing: None,
            bounded: None,
            feedback: Feedback::new(usize::MAX).with_time_limit(POLL_INTERVAL),
            polled_at: Instant::ZERO,
            full_passes: 0,
        }
    }

    /// How many more requests may be accepted, while so many wait.
    pub(crate) fn room(&mut self, waiting: usize, now: Instant) -> usize {
        self.watch(waiting, now);
        self.bounded.map_or(usize::MAX, |bounded| bounded.bound.saturating_sub(waiting))
    }

    /// So many requests wait after a pass of the loop, which has emptied the socket or not: receiving may have to
    /// stop.
    pub(crate) fn pass(&mut self, waiting: usize, drained: bool, now: Instant) {
        let full = !drained && waiting > 0;
        self.full_passes = if full { self.full_passes.saturating_add(1) } else { 0 };
        if waiting == 0 {
            return;
        }
        self.standing.get_or_insert(Standing { seen: now, time: 0, taken: 0 });
        if let Some(bounded) = &mut self.bounded {
            if waiting >= bounded.bound {
                bounded.full = now;
            }
            // What is in the socket grows old there: it is taken first.
            if drained || self.full_passes >= FULL_PASSES {
                self.full_passes = 0;
                let _ = self.feedback.check(waiting, now);
            }
        }
    }

    /// The application took a request, and so many are left. Whether receiving, which had stopped, may go on.
    pub(crate) fn taken(&mut self, left: usize, now: Instant) -> bool {
        if left == 0 {
            self.standing = None;
        } else if let Some(standing) = &mut self.standing {
            standing.taken += 1;
        }
        self.feedback.until().is_some() && self.feedback.check(left, now)
    }

    /// Whether replies wait for the next look at the network: so many requests are left, and at this pace the look
    /// comes after a few of them.
    pub(crate) fn holds_replies(&self, waiting: usize) -> bool {
        waiting > 0 && self.bounded.is_some_and(|bounded| 2 * bounded.pace <= POLL_INTERVAL)
    }

    /// Until when receiving stops, if it does.
    pub(crate) const fn stopped_until(&self) -> Option<Instant> {
        self.feedback.until()
    }

    /// How often receiving has stopped.
    pub(crate) const fn stops(&self) -> u64 {
        self.feedback.stops()
    }

    /// Whether somebody who finds a request waiting should look at the network first: others wait there, for an
    /// answer or for a refusal.
    pub(crate) fn is_poll_due(&self, now: Instant) -> bool {
        self.standing.is_some() && (now - self.polled_at).as_nanos() >= u128::from(POLL_INTERVAL)
    }

    /// Somebody looks at the network.
    pub(crate) const fn note_poll(&mut self, now: Instant) {
        self.polled_at = now;
    }

    /// Measures how fast the application takes from a queue that is not empty, and sees whether it needs a bound.
    fn watch(&mut self, waiting: usize, now: Instant) {
        if self.bounded.is_some_and(|bounded| (now - bounded.full).as_nanos() >= u128::from(WINDOW))
        {
            self.set_bound(None);
        }
        let Some(standing) = &mut self.standing else { return };
        standing.time += ((now - standing.seen).as_nanos() as u64).min(MAX_COUNTED_GAP);
        standing.seen = now;
        let Standing { time, taken, .. } = *standing;
        if time < WINDOW || taken < LEAST || self.max_queueing == u64::MAX {
            return;
        }
        *standing = Standing { seen: now, time: 0, taken: 0 };
        let pace = time / taken;
        let bound = u128::from(taken) * u128::from(self.max_queueing) / u128::from(time);
        let bound = usize::try_from(bound.max(u128::from(LEAST))).unwrap_or(usize::MAX);
        match self.bounded {
            Some(Bounded { full, .. }) => self.set_bound(Some(Bounded { bound, pace, full })),
            None if waiting >= bound.saturating_mul(PATIENCE) => {
                self.set_bound(Some(Bounded { bound, pace, full: now }));
            }
            None => {}
        }
    }

    fn set_bound(&mut self, bounded: Option<Bounded>) {
        self.bounded = bounded;
        self.feedback.set_bound(bounded.map_or(usize::MAX, |bounded| bounded.bound));
    }
}

#[cfg(all(test, not(apus_loom)))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn backlog() -> Backlog {
        Backlog::new(Backlog::MAX_QUEUEING)
    }

    /// A queue that stays as long as it is, of which one request is taken every `service` nanoseconds, with a
    /// look each time; from one millisecond to another.
    fn stand(backlog: &mut Backlog, waiting: usize, service: u64, [from, to]: [u64; 2]) {
        for now in (from * MS..to * MS).step_by(service as usize) {
            let _ = backlog.room(waiting, at(now));
            backlog.pass(waiting, true, at(now));
            let _ = backlog.taken(waiting - 1, at(now));
        }
    }

    fn bound(backlog: &Backlog) -> Option<usize> {
        backlog.bounded.map(|bounded| bounded.bound)
    }

    #[test]
    fn too_long_a_queue_may_hold_what_is_taken_in_the_time_given() {
        let mut backlog = backlog();
        stand(&mut backlog, 1_000, 10_000, [0, 11]);
        assert_eq!(bound(&backlog), Some(50), "500 µs of 10 µs each");
        let rooms = [0, 49, 50, 1_000].map(|waiting| backlog.room(waiting, at(11 * MS)));
        assert_eq!(rooms, [50, 1, 0, 0]);
    }

    #[test]
    fn clients_that_keep_some_hundreds_under_way_are_not_refused() {
        for (waiting, service) in [(319, MS), (319, 40_000), (999, 10_000), (9_000, 1_000)] {
            let mut backlog = backlog();
            stand(&mut backlog, waiting, service, [0, 100]);
            assert_eq!(bound(&backlog), None, "B1: {waiting} of {service} ns");
        }
    }

    #[test]
    fn a_slow_application_has_sixteen_and_is_measured_for_longer() {
        let mut backlog = backlog();
        stand(&mut backlog, 400, MS, [0, 15]);
        assert_eq!(bound(&backlog), None, "too few were taken");
        stand(&mut backlog, 400, MS, [15, 18]);
        assert_eq!(bound(&backlog), Some(16));
    }

    #[test]
    fn the_bound_follows_the_pace_and_is_lifted_when_the_queue_is_not_full() {
        let mut backlog = backlog();
        stand(&mut backlog, 1_000, 10_000, [0, 11]);
        stand(&mut backlog, 50, 20_000, [11, 32]);
        assert_eq!(bound(&backlog), Some(25));
        stand(&mut backlog, 24, 20_000, [32, 41]);
        assert!(bound(&backlog).is_some(), "not yet");
        stand(&mut backlog, 24, 20_000, [41, 43]);
        assert_eq!((bound(&backlog), backlog.room(999, at(43 * MS))), (None, usize::MAX));
        assert_eq!(backlog.stopped_until(), None);
    }

    #[test]
    fn whoever_was_not_there_is_not_slow() {
        let mut backlog = backlog();
        stand(&mut backlog, 1_000, 10_000, [0, 1]);
        let _ = backlog.room(1_000, at(60 * MS));
        assert_eq!(bound(&backlog), None, "B2");
    }

    #[test]
    fn an_application_that_takes_nothing_is_not_known_to_be_slow() {
        let mut backlog = backlog();
        backlog.pass(1_000, true, at(0));
        for ms in 0..1_000 {
            assert_eq!(backlog.room(1_000, at(ms * MS)), usize::MAX);
        }
    }

    #[test]
    fn receiving_stops_at_three_quarters_and_goes_on_at_one() {
        let mut backlog = backlog();
        stand(&mut backlog, 1_000, 10_000, [0, 11]);
        let now = at(12 * MS);
        assert!(backlog.taken(12, now), "it had stopped");
        backlog.pass(37, true, now);
        assert_eq!(backlog.stopped_until(), None, "37 of 50");
        backlog.pass(38, true, now);
        assert_eq!(backlog.stopped_until(), Some(now + Duration::from_nanos(POLL_INTERVAL)));
        assert!(!backlog.taken(13, now));
        assert!(backlog.taken(12, now), "a quarter of 50");
        assert!(!backlog.taken(11, now), "it was said");
        assert!(backlog.stops() > 1);
    }

    #[test]
    fn a_socket_that_is_not_empty_is_read_on_but_not_for_ever() {
        let mut backlog = backlog();
        stand(&mut backlog, 1_000, 10_000, [0, 11]);
        let now = at(12 * MS);
        assert!(backlog.taken(12, now), "it had stopped");
        for _ in 1..FULL_PASSES {
            backlog.pass(50, false, now);
            assert_eq!(backlog.stopped_until(), None);
        }
        backlog.pass(50, false, now);
        assert!(backlog.stopped_until().is_some());
        assert!(backlog.taken(12, now));
        for _ in 1..FULL_PASSES {
            backlog.pass(50, false, now);
        }
        backlog.pass(0, true, now);
        backlog.pass(50, false, now);
        assert_eq!(backlog.stopped_until(), None, "they are counted in a row");
    }

    #[test]
    fn replies_wait_if_the_bound_holds_and_several_are_made_between_two_looks() {
        let mut backlog = backlog();
        stand(&mut backlog, 1_000, 10_000, [0, 9]);
        assert!(!backlog.holds_replies(1_000), "no bound");
        stand(&mut backlog, 1_000, 10_000, [9, 11]);
        assert_eq!([0, 1].map(|left| backlog.holds_replies(left)), [false, true], "B3");
        stand(&mut backlog, 1_000, 63_000, [11, 32]);
        assert!(!backlog.holds_replies(1_000), "one reply in half a look");
        stand(&mut backlog, 1_000, 62_000, [32, 53]);
        assert!(backlog.holds_replies(1_000));
    }

    #[test]
    fn who_has_all_the_time_in_the_world_is_never_refused() {
        let mut backlog = Backlog::new(Duration::MAX);
        stand(&mut backlog, 100_000, 10_000, [0, 50]);
        assert_eq!(backlog.room(100_000, at(50 * MS)), usize::MAX);
    }

    #[test]
    fn the_network_is_looked_at_now_and_then_while_requests_wait() {
        let mut backlog = backlog();
        backlog.note_poll(at(0));
        assert!(!backlog.is_poll_due(at(POLL_INTERVAL)), "nothing waits");
        backlog.pass(1, true, at(0));
        assert!(
            !backlog.is_poll_due(at(POLL_INTERVAL - 1)) && backlog.is_poll_due(at(POLL_INTERVAL))
        );
        backlog.note_poll(at(POLL_INTERVAL));
        assert!(!backlog.is_poll_due(at(POLL_INTERVAL)));
    }
}
