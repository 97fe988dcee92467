//! Requests that wait for the application: its time is shared by hosts in turn.
//!
//! The engine bounds their number when the application is overloaded (CAP-16). Refusing the newest
//! alike would leave the decision to the host that sends most: so the rules of
//! [`quota`](crate::quota) hold here as well. The part of a host is an equal share of the bound: a
//! host that has less of what waits is not refused. And requests are served in *turns*: the first of
//! each host, then the second of each. Within a host the newest are refused, and the oldest are
//! served first ([ADR 10](../../../../docs/adr/0010-refuse-the-newest-under-overload.md)).
//!
//! # Invariants
//!
//! - **HOSTTURN-1** A host has a row exactly while it has requests that were counted and not taken.
//!   (The row of the latest host stays.)
//! - **HOSTTURN-2** The turns of a host's requests grow; a host that had none gets the one after the
//!   present turn.

use crate::peer::{Address, HostAddress};
use foldhash::fast::FixedState;
use std::collections::HashMap;

/// Waiting requests by host.
#[derive(Debug)]
pub(crate) struct WaitingRequests {
    /// The host that was counted last: the requests of a single host cost no look-up.
    latest: (HostAddress, Row),
    others: HashMap<HostAddress, Row, FixedState>,
    /// The turn of the request that was taken last.
    turn: u64,
    /// Number of requests that may wait.
    bound: usize,
    /// Number of batches of packets.
    batch: u64,
}

/// The requests of a host.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// Number of those that wait.
    waiting: u32,
    /// Turn of the last one.
    last_turn: u64,
    /// Number of those that were accepted beyond the bound in batch `batch`, and do not wait yet.
    accepted: u32,
    batch: u64,
}

impl WaitingRequests {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            latest: (HostAddress::V4(0), Row::default()),
            others: HashMap::with_hasher(FixedState::with_seed(seed)),
            turn: 0,
            bound: usize::MAX,
            batch: 0,
        }
    }

    /// A batch of packets follows; `bound` requests may wait.
    pub(crate) const fn begin_batch(&mut self, bound: usize) {
        self.bound = bound;
        self.batch += 1;
    }

    /// A request from `from` waits. Returns its turn.
    pub(crate) fn add(&mut self, from: &Address) -> u64 {
        let turn = self.turn;
        let row = self.row(HostAddress::of(from));
        row.waiting += 1;
        row.accepted = row.accepted.saturating_sub(1);
        row.last_turn = row.last_turn.max(turn) + 1;
        row.last_turn
    }

    /// A counted request from `from`, with this turn, is taken.
    pub(crate) fn take(&mut self, from: &Address, turn: u64) {
        self.turn = self.turn.max(turn);
        let row = self.row(HostAddress::of(from));
        row.waiting = row.waiting.saturating_sub(1);
        if row.waiting == 0 {
            *row = Row::default();
        }
    }

    /// Whether a request from `from` is accepted although as many wait as may: its host has less
    /// than its share of them.
    #[cold]
    pub(crate) fn accepts(&mut self, from: &Address) -> bool {
        let (batch, bound) = (self.batch, self.bound);
        let host = HostAddress::of(from);
        let _ = self.row(host);
        // The row of this host is the latest one.
        let share = bound / (self.others.len() + 1);
        let row = self.row(host);
        if row.batch != batch {
            (row.batch, row.accepted) = (batch, 0);
        }
        let has_room = ((row.waiting + row.accepted) as usize) < share;
        row.accepted += u32::from(has_room);
        has_room
    }

    /// The row of a host, which becomes the latest one.
    fn row(&mut self, host: HostAddress) -> &mut Row {
        if self.latest.0 != host {
            let row = self.others.remove(&host).unwrap_or_default();
            let (before, its_row) = std::mem::replace(&mut self.latest, (host, row));
            if its_row.waiting > 0 {
                self.others.insert(before, its_row);
            }
        }
        &mut self.latest.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(number: u8) -> Address {
        ([10, 0, 0, number], 1).into()
    }

    #[test]
    fn each_host_has_a_turn_before_any_has_another() {
        let mut waiting = WaitingRequests::new(1);
        let turns: Vec<u64> = (0..4).map(|_| waiting.add(&host(1))).collect();
        assert_eq!(turns, [1, 2, 3, 4], "HOSTTURN-2");
        assert_eq!([waiting.add(&host(2)), waiting.add(&host(3))], [1, 1]);
        waiting.take(&host(1), 1);
        waiting.take(&host(2), 1);
        assert_eq!(waiting.add(&host(2)), 2, "after the present turn");
        assert_eq!(waiting.add(&host(1)), 5);
        for turn in [2, 3, 4, 5] {
            waiting.take(&host(1), turn);
        }
        assert_eq!(waiting.add(&host(1)), 6);
        waiting.take(&host(3), 1);
        waiting.take(&host(2), 2);
        waiting.take(&host(1), 6);
        assert!(waiting.others.is_empty(), "HOSTTURN-1");
    }

    #[test]
    fn a_host_with_less_than_its_share_is_accepted() {
        let mut waiting = WaitingRequests::new(1);
        waiting.begin_batch(16);
        assert!((0..16).all(|_| waiting.accepts(&host(1))), "alone");
        assert!(!waiting.accepts(&host(1)));
        (0..16).for_each(|_| _ = waiting.add(&host(1)));
        waiting.begin_batch(16);
        assert!(!waiting.accepts(&host(1)));
        // Half each; what was accepted in this batch counts before it waits.
        assert_eq!((0..20).filter(|_| waiting.accepts(&host(2))).count(), 8);
        (0..8).for_each(|_| _ = waiting.add(&host(2)));
        assert_eq!((0..20).filter(|_| waiting.accepts(&host(3))).count(), 5);
        assert!(!waiting.accepts(&host(2)));
    }

    /// Where more hosts wait than requests may, the newest are refused.
    #[test]
    fn many_hosts_do_not_exceed_the_bound_by_more_than_once() {
        let mut waiting = WaitingRequests::new(1);
        waiting.begin_batch(16);
        for number in 0..=255 {
            if waiting.accepts(&host(number)) {
                let _ = waiting.add(&host(number));
            }
        }
        assert_eq!(waiting.others.len() + 1, 16 + 1);
    }
}
