//! Mail: packets on their way from a region to another one.
//!
//! Packets that are sent in a window arrive after it, so they are collected when the next window
//! begins. Until then the boxes of the next window are filled already by regions that are ahead, so
//! there are two sets, used in turns.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::division::Place;
use crate::packet::Packet;
use apus_workload::time::Nanos;

/// A packet for another region.
#[derive(Debug)]
pub(super) struct Letter<B> {
    /// When it reaches the port.
    pub(super) at: Nanos,
    /// The port at whose queue it arrives.
    pub(super) to: Place,
    pub(super) packet: Packet,
    pub(super) body: B,
}

/// Letters between all pairs of regions.
#[derive(Debug)]
pub(super) struct Mail<B> {
    sets: [BoxSet<B>; 2],
}

/// Letters of one window.
#[derive(Debug)]
struct BoxSet<B> {
    /// A box for each pair, those to one region next to each other.
    boxes: Box<[Mutex<Vec<Letter<B>>>]>,
    /// For each receiving region a bit for each sending one whose box has letters.
    filled: Box<[AtomicU64]>,
}

impl<B> Mail<B> {
    /// Most regions: each has a bit.
    pub(super) const MOST: u32 = u64::BITS;

    /// Returns empty boxes for this number of regions.
    pub(super) fn new(regions: u32) -> Self {
        let set = || BoxSet {
            boxes: (0..regions * regions).map(|_| Mutex::default()).collect(),
            filled: (0..regions).map(|_| AtomicU64::new(0)).collect(),
        };
        Self { sets: [set(), set()] }
    }

    /// Posts letters that `from` has sent in window `window`.
    pub(super) fn post(&self, window: u64, from: u32, letters: &mut Vec<Letter<B>>) {
        let set = &self.sets[(window % 2) as usize];
        for letter in letters.drain(..) {
            let to = letter.to.region as usize;
            set.boxes[set.index(from as usize, to)]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(letter);
            set.filled[to].fetch_or(1 << from, Ordering::Release);
        }
    }

    /// Collects the letters to `to` that were sent in window `window`, by sender and in the order in
    /// which each has sent them. No region posts to that window any more.
    pub(super) fn collect(&self, window: u64, to: u32, mut receive: impl FnMut(Letter<B>)) {
        let set = &self.sets[(window % 2) as usize];
        let mut filled = set.filled[to as usize].swap(0, Ordering::Acquire);
        while filled != 0 {
            let from = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            set.boxes[set.index(from, to as usize)]
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .drain(..)
                .for_each(&mut receive);
        }
    }
}

impl<B> BoxSet<B> {
    fn index(&self, from: usize, to: usize) -> usize {
        to * self.filled.len() + from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_by_sender_and_once() {
        let mail = Mail::new(3);
        let letter = |body, region| Letter {
            at: 0,
            to: Place { region, index: 0 },
            packet: Packet::default(),
            body,
        };
        mail.post(7, 2, &mut vec![letter("c", 0), letter("d", 0)]);
        mail.post(7, 1, &mut vec![letter("a", 0), letter("elsewhere", 2), letter("b", 0)]);
        mail.post(8, 1, &mut vec![letter("later", 0)]);
        let collected = |window, to| {
            let mut bodies = Vec::new();
            mail.collect(window, to, |letter| bodies.push(letter.body));
            bodies
        };
        assert_eq!(collected(7, 0), ["a", "b", "c", "d"]);
        assert!(collected(7, 0).is_empty());
        assert_eq!(collected(7, 2), ["elsewhere"]);
        assert_eq!(collected(8, 0), ["later"]);
    }
}
