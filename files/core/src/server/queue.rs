//! Requests that wait for leases, in the order of their arrival.
//!
//! A waiting request keeps its place at each node it needs: a later request for one of these nodes
//! waits behind it, even if the node itself is free. So requests for few nodes cannot starve a
//! request for many.

use std::collections::{BTreeMap, BTreeSet};

use crate::wire::{Ino, LeaseKind, SessionRequest};

use super::effect::CallToken;
use super::leases::is_conflict;
use super::settings::{MAX_WAITING, MAX_WAITING_NODES};

/// Nodes that a request needs, and how.
pub(super) type Needs = BTreeMap<Ino, LeaseKind>;

/// A request that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) session: u64,
    pub(super) call: CallToken,
    pub(super) request: SessionRequest,
    pub(super) needs: Needs,
}

/// All requests that wait.
#[derive(Debug, Default)]
pub(super) struct Queue {
    last: u64,
    waiting: BTreeMap<u64, Waiting>,
    nodes: BTreeMap<Ino, Line>,
    sessions: BTreeMap<u64, BTreeSet<u64>>,
    // Tickets whose nodes have changed hands since they were attempted.
    ready: BTreeSet<u64>,
    // Numbers of waiting requests and of their nodes, by session.
    loads: BTreeMap<u64, (usize, usize)>,
}

/// Requests that need one node.
#[derive(Debug, Default)]
struct Line {
    exclusive: BTreeSet<u64>,
    others: BTreeSet<u64>,
}

impl Line {
    fn of(&mut self, kind: LeaseKind) -> &mut BTreeSet<u64> {
        if kind == LeaseKind::Exclusive { &mut self.exclusive } else { &mut self.others }
    }

    fn all(&self) -> impl Iterator<Item = u64> {
        self.exclusive.iter().chain(&self.others).copied()
    }

    fn is_empty(&self) -> bool {
        self.exclusive.is_empty() && self.others.is_empty()
    }
}

/// The place of a request that does not wait: behind all others.
pub(super) const LAST: u64 = u64::MAX;

impl Queue {
    /// Returns the place of a request that arrives now.
    pub(super) fn draw_ticket(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Whether a session may have one more request waiting, which needs `nodes`.
    pub(super) fn has_room(&self, session: u64, nodes: usize) -> bool {
        let (requests, waiting) = self.loads.get(&session).copied().unwrap_or_default();
        requests < MAX_WAITING && waiting + nodes <= MAX_WAITING_NODES
    }

    pub(super) fn insert(&mut self, ticket: u64, waiting: Waiting) {
        for (ino, kind) in &waiting.needs {
            self.nodes.entry(*ino).or_default().of(*kind).insert(ticket);
        }
        self.sessions.entry(waiting.session).or_default().insert(ticket);
        let load = self.loads.entry(waiting.session).or_default();
        *load = (load.0 + 1, load.1 + waiting.needs.len());
        self.waiting.insert(ticket, waiting);
    }

    /// Removes a request. Requests behind it become ready.
    pub(super) fn remove(&mut self, ticket: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&ticket)?;
        self.ready.remove(&ticket);
        for (ino, kind) in &waiting.needs {
            if let Some(line) = self.nodes.get_mut(ino) {
                line.of(*kind).remove(&ticket);
                self.ready.extend(line.exclusive.range(ticket..));
                // A shared need keeps no other one waiting.
                if *kind == LeaseKind::Exclusive {
                    self.ready.extend(line.others.range(ticket..));
                }
                if line.is_empty() {
                    self.nodes.remove(ino);
                }
            }
        }
        if let Some(tickets) = self.sessions.get_mut(&waiting.session) {
            tickets.remove(&ticket);
            if tickets.is_empty() {
                self.sessions.remove(&waiting.session);
            }
        }
        if let Some(load) = self.loads.get_mut(&waiting.session) {
            *load = (load.0 - 1, load.1 - waiting.needs.len());
            if load.0 == 0 {
                self.loads.remove(&waiting.session);
            }
        }
        Some(waiting)
    }

    /// Whether a request of another session ahead of `ticket` prevents a lease.
    pub(super) fn is_ahead(&self, ticket: u64, session: u64, ino: Ino, kind: LeaseKind) -> bool {
        let Some(line) = self.nodes.get(&ino) else { return false };
        // Of the others, the first one decides: at most the requests of the session itself are
        // passed over.
        let is_ahead = |tickets: &BTreeSet<u64>, need| {
            is_conflict(need, kind)
                && tickets.range(..ticket).any(|ticket| {
                    super::work::step();
                    self.waiting.get(ticket).is_some_and(|waiting| waiting.session != session)
                })
        };
        is_ahead(&line.exclusive, LeaseKind::Exclusive) || is_ahead(&line.others, LeaseKind::Shared)
    }

    /// Makes the requests for a node ready.
    pub(super) fn touch(&mut self, ino: Ino) {
        self.ready.extend(self.nodes.get(&ino).into_iter().flat_map(Line::all));
    }

    /// Makes all ready.
    pub(super) fn touch_all(&mut self) {
        self.ready.extend(self.waiting.keys());
    }

    /// Removes and returns the first ready ticket.
    pub(super) fn pop_ready(&mut self) -> Option<u64> {
        self.ready.pop_first()
    }

    /// Returns a request that waits.
    pub(super) fn get(&self, ticket: u64) -> Option<&Waiting> {
        self.waiting.get(&ticket)
    }

    /// Changes the needs of a waiting request: its path has changed, or the walk has advanced.
    pub(super) fn set_needs(&mut self, ticket: u64, needs: Needs) {
        if self.waiting.get(&ticket).is_none_or(|waiting| waiting.needs == needs) {
            return;
        }
        // Removing and inserting makes requests behind the dropped needs ready.
        if let Some(waiting) = self.remove(ticket) {
            self.insert(ticket, Waiting { needs, ..waiting });
        }
    }

    /// Returns the tickets of requests that wait for a node.
    pub(super) fn tickets_at(&self, ino: Ino) -> Vec<u64> {
        let tickets: BTreeSet<u64> = self.nodes.get(&ino).into_iter().flat_map(Line::all).collect();
        tickets.into_iter().collect()
    }

    /// Returns all tickets of a session.
    pub(super) fn tickets_of(&self, session: u64) -> Vec<u64> {
        self.sessions.get(&session).into_iter().flatten().copied().collect()
    }

    /// Returns all requests in the order of their arrival.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.waiting.values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::work::steps;

    /// Requests that share a node keep no others waiting, however many there are.
    #[test]
    fn a_place_in_a_long_line_is_found_at_once() {
        let work = |length: u64| {
            let mut queue = Queue::default();
            for ticket in 1..=length {
                let needs = Needs::from([(Ino(5), LeaseKind::Shared)]);
                let request = SessionRequest::StatFs;
                let call = CallToken(ticket);
                queue.insert(ticket, Waiting { session: ticket, call, request, needs });
            }
            steps(|| {
                assert!(!queue.is_ahead(LAST, 0, Ino(5), LeaseKind::Shared));
                assert!(queue.is_ahead(LAST, 0, Ino(5), LeaseKind::Exclusive));
                queue.remove(1);
                assert_eq!(queue.pop_ready(), None);
            })
        };
        assert_eq!(work(2), work(1_000));
    }
}
