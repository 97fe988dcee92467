//! The bound on the number of requests that wait for the application.
//!
//! Normally there is none: a short burst, or a pause of some milliseconds, costs only its own time,
//! and a client may have a hundred outstanding requests. But if a queue that is never empty grows
//! until requests wait for [`ONSET_FACTOR`] times [`Backlog::MAX_QUEUEING`] (or the configured
//! time), the offered load exceeds the application's capacity, and waiting makes it worse: clients
//! give up, and their requests are served nevertheless. From then on the queue may hold the number
//! of requests that the application takes in that time. Further requests are refused at once
//! ([`Refusal::Overloaded`](apus_proto::Refusal::Overloaded)), the newest first.
//!
//! ```text
//!   pace     time / requests taken      over 10 ms of a queue that was never empty, and 16 requests
//!   bound    max_queueing / pace        16 requests at least
//!     200 x max_queueing of work waits  the bound takes effect
//!     75 % of bound                     receiving stops, for 125 µs at most, or until 25 % (Feedback)
//!     100 %                             new requests are refused (CAP-16)
//!     10 ms without being full          the bound is lifted
//! ```
//!
//! While the bound holds, the replies of an application that makes several between two polls of the
//! network leave with the next poll, together and with the refusals: each on its own would cost a
//! system call, about as much as a dozen refusals.
//!
//! While receiving is stopped, packets gather in the kernel's socket buffer. Received together they
//! cost a third of their separate cost, and the kernel drops the excess for free. The time limit
//! also bounds the delay of control packets and of the rest of started requests: they are in the
//! same socket.
//!
//! # Invariants
//!
//! - **BACKLOG-1** Without a bound no request is refused and receiving never stops. Below 320
//!   requests there is no bound.
//! - **BACKLOG-2** Time while the process was stopped does not count against the application: at
//!   most 1 ms counts between two observations.
//! - **BACKLOG-3** A reply is held back only if other requests wait and no thread has the poll
//!   role. It leaves at the latest when a thread requests a message and the last poll is 125 µs ago
//!   or no message is available; if no thread does, when the background poller takes the role; and
//!   before the endpoint is shut down.
//! - **BACKLOG-4** Polls of the network take at most half of the time of a thread that finds
//!   requests waiting.

use crate::overload::Feedback;
use apus_proto::Instant;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The length and the pace of the queue of requests. Lives under the core lock.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// In nanoseconds; `u64::MAX` stands for no limit.
    max_queueing: u64,
    /// `None` while the queue is empty.
    pace: Option<PaceMeter>,
    /// `None` while there is no bound.
    bounded: Option<Bounded>,
    feedback: Feedback,
    /// When the network is polled again although requests wait.
    next_poll: Instant,
    /// Passes in a row, since receiving stopped last, that left packets in the socket.
    full_passes: u32,
}

/// Observations of a queue since it was empty, or since its pace was measured last.
#[derive(Clone, Copy, Debug)]
struct PaceMeter {
    /// The last observation.
    observed: Instant,
    /// Nanoseconds that count, and the number of requests that the application took in them.
    time: u64,
    taken: u64,
}

#[derive(Clone, Copy, Debug)]
struct Bounded {
    bound: usize,
    /// Nanoseconds per request that the application takes.
    pace: u64,
    /// When the queue was last as long as the bound.
    full: Instant,
}

/// Measuring period of a queue's pace, and the time without a full queue that lifts the bound.
/// Chosen by us: long compared with a burst of packets, short compared with a client's timeout.
const WINDOW: Duration = Duration::from_millis(10);

/// Number of requests that a measurement needs; it takes longer than the window if there are fewer.
/// Also the smallest bound: whatever a request costs, 16 of them wait occasionally at 90 % load.
const MIN_REQUESTS: u64 = 16;

/// Multiple of `max_queueing` that requests must wait before the bound takes effect. Chosen by us:
/// 100 ms. At 80 % load, a process that pauses for 10 ms catches up within 40 ms, and refusing
/// would lose requests that are served late; no process catches up with four times its capacity.
const ONSET_FACTOR: u64 = 200;

/// Number of requests that must wait before the bound takes effect. Chosen by us: clients that keep
/// a number of requests outstanding may well want fewer to wait. More would reach `max_server_rpcs`
/// first if each request took only a microsecond.
const ONSET: RangeInclusive<u64> = 320..=16_384;

/// Longest time between two observations that counts (BACKLOG-2).
const MAX_COUNTED_GAP: Duration = Duration::from_millis(1);

/// Time after which the network is polled although requests wait, and the longest stop of
/// receiving. Chosen by us: a quarter of a request's maximum wait. At 100,000 packets a second a
/// dozen are received together, and the polls cost less than 1 % of the time.
const POLL_INTERVAL: Duration = Duration::from_micros(125);

/// Number of consecutive passes with packets left in the socket after which receiving may stop
/// nevertheless. Chosen by us: 64 packets in the UDP driver's batches of 16, the work that fits
/// between two polls. Unread packets grow stale there, but a core that only receives does not
/// serve.
pub(crate) const FULL_PASSES: u32 = 4;

impl Backlog {
    /// Expected wait of a request for a thread of the application while the bound is in effect.
    /// Chosen by us: a small multiple of the cost of waking a thread, and of the wait of 20 µs
    /// requests at 75 % load.
    pub(crate) const MAX_QUEUEING: Duration = Duration::from_micros(500);

    /// Returns the state of an empty queue. With [`Duration::MAX`] requests are never refused.
    pub(crate) fn new(max_queueing: Duration) -> Self {
        Self {
            max_queueing: u64::try_from(max_queueing.as_nanos()).unwrap_or(u64::MAX),
            pace: None,
            bounded: None,
            feedback: Feedback::new(usize::MAX).with_time_limit(POLL_INTERVAL),
            next_poll: Instant::ZERO + POLL_INTERVAL,
            full_passes: 0,
        }
    }

    /// Returns the number of further requests that may be accepted while `waiting` wait, and the
    /// bound.
    pub(crate) fn room(&mut self, waiting: usize, now: Instant) -> (usize, usize) {
        self.observe(waiting, now);
        let Some(Bounded { bound, .. }) = self.bounded else { return (usize::MAX, usize::MAX) };
        (bound.saturating_sub(waiting), bound)
    }

    /// Ends a pass of the loop that leaves `waiting` requests, and has emptied the socket if
    /// `drained`. Receiving may have to stop.
    pub(crate) fn pass(&mut self, waiting: usize, drained: bool, now: Instant) {
        let full = !drained && waiting > 0;
        self.full_passes = if full { self.full_passes.saturating_add(1) } else { 0 };
        if waiting == 0 {
            return;
        }
        self.pace.get_or_insert(PaceMeter { observed: now, time: 0, taken: 0 });
        if let Some(bounded) = &mut self.bounded {
            if waiting >= bounded.bound {
                bounded.full = now;
            }
            // Packets grow stale in the socket, so it is emptied first.
            if drained || self.full_passes >= FULL_PASSES {
                self.full_passes = 0;
                let _ = self.feedback.check(waiting, now);
            }
        }
    }

    /// Notes that the application took a request and `left` are left. Returns whether receiving,
    /// which had stopped, resumes.
    pub(crate) fn request_taken(&mut self, left: usize, now: Instant) -> bool {
        if left == 0 {
            self.pace = None;
        } else if let Some(pace) = &mut self.pace {
            pace.taken += 1;
        }
        self.feedback.until().is_some() && self.feedback.check(left, now)
    }

    /// Returns whether replies wait for the next poll of the network: `waiting` requests are left,
    /// and at this pace the poll follows after several of them.
    pub(crate) fn holds_replies(&self, waiting: usize) -> bool {
        waiting > 0
            && self
                .bounded
                .is_some_and(|bounded| 2 * bounded.pace <= POLL_INTERVAL.as_nanos() as u64)
    }

    /// Returns until when receiving is stopped, if it is.
    pub(crate) const fn stopped_until(&self) -> Option<Instant> {
        self.feedback.until()
    }

    /// Returns the number of times that receiving has stopped.
    pub(crate) const fn stops(&self) -> u64 {
        self.feedback.stops()
    }

    /// Returns whether a thread that finds a request must poll the network first: other requests
    /// wait there to be accepted or refused.
    pub(crate) fn is_poll_due(&self, now: Instant) -> bool {
        self.pace.is_some() && now >= self.next_poll
    }

    /// Notes that the network is polled.
    pub(crate) fn note_poll(&mut self, now: Instant) {
        self.next_poll = now + POLL_INTERVAL;
    }

    /// Notes that a poll for a thread that had found a request took until `now`. The next one
    /// follows after as much time at least: 128 datagrams of 64 KB take a millisecond, and the
    /// application would get one request between two such polls (BACKLOG-4).
    pub(crate) fn note_poll_end(&mut self, began: Instant, now: Instant) {
        self.next_poll = now + POLL_INTERVAL.max(now - began);
    }

    /// Measures how fast the application takes requests from a queue that is not empty, and sets or
    /// lifts the bound.
    fn observe(&mut self, waiting: usize, now: Instant) {
        if self.bounded.is_some_and(|bounded| now >= bounded.full + WINDOW) {
            self.set_bound(None);
        }
        let Some(meter) = &mut self.pace else { return };
        let gap = now.as_nanos().saturating_sub(meter.observed.as_nanos());
        meter.time += gap.min(MAX_COUNTED_GAP.as_nanos() as u64);
        meter.observed = now;
        let PaceMeter { time, taken, .. } = *meter;
        let is_measured = time >= WINDOW.as_nanos() as u64 && taken >= MIN_REQUESTS;
        if !is_measured || self.max_queueing == u64::MAX {
            return;
        }
        *meter = PaceMeter { observed: now, time: 0, taken: 0 };
        let pace = time / taken;
        let taken_in = |span: u64| {
            let requests = u128::from(taken) * u128::from(span) / u128::from(time);
            u64::try_from(requests).unwrap_or(u64::MAX)
        };
        let bound = taken_in(self.max_queueing).max(MIN_REQUESTS) as usize;
        let onset = taken_in(self.max_queueing.saturating_mul(ONSET_FACTOR));
        let onset = onset.clamp(*ONSET.start(), *ONSET.end()) as usize;
        match self.bounded {
            Some(Bounded { full, .. }) => self.set_bound(Some(Bounded { bound, pace, full })),
            None if waiting >= onset => {
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

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const INTERVAL: u64 = POLL_INTERVAL.as_nanos() as u64;
    /// Requests of 10 µs that wait for 100 ms.
    const TOO_LONG: usize = 10_000;

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    fn backlog() -> Backlog {
        Backlog::new(Backlog::MAX_QUEUEING)
    }

    /// Simulates a queue of constant length, with one request taken and one poll every `service`
    /// nanoseconds, between two times in milliseconds.
    fn hold(backlog: &mut Backlog, waiting: usize, service: u64, [from, to]: [u64; 2]) {
        for now in (from * MS..to * MS).step_by(service as usize) {
            let _ = backlog.room(waiting, at(now));
            backlog.pass(waiting, true, at(now));
            let _ = backlog.request_taken(waiting - 1, at(now));
        }
    }

    fn bound(backlog: &Backlog) -> Option<usize> {
        backlog.bounded.map(|bounded| bounded.bound)
    }

    #[test]
    fn too_long_a_queue_may_hold_what_is_taken_in_the_time_given() {
        let mut backlog = backlog();
        hold(&mut backlog, TOO_LONG, 10_000, [0, 11]);
        assert_eq!(bound(&backlog), Some(50), "500 µs of 10 µs each");
        let rooms = [0, 49, 50, 1_000].map(|waiting| backlog.room(waiting, at(11 * MS)).0);
        assert_eq!(rooms, [50, 1, 0, 0]);
    }

    #[test]
    fn a_queue_that_is_served_within_a_tenth_of_a_second_is_not_refused() {
        for (waiting, service) in [(319, MS), (2_499, 40_000), (9_999, 10_000), (16_383, 1_000)] {
            let mut backlog = backlog();
            hold(&mut backlog, waiting, service, [0, 100]);
            assert_eq!(bound(&backlog), None, "BACKLOG-1: {waiting} of {service} ns");
        }
    }

    #[test]
    fn a_fast_application_is_known_to_be_overloaded_before_the_endpoint_is_full() {
        let mut backlog = backlog();
        hold(&mut backlog, 16_384, 1_000, [0, 11]);
        assert_eq!(bound(&backlog), Some(500));
    }

    #[test]
    fn a_slow_application_has_sixteen_and_is_measured_for_longer() {
        let mut backlog = backlog();
        hold(&mut backlog, 400, MS, [0, 15]);
        assert_eq!(bound(&backlog), None, "too few were taken");
        hold(&mut backlog, 400, MS, [15, 18]);
        assert_eq!(bound(&backlog), Some(16));
    }

    #[test]
    fn the_bound_follows_the_pace_and_is_lifted_when_the_queue_is_not_full() {
        let mut backlog = backlog();
        hold(&mut backlog, TOO_LONG, 10_000, [0, 11]);
        hold(&mut backlog, 50, 20_000, [11, 32]);
        assert_eq!(bound(&backlog), Some(25));
        hold(&mut backlog, 24, 20_000, [32, 41]);
        assert!(bound(&backlog).is_some(), "not yet");
        hold(&mut backlog, 24, 20_000, [41, 43]);
        assert_eq!((bound(&backlog), backlog.room(999, at(43 * MS)).0), (None, usize::MAX));
        assert_eq!(backlog.stopped_until(), None);
    }

    #[test]
    fn a_process_that_did_not_run_is_not_slow() {
        let mut backlog = backlog();
        hold(&mut backlog, TOO_LONG, 10_000, [0, 1]);
        let _ = backlog.room(1_000, at(60 * MS));
        assert_eq!(bound(&backlog), None, "BACKLOG-2");
    }

    #[test]
    fn an_application_that_takes_nothing_is_not_known_to_be_slow() {
        let mut backlog = backlog();
        backlog.pass(1_000, true, at(0));
        for ms in 0..1_000 {
            assert_eq!(backlog.room(1_000, at(ms * MS)).0, usize::MAX);
        }
    }

    #[test]
    fn receiving_stops_at_three_quarters_and_goes_on_at_one() {
        let mut backlog = backlog();
        hold(&mut backlog, TOO_LONG, 10_000, [0, 11]);
        let now = at(12 * MS);
        assert!(backlog.request_taken(12, now), "it had stopped");
        backlog.pass(37, true, now);
        assert_eq!(backlog.stopped_until(), None, "37 of 50");
        backlog.pass(38, true, now);
        assert_eq!(backlog.stopped_until(), Some(now + POLL_INTERVAL));
        assert!(!backlog.request_taken(13, now));
        assert!(backlog.request_taken(12, now), "a quarter of 50");
        assert!(!backlog.request_taken(11, now), "it was said");
        assert!(backlog.stops() > 1);
    }

    #[test]
    fn a_socket_that_is_not_empty_is_read_on_but_not_forever() {
        let mut backlog = backlog();
        hold(&mut backlog, TOO_LONG, 10_000, [0, 11]);
        let now = at(12 * MS);
        assert!(backlog.request_taken(12, now), "it had stopped");
        for _ in 1..FULL_PASSES {
            backlog.pass(50, false, now);
            assert_eq!(backlog.stopped_until(), None);
        }
        backlog.pass(50, false, now);
        assert!(backlog.stopped_until().is_some());
        assert!(backlog.request_taken(12, now));
        for _ in 1..FULL_PASSES {
            backlog.pass(50, false, now);
        }
        backlog.pass(0, true, now);
        backlog.pass(50, false, now);
        assert_eq!(backlog.stopped_until(), None, "they are counted in a row");
    }

    #[test]
    fn replies_wait_if_the_bound_holds_and_several_are_made_between_two_polls() {
        let mut backlog = backlog();
        hold(&mut backlog, TOO_LONG, 10_000, [0, 9]);
        assert!(!backlog.holds_replies(1_000), "no bound");
        hold(&mut backlog, TOO_LONG, 10_000, [9, 11]);
        assert_eq!([0, 1].map(|left| backlog.holds_replies(left)), [false, true], "BACKLOG-3");
        hold(&mut backlog, 1_000, 63_000, [11, 32]);
        assert!(!backlog.holds_replies(1_000), "one reply in half an interval");
        hold(&mut backlog, 1_000, 62_000, [32, 53]);
        assert!(backlog.holds_replies(1_000));
    }

    #[test]
    fn without_a_time_limit_requests_are_never_refused() {
        let mut backlog = Backlog::new(Duration::MAX);
        hold(&mut backlog, 100_000, 10_000, [0, 50]);
        assert_eq!(backlog.room(100_000, at(50 * MS)).0, usize::MAX);
    }

    #[test]
    fn the_network_is_polled_at_intervals_while_requests_wait() {
        let mut backlog = backlog();
        backlog.note_poll(at(0));
        assert!(!backlog.is_poll_due(at(INTERVAL)), "nothing waits");
        backlog.pass(1, true, at(0));
        assert!(!backlog.is_poll_due(at(INTERVAL - 1)) && backlog.is_poll_due(at(INTERVAL)));
        backlog.note_poll(at(INTERVAL));
        assert!(!backlog.is_poll_due(at(INTERVAL)));
    }

    #[test]
    fn polls_take_at_most_half_of_the_time() {
        let mut backlog = backlog();
        backlog.pass(1, true, at(0));
        backlog.note_poll_end(at(MS), at(3 * MS));
        let due = [5 * MS - 1, 5 * MS].map(|now| backlog.is_poll_due(at(now)));
        assert_eq!(due, [false, true], "BACKLOG-4");
        backlog.note_poll_end(at(6 * MS), at(6 * MS + 1));
        let next = 6 * MS + 1 + INTERVAL;
        let due = [next - 1, next].map(|now| backlog.is_poll_due(at(now)));
        assert_eq!(due, [false, true], "a short one is not repeated earlier");
    }
}
