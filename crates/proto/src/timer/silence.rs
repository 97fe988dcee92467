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
//! - **SILENCE-3** When an RPC is added there are at most [`GAPS`] gaps for each, and [`MORE_GAPS`] more.

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
    /// The tick at which the RPC was due that was watched last: a division less for all that follow within it.
    tick: Instant,
    len: usize,
}

impl Silence {
    pub(crate) const fn new(period: u64) -> Self {
        let tick = Instant::ZERO;
        Self { row: VecDeque::new(), first: 1, period, origin: Instant::ZERO, tick, len: 0 }
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
        let last = self.row.back().map_or(Instant::ZERO, |(due, _)| *due);
        if self.row.len() > (GAPS + 1) * self.len + MORE_GAPS {
            self.close_gaps(rpcs);
        }
        rpcs[rpc].silence_place = self.first + self.row.len() as u64;
        self.row.push_back((self.tick.max(last), Some(rpc)));
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
    #[inline(always)]
    pub(crate) fn forget(&mut self, rpcs: &mut Rpcs, rpc: RpcKey) {
        let place = std::mem::take(&mut rpcs[rpc].silence_place);
        self.leave(rpc, place);
    }

    /// Takes `rpc` out of its place in the row, if it is watched.
    #[inline(always)]
    pub(crate) fn leave(&mut self, rpc: RpcKey, place: u64) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::peer::Peers;
    use crate::rpc::{NewRpc, Server, Side, Tables};
    use crate::secret::Secret;

    /// SILENCE-1, SILENCE-2, SILENCE-3; the model is a list.
    #[test]
    fn rpcs_are_checked_in_order_and_those_that_end_leave_few_gaps() {
        let peers = Peers::new(&Config::default(), 1, Secret::new(1));
        let mut tables = Tables::new(Rpcs::new(1), peers);
        let address = ([10, 0, 0, 1], 1).into();
        let (peer, _) = tables.peers.find_or_insert(address, Instant::ZERO).unwrap();
        let mut silence = Silence::new(800);
        let mut model: Vec<RpcKey> = Vec::new();
        let mut longest = 0;
        for i in 0..3_000 {
            let now = Instant::from_nanos(1_000 + i);
            let side = Side::Server(Server::incoming(1, None));
            let new = NewRpc { peer, id: 2 * i, peer_port: 1, side, selected: false };
            let rpc = tables.create(now, new);
            silence.watch(&mut tables.rpcs, rpc, now);
            model.push(rpc);
            let (row, others) = (silence.row.len() - 1, silence.len() - 1);
            assert!(row <= (GAPS + 1) * others + MORE_GAPS, "SILENCE-3: {row} for {others}");
            longest = longest.max(row);
            if i % 8 != 0 {
                let ended = model.remove(i as usize * 7 % model.len());
                silence.forget(&mut tables.rpcs, ended);
            }
            if i % 5 == 0 {
                let first = model.remove(0);
                silence.watch(&mut tables.rpcs, first, now);
                model.push(first);
            }
        }
        assert!(longest < 3_000 / 2, "gaps were closed");
        assert_eq!(silence.len(), model.len());
        for rpc in model {
            let due = silence.due(Instant::from_nanos(1_000_000));
            assert_eq!(due.map(|(first, _)| first), Some(rpc), "SILENCE-2");
            silence.forget(&mut tables.rpcs, rpc);
            silence.forget(&mut tables.rpcs, rpc);
        }
        assert_eq!((silence.next(), silence.row.len()), (None, 0));
    }
}
