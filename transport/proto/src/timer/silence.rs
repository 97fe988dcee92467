//! RPCs watched for silence of their peer, in the order of their checks.
//!
//! Each RPC that waits for its peer is checked once per period. As the period is the same for all,
//! they stay sorted if each is appended at the end. An RPC that is forgotten leaves a stale
//! entry: forgetting it changes a counter (ADR 78).
//!
//! Checks are due at whole ticks, an eighth of a period, so that the checks of many RPCs coincide:
//! a check costs nanoseconds, but waking a thread for it microseconds. (With 100 RPCs waiting at
//! each of 8 hosts, single checks woke threads 48,000 times a second: lab/log 2026-11-20.)
//! Ticks are counted from the instant at which watching started (TIME-16): hosts whose clocks agree
//! would otherwise send RESENDs in the same instant, all the time, and a packet that their answers
//! push out of a shallow switch would be pushed out each time.
//!
//! # Invariants
//!
//! - **SILENCE-1** Exactly the RPCs whose place is set are watched, each at its place. Other
//!   entries are stale; the first tick has entries that are not, unless it is the last one.
//! - **SILENCE-2** Due times do not decrease from tick to tick, also if the period becomes shorter.
//! - **SILENCE-3** When an RPC is added there are at most [`STALE`] stale entries per RPC, and
//!   [`MORE_STALE`] more.

use crate::rpc::{Rpc, RpcKey, Rpcs, SilencePlace};
use crate::time::Instant;
use std::collections::VecDeque;

/// Ticks of a period.
const TICKS: u64 = 8;
/// Stale entries for each RPC. Chosen by us: taking them out visits each RPC, for as many RPCs that
/// have ended.
const STALE: usize = 3;
const MORE_STALE: usize = 64;
/// Stale entries that one search for a due RPC passes (CORE-5). If that was too few, the next check
/// stays due.
const PASSED_PER_CALL: usize = 4_096;

/// The RPCs that are watched.
#[derive(Debug)]
pub(crate) struct Silence {
    /// The ticks before the last one, the earliest first.
    older: VecDeque<Tick>,
    /// The tick of the RPC watched last.
    last: Tick,
    /// The number of the last tick.
    number: u64,
    /// Nanoseconds between two checks of an RPC.
    period: u64,
    /// A tick: when the first RPC was watched while there was no other.
    origin: Instant,
    /// The due tick of the RPC watched last: saves a division for all that follow within it.
    tick: Instant,
    /// Number of RPCs.
    len: usize,
    /// Number of entries, including stale ones.
    entries: usize,
}

/// The RPCs that are checked at one instant.
#[derive(Debug, Default)]
struct Tick {
    due: Instant,
    /// The entries in the order of checks; empty if all of them are stale.
    entries: Vec<RpcKey>,
    /// Number of the entries that are not stale.
    live: usize,
    /// Number of the first entries that are known to be stale.
    passed: usize,
}

impl Silence {
    pub(crate) fn new(period: u64) -> Self {
        let (older, last, origin) = (VecDeque::new(), Tick::default(), Instant::ZERO);
        Self { older, last, number: 1, period, origin, tick: origin, len: 0, entries: 0 }
    }

    /// Sets the nanoseconds between two checks of an RPC.
    pub(crate) const fn set_period(&mut self, period: u64) {
        self.period = period;
        self.tick = Instant::ZERO;
    }

    /// Schedules a check of `rpc` one period from now; if it is watched already, the earlier check
    /// is cancelled.
    #[inline(always)]
    pub(crate) fn watch(&mut self, rpcs: &mut Rpcs, rpc: RpcKey, now: Instant) {
        self.make_room(rpcs);
        self.watch_entry(rpc, &mut rpcs[rpc], now);
    }

    /// Removes stale entries, if there are too many for one more (SILENCE-3).
    #[inline(always)]
    pub(crate) fn make_room(&mut self, rpcs: &mut Rpcs) {
        if self.entries > (STALE + 1) * self.len + MORE_STALE {
            self.forget_stale(rpcs);
        }
    }

    /// Schedules a check as [`Silence::watch`] does, of `rpc`, whose state is `entry`; there is
    /// room for it.
    #[inline(always)]
    pub(crate) fn watch_entry(&mut self, rpc: RpcKey, entry: &mut Rpc, now: Instant) {
        self.forget(entry);
        let at = now.plus(self.period);
        if self.last.live == 0 || at > self.tick || self.tick.since(at) >= self.period / TICKS {
            self.begin_tick(now, at);
        }
        let tick = &mut self.last;
        entry.silence_place = SilencePlace { tick: self.number, entry: tick.entries.len() };
        tick.entries.push(rpc);
        tick.live += 1;
        self.len += 1;
        self.entries += 1;
    }

    /// Sets the last tick for an RPC that is due at `at` or just after it.
    // Once per tick.
    #[inline(never)]
    fn begin_tick(&mut self, now: Instant, at: Instant) {
        if self.len == 0 {
            self.origin = now;
        }
        let length = (self.period / TICKS).max(1);
        self.tick = self.origin.plus(at.since(self.origin).next_multiple_of(length));
        if self.last.live > 0 && self.tick > self.last.due {
            self.older.push_back(std::mem::take(&mut self.last));
            self.number += 1;
        }
        if self.last.live == 0 {
            let before = self.older.iter().rev().find(|tick| tick.live > 0);
            self.last.due = before.map_or(self.tick, |before| self.tick.max(before.due));
        }
    }

    #[cold]
    fn forget_stale(&mut self, rpcs: &mut Rpcs) {
        self.entries = self.len;
        let first = self.number - self.older.len() as u64;
        for (number, tick) in (first..).zip(self.older.iter_mut().chain([&mut self.last])) {
            let (mut before, mut after) = (0, 0);
            tick.passed = 0;
            tick.entries.retain(|rpc| {
                let place = SilencePlace { tick: number, entry: before };
                before += 1;
                let entry = rpcs.get_mut(*rpc).filter(|entry| entry.silence_place == place);
                entry
                    .map(|entry| entry.silence_place.entry = after)
                    .inspect(|()| after += 1)
                    .is_some()
            });
        }
    }

    /// Stops watching an RPC.
    #[inline(always)]
    pub(crate) fn forget(&mut self, rpc: &mut Rpc) {
        let place = std::mem::take(&mut rpc.silence_place);
        if place.tick == 0 {
            return;
        }
        let (behind, older) = ((self.number - place.tick) as usize, self.older.len());
        let tick = match behind {
            0 => &mut self.last,
            _ => &mut self.older[older - behind],
        };
        tick.live -= 1;
        self.len -= 1;
        if tick.live == 0 {
            self.entries -= tick.entries.len();
            tick.entries.clear();
            tick.passed = 0;
            while self.older.front().is_some_and(|tick| tick.live == 0) {
                self.older.pop_front();
            }
        }
    }

    /// When the next check is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        let tick = self.older.front().unwrap_or(&self.last);
        (tick.live > 0).then_some(tick.due)
    }

    /// An RPC whose check is due, and the nanoseconds by which the check is late; the RPC stays
    /// first until it is watched again or forgotten.
    pub(crate) fn due(&mut self, rpcs: &Rpcs, now: Instant) -> Option<(RpcKey, u64)> {
        let first = self.number - self.older.len() as u64;
        let tick = self.older.front_mut().unwrap_or(&mut self.last);
        if tick.due > now {
            return None;
        }
        for _ in 0..PASSED_PER_CALL {
            let rpc = *tick.entries.get(tick.passed)?;
            let place = SilencePlace { tick: first, entry: tick.passed };
            if rpcs.get(rpc).is_some_and(|entry| entry.silence_place == place) {
                return Some((rpc, now.since(tick.due)));
            }
            tick.passed += 1;
        }
        None
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
    fn rpcs_are_checked_in_order_and_those_that_end_leave_few_entries() {
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
            let (row, others) = (silence.entries - 1, silence.len() - 1);
            assert!(row <= (STALE + 1) * others + MORE_STALE, "SILENCE-3: {row} for {others}");
            longest = longest.max(row);
            if i % 8 != 0 {
                let ended = model.remove(i as usize * 7 % model.len());
                silence.forget(&mut tables.rpcs[ended]);
            }
            if i % 5 == 0 {
                let first = model.remove(0);
                silence.watch(&mut tables.rpcs, first, now);
                model.push(first);
            }
        }
        assert!(longest < 3_000 / 2, "stale entries were taken out");
        assert_eq!(silence.len(), model.len());
        for rpc in model {
            let due = silence.due(&tables.rpcs, Instant::from_nanos(1_000_000));
            assert_eq!(due.map(|(first, _)| first), Some(rpc), "SILENCE-2");
            silence.forget(&mut tables.rpcs[rpc]);
            silence.forget(&mut tables.rpcs[rpc]);
        }
        assert_eq!((silence.next(), silence.entries), (None, 0));
    }
}
