//! The sessions of idle clients, which outlive everything else that is known about them (AMO-6).
//!
//! # Invariants
//!
//! - **DORMANT-1** There are at most as many sessions as the quota has room for, half of them of one
//!   host. Beyond, the oldest of the host that has most of them is lost: a host with many clients
//!   displaces no session of a host with few.
//! - **DORMANT-2** `by_size` holds exactly the hosts that have sessions, with their number.

use super::hosts::HostAddress;
use super::{Address, Serving};
use crate::quota::{Quota, Ranking, Size};
use foldhash::fast::FixedState;
use std::collections::{HashMap, VecDeque};

/// Sessions of clients that are idle.
#[derive(Debug)]
pub(super) struct Dormant {
    sessions: HashMap<Address, (u64, Serving), FixedState>,
    hosts: HashMap<HostAddress, Row, FixedState>,
    by_size: Ranking<HostAddress>,
    next: u64,
    quota: Quota,
}

/// The sessions of one host.
#[derive(Debug, Default)]
struct Row {
    /// Number of sessions.
    sessions: u64,
    /// The oldest first. Clients that woke up have left their places here.
    order: VecDeque<(u64, Address)>,
}

impl Dormant {
    pub(super) fn new(limit: u64, seed: u64) -> Self {
        let hasher = FixedState::with_seed(seed);
        Self {
            sessions: HashMap::with_hasher(hasher.clone()),
            hosts: HashMap::with_hasher(hasher),
            by_size: Ranking::new(1),
            next: 0,
            quota: Quota::of_equals(limit),
        }
    }

    /// Stores the session of the client at `address`. Returns the session evicted for it, if any.
    pub(super) fn put(&mut self, address: Address, serving: Serving) -> Option<(Address, Serving)> {
        let host = HostAddress::of(&address);
        let before = self.sessions.insert(address, (self.next, serving));
        let row = self.hosts.entry(host).or_default();
        row.order.push_back((self.next, address));
        self.next += 1;
        if before.is_none() {
            self.by_size.change(host, row.sessions, row.sessions + 1);
            row.sessions += 1;
        }
        if row.order.len() as u64 > 2 * row.sessions + 8 {
            let sessions = &self.sessions;
            row.order.retain(|(number, address)| is_present(sessions, *number, address));
        }
        if row.sessions > self.quota.most_of_host(Size::Short) {
            self.lose_one_of(host)
        } else if self.sessions.len() as u64 > self.quota.most(Size::Short) {
            let (_, largest) = self.by_size.largest().next()?;
            self.lose_one_of(largest)
        } else {
            None
        }
    }

    /// The session of the client at `address`, if it is here.
    pub(super) fn get(&self, address: &Address) -> Option<&Serving> {
        self.sessions.get(address).map(|(_, serving)| serving)
    }

    /// Takes the session of the client at `address`, if it is here.
    pub(super) fn wake(&mut self, address: &Address) -> Option<Serving> {
        let (_, serving) = self.sessions.remove(address)?;
        self.count_down(HostAddress::of(address));
        Some(serving)
    }

    /// Loses the oldest session of a host (DORMANT-1).
    fn lose_one_of(&mut self, host: HostAddress) -> Option<(Address, Serving)> {
        let row = self.hosts.get_mut(&host)?;
        let mut lost = None;
        while lost.is_none()
            && let Some((number, address)) = row.order.pop_front()
        {
            if is_present(&self.sessions, number, &address) {
                lost = self.sessions.remove(&address).map(|(_, serving)| (address, serving));
            }
        }
        self.count_down(host);
        lost
    }

    fn count_down(&mut self, host: HostAddress) {
        let Some(row) = self.hosts.get_mut(&host) else { return };
        self.by_size.change(host, row.sessions, row.sessions - 1);
        row.sessions -= 1;
        if row.sessions == 0 {
            self.hosts.remove(&host);
        }
    }
}

/// Whether the session that was put in as `number` is still stored, and no later one of that
/// client.
fn is_present(
    sessions: &HashMap<Address, (u64, Serving), FixedState>,
    number: u64,
    address: &Address,
) -> bool {
    sessions.get(address).is_some_and(|(present, _)| *present == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(host: u8, port: u16) -> Address {
        Address::from(([10, 0, 0, host], port))
    }

    /// AMO-6.
    #[test]
    fn a_client_that_wakes_and_sleeps_evicts_no_other() {
        let mut dormant = Dormant::new(4, 1);
        dormant.put(address(1, 1), Serving::default());
        for _ in 0..100 {
            dormant.put(address(1, 2), Serving::default());
            assert!(dormant.wake(&address(1, 2)).is_some());
        }
        assert!(dormant.hosts.values().all(|row| row.order.len() <= 12), "places are given back");
        dormant.put(address(1, 2), Serving::default());
        assert!(dormant.sessions.contains_key(&address(1, 1)));
        dormant.put(address(1, 3), Serving::default());
        assert!(dormant.wake(&address(1, 1)).is_none(), "two younger ones have come");
        assert!(dormant.wake(&address(1, 2)).is_some() && dormant.wake(&address(1, 3)).is_some());
        assert!(dormant.hosts.is_empty() && dormant.by_size.is_empty(), "DORMANT-2");
    }

    /// AMO-6: 10,000 ports of one host, and one client of another.
    #[test]
    fn a_host_with_many_clients_displaces_its_own_sessions() {
        let mut dormant = Dormant::new(100, 1);
        dormant.put(address(1, 1), Serving::default());
        for port in 1..=10_000 {
            dormant.put(address(2, port), Serving::default());
        }
        assert_eq!(dormant.sessions.len(), 51, "half, and one");
        assert!(dormant.wake(&address(1, 1)).is_some(), "DORMANT-1");
        assert!(dormant.wake(&address(2, 9_950)).is_none());
        assert!(dormant.wake(&address(2, 9_951)).is_some(), "the youngest are kept");
    }
}
