//! Event queue of the simulator.
//!
//! A wheel has a slot for each of the next 4096 nanoseconds, and a heap holds later events. In a
//! busy fabric several events fall into each nanosecond, and nearly all are less than four
//! microseconds ahead, so that scheduling and removing an event costs a few instructions, whatever
//! the number of events. A heap alone would cost the logarithm of their number in cache misses.
//!
//! # Invariants
//!
//! - **EVENTS-1**: Events in the wheel are less than [`SLOTS`] ns ahead of the clock, events in the
//!   heap at least that.
//! - **EVENTS-2**: Events of the same nanosecond leave in the order of scheduling. An event
//!   scheduled directly into the wheel is later than every event in the heap for the same time: the
//!   clock moves due heap events to the wheel before it lets anything else happen.
//! - **EVENTS-3**: A bit of `occupied` is set exactly if its slot holds events, and a bit of
//!   `groups` exactly if its word of `occupied` is not 0.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use apus_workload::time::Nanos;

/// Slots of the wheel, one per nanosecond.
const SLOTS: usize = 4096;
/// Words of 64 bits that record which slots hold events.
const WORDS: usize = SLOTS / 64;
/// No node: the end of the free list.
const NONE: u32 = u32::MAX;

/// Events in order of time; events of the same nanosecond in the order of scheduling.
#[derive(Debug)]
pub(super) struct EventQueue<E> {
    now: Nanos,
    /// The last node of each slot, whose `next` is the first one; stale if the slot is empty. Four
    /// bytes a slot, so that the wheel stays in the cache.
    slots: Box<[u32]>,
    occupied: [u64; WORDS],
    groups: u64,
    nodes: Vec<Node<E>>,
    /// First node of the free list.
    free: u32,
    far: BinaryHeap<Reverse<Far<E>>>,
    /// Time of the first event in the heap; [`Nanos::MAX`] without one.
    far_at: Nanos,
    /// Sequence number of the last event put into the heap.
    sequence: u64,
}

#[derive(Clone, Copy, Debug)]
struct Node<E> {
    event: E,
    next: u32,
}

/// An event in the heap, ordered by time and sequence number alone.
#[derive(Debug)]
struct Far<E> {
    at: Nanos,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl<E> Eq for Far<E> {}

impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<E: Copy> EventQueue<E> {
    /// Returns an empty queue whose clock is at 0.
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            slots: vec![NONE; SLOTS].into(),
            occupied: [0; WORDS],
            groups: 0,
            nodes: Vec::new(),
            free: NONE,
            far: BinaryHeap::new(),
            far_at: Nanos::MAX,
            sequence: 0,
        }
    }

    /// Returns the time of the clock.
    pub(super) const fn now(&self) -> Nanos {
        self.now
    }

    /// Returns when the next event is due; [`Nanos::MAX`] without one.
    #[inline]
    pub(super) fn next_at(&self) -> Nanos {
        // Events in the heap are later than events in the wheel (EVENTS-1).
        self.next_near().unwrap_or(self.far_at)
    }

    /// Schedules `event` for `at`, or for now if `at` has passed.
    #[inline]
    pub(super) fn schedule(&mut self, at: Nanos, event: E) {
        debug_assert!(at >= self.now, "an event in the past");
        let at = at.max(self.now);
        if at - self.now < SLOTS as u64 {
            self.schedule_near(at, event);
        } else {
            self.sequence += 1;
            self.far.push(Reverse(Far { at, sequence: self.sequence, event }));
            self.far_at = self.far_at.min(at);
        }
    }

    /// Removes the next event that is due by `until`, and advances the clock to its time. Without
    /// one, advances the clock to `until`.
    #[inline]
    pub(super) fn pop(&mut self, until: Nanos) -> Option<E> {
        let at = self.next_at();
        if at > until || at == Nanos::MAX {
            self.advance(until.max(self.now));
            return None;
        }
        self.advance(at);
        Some(self.pop_now())
    }

    /// Advances the clock to `now`, and moves events that are near now into the wheel (EVENTS-1,
    /// EVENTS-2).
    #[inline]
    fn advance(&mut self, now: Nanos) {
        self.now = now;
        if self.far_at - now < SLOTS as u64 {
            self.move_near();
        }
    }

    #[cold]
    fn move_near(&mut self) {
        while let Some(Reverse(far)) = self.far.peek()
            && far.at - self.now < SLOTS as u64
        {
            let Some(Reverse(far)) = self.far.pop() else { unreachable!("peeked") };
            self.schedule_near(far.at, far.event);
        }
        self.far_at = self.far.peek().map_or(Nanos::MAX, |Reverse(far)| far.at);
    }

    #[inline]
    fn schedule_near(&mut self, at: Nanos, event: E) {
        let at = at as usize % SLOTS;
        let bit = 1 << (at % 64);
        if self.free == NONE {
            self.free = self.nodes.len() as u32;
            self.nodes.push(Node { event, next: NONE });
        }
        let index = self.free;
        let node = &mut self.nodes[index as usize];
        self.free = node.next;
        node.event = event;
        if self.occupied[at / 64] & bit == 0 {
            node.next = index;
            self.occupied[at / 64] |= bit;
            self.groups |= 1 << (at / 64);
        } else {
            let last = self.slots[at] as usize;
            let first = std::mem::replace(&mut self.nodes[last].next, index);
            self.nodes[index as usize].next = first;
        }
        self.slots[at] = index;
    }

    /// Removes the first event of the current nanosecond, which must have one.
    #[inline]
    fn pop_now(&mut self) -> E {
        let at = self.now as usize % SLOTS;
        let last = self.slots[at];
        let first = self.nodes[last as usize].next;
        let Node { event, next } = self.nodes[first as usize];
        self.nodes[first as usize].next = self.free;
        self.free = first;
        if first == last {
            self.occupied[at / 64] &= !(1 << (at % 64));
            if self.occupied[at / 64] == 0 {
                self.groups &= !(1 << (at / 64));
            }
        } else {
            self.nodes[last as usize].next = next;
        }
        event
    }

    /// Returns the time of the first event in the wheel.
    #[inline]
    fn next_near(&self) -> Option<Nanos> {
        if self.groups == 0 {
            return None;
        }
        let at = self.now as usize % SLOTS;
        let (word, bit) = (at / 64, at % 64);
        // Slots of this word from now on, then the following words, then the preceding words and
        // the rest of this word: the wheel has wrapped around.
        let here = self.occupied[word] >> bit;
        if here != 0 {
            return Some(self.now + u64::from(here.trailing_zeros()));
        }
        let behind = self.groups & (u64::MAX << word) & !(1 << word);
        let groups = if behind != 0 { behind } else { self.groups };
        let found = groups.trailing_zeros() as usize;
        let slot = found * 64 + self.occupied[found].trailing_zeros() as usize;
        Some(self.now + ((slot + SLOTS - at) % SLOTS) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_events_the_clock_advances_to_the_given_time() {
        let mut events: EventQueue<u32> = EventQueue::new();
        assert_eq!(events.pop(5_000), None);
        assert_eq!(events.now(), 5_000);
        events.schedule(5_000, 1);
        assert_eq!(events.pop(5_000), Some(1));
    }

    #[test]
    fn a_distant_event_precedes_one_scheduled_later_for_the_same_time() {
        let mut events = EventQueue::new();
        events.schedule(10_000, 1);
        events.schedule(9_000, 0);
        assert_eq!(events.pop(u64::MAX), Some(0));
        events.schedule(10_000, 2);
        assert_eq!((events.pop(u64::MAX), events.pop(u64::MAX)), (Some(1), Some(2)), "EVENTS-2");
    }

    proptest! {
        /// The model is a sorted list.
        #[test]
        fn behaves_like_a_list_sorted_by_time_and_order(
            steps in proptest::collection::vec((0u64..3, 0u64..10_000, 0usize..4), 1..300),
        ) {
            let mut events = EventQueue::new();
            let mut model: Vec<(u64, usize)> = Vec::new();
            for (number, (scale, ahead, takes)) in steps.into_iter().enumerate() {
                let at = events.now() + ahead * scale.pow(3);
                events.schedule(at, number);
                model.push((at, number));
                for _ in 0..takes {
                    let next = model.iter().copied().min();
                    prop_assert_eq!(events.pop(u64::MAX - 1).is_some(), next.is_some());
                    let Some(next) = next else { break };
                    model.retain(|each| *each != next);
                    prop_assert_eq!(events.now(), next.0);
                }
                if model.is_empty() {
                    break;
                }
            }
            model.sort_unstable();
            for (at, number) in model {
                prop_assert_eq!(events.pop(at), Some(number));
                prop_assert_eq!(events.now(), at);
            }
        }
    }
}
