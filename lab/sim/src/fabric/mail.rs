//! Mail: packets in flight from one region to another.
//!
//! Packets sent in a window arrive after it, so they are collected when the next window starts.
//! Meanwhile regions that are ahead already fill the boxes of the next window, so two sets are used
//! in turn.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::port::PortIndex;
use crate::packet::Packet;
use apus_workload::time::Nanos;

/// A packet for another region.
#[derive(Debug)]
pub(super) struct Letter<B> {
    /// When it reaches the port.
    pub(super) at: Nanos,
    /// The port of the receiving region whose queue it enters.
    pub(super) port: PortIndex,
    pub(super) packet: Packet,
    pub(super) body: B,
}

/// Letters of a region that have not been posted, and their first arrival.
#[derive(Debug)]
pub(super) struct Outbox<B> {
    /// Letters to each region.
    letters: Box<[Vec<Letter<B>>]>,
    first: Nanos,
}

impl<B> Outbox<B> {
    /// Returns an empty outbox for letters to this number of regions.
    pub(super) fn new(regions: u32) -> Self {
        Self { letters: (0..regions).map(|_| Vec::new()).collect(), first: Nanos::MAX }
    }

    /// Adds a letter to `region`.
    #[inline]
    pub(super) fn push(&mut self, region: u32, letter: Letter<B>) {
        self.first = self.first.min(letter.at);
        self.letters[region as usize].push(letter);
    }
}

/// Letters between all pairs of regions.
#[derive(Debug)]
pub(super) struct Mail<B> {
    sets: [BoxSet<B>; 2],
}

/// Letters of one window.
#[derive(Debug)]
struct BoxSet<B> {
    /// A box for each pair; boxes to the same region are adjacent.
    boxes: Box<[Mutex<Vec<Letter<B>>>]>,
    /// For each receiving region, a bit for each sending region whose box has letters.
    filled: Box<[AtomicU64]>,
}

impl<B> Mail<B> {
    /// Returns empty boxes for this number of regions, at most 64: each has a bit.
    pub(super) fn new(regions: u32) -> Self {
        let set = || BoxSet {
            boxes: (0..regions * regions).map(|_| Mutex::default()).collect(),
            filled: (0..regions).map(|_| AtomicU64::new(0)).collect(),
        };
        Self { sets: [set(), set()] }
    }

    /// Posts the letters that `from` has sent in window `window`, once a window. Returns the first
    /// arrival; [`Nanos::MAX`] without letters.
    pub(super) fn post(&self, window: u64, from: u32, outbox: &mut Outbox<B>) -> Nanos {
        let first = mem::replace(&mut outbox.first, Nanos::MAX);
        if first == Nanos::MAX {
            return first;
        }
        let set = &self.sets[(window % 2) as usize];
        for (to, letters) in outbox.letters.iter_mut().enumerate() {
            if !letters.is_empty() {
                // The box was emptied two windows ago. Its memory returns to the outbox.
                mem::swap(&mut *set.lock(from as usize, to), letters);
                set.filled[to].fetch_or(1 << from, Ordering::Release);
            }
        }
        first
    }

    /// Returns whether letters to `to` were sent in window `window` and have not been collected.
    pub(super) fn waits(&self, window: u64, to: u32) -> bool {
        self.sets[(window % 2) as usize].filled[to as usize].load(Ordering::Relaxed) != 0
    }

    /// Collects the letters to `to` that were sent in window `window`, by sender, and in the order
    /// of sending for each. No region posts to that window any more.
    pub(super) fn collect(&self, window: u64, to: u32, mut receive: impl FnMut(Letter<B>)) {
        let set = &self.sets[(window % 2) as usize];
        let mut filled = set.filled[to as usize].swap(0, Ordering::Acquire);
        while filled != 0 {
            let from = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            set.lock(from, to as usize).drain(..).for_each(&mut receive);
        }
    }
}

impl<B> BoxSet<B> {
    /// Locks the box of a pair. A panic while one is locked ends the run, so poisoning can be
    /// ignored.
    fn lock(&self, from: usize, to: usize) -> MutexGuard<'_, Vec<Letter<B>>> {
        let index = to * self.filled.len() + from;
        self.boxes[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Posts the letters that `from` sends in a window: bodies, regions and arrivals. Returns the
    /// first arrival.
    fn post(
        mail: &Mail<&'static str>,
        window: u64,
        from: u32,
        letters: &[(&'static str, u32, Nanos)],
    ) -> Nanos {
        let mut outbox = Outbox::new(3);
        for &(body, region, at) in letters {
            outbox.push(region, Letter { at, port: 0, packet: Packet::default(), body });
        }
        mail.post(window, from, &mut outbox)
    }

    #[test]
    fn letters_come_by_sender_and_once() {
        let mail = Mail::new(3);
        assert_eq!(post(&mail, 7, 2, &[("c", 0, 40), ("d", 0, 30)]), 30);
        assert_eq!(post(&mail, 7, 1, &[("a", 0, 50), ("elsewhere", 2, 60), ("b", 0, 50)]), 50);
        assert_eq!(post(&mail, 7, 0, &[]), Nanos::MAX);
        assert_eq!(post(&mail, 8, 1, &[("later", 0, 70)]), 70);
        let collected = |window, to| {
            let waits = mail.waits(window, to);
            let mut bodies = Vec::new();
            mail.collect(window, to, |letter| bodies.push(letter.body));
            assert_eq!(waits, !bodies.is_empty());
            bodies
        };
        assert_eq!(collected(7, 0), ["a", "b", "c", "d"]);
        assert!(collected(7, 0).is_empty());
        assert_eq!(collected(7, 2), ["elsewhere"]);
        assert_eq!(collected(8, 0), ["later"]);
    }
}
