//! In which order is taken what many pairs have for one reader?
//!
//! Short messages first: a few of each pair, beginning with another pair each time, so that none is always the
//! first. Then chunks of long messages, one at a time of whichever message is missing the least, as on the
//! network (SRPT); one in twenty goes to the pairs in turn, so that a long message goes on beside shorter ones.

use std::sync::Arc;

use crate::error::Disconnected;
use crate::inbox::PairEvent;
use crate::pair::{Pair, ReceiveQuota};
use crate::registry::Snapshot;

/// One chunk in so many does not go to the shortest message: 5 %, the share that Homa gives the oldest
/// (ATC 2021 section 3.4; docs/adr/0007).
const TURN_EVERY: u32 = 20;

/// What a reader of many pairs gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollEvent {
    /// From a pair.
    Event(PairEvent),
    /// The pair has ended: its calls, and those of its client, end with it. It comes once.
    Gone(Disconnected),
}

/// A reader's place in the order.
#[derive(Debug, Default)]
pub struct PollSet {
    pub(crate) snapshot: Snapshot<Pair>,
    /// The pair that comes first the next time.
    first: usize,
    chunks: u32,
    turn: usize,
    /// What came from one pair.
    events: Vec<PairEvent>,
    /// What is missing of the messages whose chunks come next, and where: used for one pass.
    long: Vec<(u32, usize)>,
}

impl PollSet {
    /// Whether any pair's message has come or left in part ([`Pair::is_midway`]), at the last look.
    #[must_use]
    pub fn is_midway(&self) -> bool {
        self.snapshot.pairs().iter().any(|pair| pair.is_midway())
    }

    /// Whether there were pairs at the last look.
    #[must_use]
    pub fn has_pairs(&self) -> bool {
        !self.snapshot.pairs().is_empty()
    }

    /// One pass over all pairs, at most `quota` of each pair's short records and of all chunks together. Returns
    /// how many records were taken.
    pub(crate) fn pass(
        &mut self,
        quota: ReceiveQuota,
        sink: &mut dyn FnMut(&Arc<Pair>, PollEvent),
    ) -> usize {
        let count = self.snapshot.pairs().len();
        if count == 0 {
            return 0;
        }
        self.first = (self.first + 1) % count;
        self.long.clear();
        let mut records = 0;
        for at in (self.first..count).chain(0..self.first) {
            // Most are, in most passes.
            if self.snapshot.pairs()[at].is_idle() {
                continue;
            }
            records += self.take(at, ReceiveQuota { chunks: 0, ..quota }, sink);
            if let Some(remaining) = self.snapshot.pairs()[at].remaining() {
                self.long.push((remaining, at));
            }
        }
        for _ in 0..quota.chunks {
            let Some(next) = self.next_long() else { break };
            let at = self.long[next].1;
            records += self.take(at, ReceiveQuota { short: 0, chunks: 1 }, sink);
            match self.snapshot.pairs()[at].remaining() {
                Some(remaining) => self.long[next].0 = remaining,
                None => drop(self.long.swap_remove(next)),
            }
        }
        records
    }

    /// Which of the long messages comes next.
    fn next_long(&mut self) -> Option<usize> {
        self.chunks = (self.chunks + 1) % TURN_EVERY;
        if self.chunks == 0 && !self.long.is_empty() {
            self.turn = self.turn.wrapping_add(1);
            return Some(self.turn % self.long.len());
        }
        let shortest = self.long.iter().enumerate().min_by_key(|(_, (remaining, _))| *remaining);
        shortest.map(|(next, _)| next)
    }

    /// Takes from one pair.
    fn take(
        &mut self,
        at: usize,
        quota: ReceiveQuota,
        sink: &mut dyn FnMut(&Arc<Pair>, PollEvent),
    ) -> usize {
        let pair = &self.snapshot.pairs()[at];
        let received = pair.receive(quota, &mut self.events);
        self.events.drain(..).for_each(|event| sink(pair, PollEvent::Event(event)));
        match received {
            Ok(records) => records,
            Err(gone) => {
                if pair.tell_gone() {
                    sink(pair, PollEvent::Gone(gone));
                }
                0
            }
        }
    }
}
