//! The row of RPCs whose peer's silence is watched, in the order in which they are checked.
//!
//! Each RPC that waits for its peer is checked once per period. As the period is the same for all, the row stays sorted if RPCs are
//! appended at its end: watching an RPC and forgetting it costs a write or two, and visits no other RPC (ADR 3, ADR 72).
//!
//! Checks are due at whole ticks, an eighth of a period, so that those of many RPCs coincide: a check costs nanoseconds, but waking
//! a thread for it microseconds. (With 100 RPCs waiting at each of 8 hosts, single checks woke threads 48,000 times a second:
//! docs/perf-log.md 2026-11-20.) Ticks are counted from the instant at which watching began (TIME-16): hosts whose clocks agree
//! would otherwise ask in the same instant, all the time, and a packet that their answers push out of a shallow switch would be
//! pushed out each time.
//!
//! # Invariants
//!
//! - **SILENCE-1** The row holds exactly the RPCs whose place is set, each at its place, and gaps; neither end is a gap.
//! - **SILENCE-2** Due times do not decrease along the row, also if the period becomes shorter.
//! - **SILENCE-3** There are at most [`GAPS`] gaps for each RPC, and [`MORE_GAPS`] more.

use crate::rpc::{RpcKey, Rpcs};
use crate::time::Instant;
use std::collections::VecDeque;

/// Ticks of a period.
const TICKS: u64 = 8;
/// Gaps for each RPC. Chosen by us: closing them visits each RPC, for as many RPCs that have ended.
const GAPS: usize = 3;
const MORE_GAPS: usize = 64;

/// The row of RPCs that are watched.
#[derive(Debug)]
pub(crate) struct Silence {
    /// When each is checked; a gap where one was forgotten.
    row: VecDeque<(Instant, Option<RpcKey>)>,
    /// The place of the first one. Places are counted from 1 on; 0 in an RPC says that it is not watched.
    first: u64,
    /// Nanoseconds between two checks of an RPC.
    period: u64,
    /// A tick: when the first RPC of an empty row was watched.
    origin: Instant,
    len: usize,
}

impl Silence {
    pub(crate) const fn new(period: u64) -> Self {
        Self { row: VecDeque::new(), first: 1, period, origin: Instant::ZERO, len: 0 }
    }

    /// Sets the nanoseconds between two checks of an RPC.
    pub(crate) const fn set_period(&mut self, period: u64) {
        self.period = period;
    }

    /// Schedules a check of `rpc` one period from now; if it is watched already, the earlier check is cancelled.
    pub(crate) fn watch(&mut self, rpcs: &mut Rpcs, rpc: RpcKey, now: Instant) {
        self.forget(rpcs, rpc);
        let tick = (self.period / TICKS).max(1);
        if self.len == 0 {
            self.origin = now;
        }
        let since = now.plus(self.period).since(self.origin).next_multiple_of(tick);
        let last = self.row.back().map_or(Instant::ZERO, |(due, _)| *due);
        let due = self.origin.plus(since).max(last);
        if self.row.len() > (GAPS + 1) * self.len + MORE_GAPS {
            self.close_gaps(rpcs);
        }
        rpcs[rpc].silence_place = self.first + self.row.len() as u64;
        self.row.push_back((due, Some(rpc)));
        self.len += 1;
    }

    #[cold]
    fn close_gaps(&mut self, rpcs: &mut Rpcs) {
        self.row.retain(|(_, rpc)| rpc.is_some());
        for (place, rpc) in (self.first..).zip(self.row.iter().filter_map(|(_, rpc)| *rpc)) {
            rpcs[rpc].silence_place = place;
        }
    }

    /// Stops watching `rpc`.
    pub(crate) fn forget(&mut self, rpcs: &mut Rpcs, rpc: RpcKey) {
        let place = std::mem::take(&mut rpcs[rpc].silence_place);
        if place == 0 {
            return;
        }
        let removed = self.row[(place - self.first) as usize].1.take();
        debug_assert_eq!(removed, Some(rpc), "SILENCE-1");
        self.len -= 1;
        while let Some((_, None)) = self.row.front() {
            self.row.pop_front();
            self.first += 1;
        }
        while let Some((_, None)) = self.row.back() {
            self.row.pop_back();
        }
    }

    /// When the next check is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.row.front().map(|(due, _)| *due)
    }

    /// An RPC whose check is due, and the nanoseconds by which the check is late; the RPC stays first until it is watched
    /// anew or forgotten.
    pub(crate) fn due(&self, now: Instant) -> Option<(RpcKey, u64)> {
        let (due, rpc) = *self.row.front()?;
        rpc.filter(|_| due <= now).map(|rpc| (rpc, now.since(due)))
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}
