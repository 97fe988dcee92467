//! The list of RPCs whose peer's silence is watched, in the order in which they are checked.
//!
//! Each RPC that waits for its peer is checked once per period. As the period is the same for all,
//! the list stays sorted if RPCs are appended at its end: starting to watch, stopping and watching
//! again cost a few pointer changes, however many RPCs are live. (The kernel scans all RPCs every
//! millisecond, HM `homa_timer.c` `homa_timer`; a heap would cost a logarithm per RPC.)
//!
//! Checks are due at whole ticks, an eighth of a period, so that those of many RPCs coincide: a check
//! costs nanoseconds, but waking a thread for it microseconds. (With 100 RPCs waiting at each of 8
//! hosts, single checks woke threads 48,000 times a second: docs/perf-log.md 2026-11-20.) Ticks are counted from the instant at
//! which watching began (TIME-16): hosts whose clocks agree would otherwise ask in the same instant, all the time, and a
//! packet that their answers push out of a shallow switch would be pushed out each time.
//!
//! # Invariants
//!
//! - **SILENCE-1** The list is linked in both directions and holds exactly the RPCs whose link is set.
//! - **SILENCE-2** Due times do not decrease along the list, also if the period becomes shorter.

use crate::rpc::{RpcKey, Rpcs, SilenceLink};
use crate::time::Instant;

/// Ticks of a period.
const TICKS: u64 = 8;

/// The list of RPCs that are watched.
#[derive(Debug)]
pub(crate) struct Silence {
    first: Option<RpcKey>,
    last: Option<RpcKey>,
    /// Nanoseconds between two checks of an RPC.
    period: u64,
    /// A tick: when the first RPC of an empty list was watched.
    origin: Instant,
    /// The tick at which the RPC was due that was watched last: a division less for all that follow within it.
    tick: Instant,
    len: usize,
}

impl Silence {
    pub(crate) const fn new(period: u64) -> Self {
        Self { first: None, last: None, period, origin: Instant::ZERO, tick: Instant::ZERO, len: 0 }
    }

    /// Sets the nanoseconds between two checks of an RPC.
    pub(crate) const fn set_period(&mut self, period: u64) {
        self.period = period;
        self.tick = Instant::ZERO;
    }

    /// Schedules a check of `rpc` one period from now; if it is watched already, the earlier check is cancelled.
    #[inline(always)]
    pub(crate) fn watch(&mut self, rpcs: &mut Rpcs, rpc: RpcKey, now: Instant) {
        self.forget(rpcs, rpc);
        if self.len == 0 {
            (self.origin, self.tick) = (now, Instant::ZERO);
        }
        let (at, length) = (now.plus(self.period), (self.period / TICKS).max(1));
        if at > self.tick || self.tick.since(at) >= length {
            self.tick = self.origin.plus(at.since(self.origin).next_multiple_of(length));
        }
        let mut due = self.tick;
        match self.last {
            Some(last) => {
                let last = &mut rpcs[last].timer;
                last.after = Some(rpc);
                due = due.max(last.due);
            }
            None => self.first = Some(rpc),
        }
        rpcs[rpc].timer = SilenceLink { due, before: self.last, after: None };
        self.last = Some(rpc);
        self.len += 1;
    }

    /// Stops watching `rpc`.
    #[inline(always)]
    pub(crate) fn forget(&mut self, rpcs: &mut Rpcs, rpc: RpcKey) {
        let link = std::mem::take(&mut rpcs[rpc].timer);
        self.unlink(rpcs, link);
    }

    /// Takes the RPC with this link out, if it is watched.
    #[inline(always)]
    pub(crate) fn unlink(&mut self, rpcs: &mut Rpcs, link: SilenceLink) {
        if link.due == Instant::ZERO {
            return;
        }
        match link.before {
            Some(before) => rpcs[before].timer.after = link.after,
            None => self.first = link.after,
        }
        match link.after {
            Some(after) => rpcs[after].timer.before = link.before,
            None => self.last = link.before,
        }
        self.len -= 1;
    }

    /// When the next check is due.
    pub(crate) fn next(&self, rpcs: &Rpcs) -> Option<Instant> {
        self.first.map(|first| rpcs[first].timer.due)
    }

    /// An RPC whose check is due, and the nanoseconds by which the check is late; the RPC stays first until it is watched
    /// anew or forgotten.
    pub(crate) fn due(&self, rpcs: &Rpcs, now: Instant) -> Option<(RpcKey, u64)> {
        let first = self.first?;
        let due = rpcs[first].timer.due;
        (due <= now).then(|| (first, now.since(due)))
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}
