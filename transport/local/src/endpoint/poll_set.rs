//! Poll set: the order of one reader's polls of many pairs.
//!
//! Short messages first: a few of each pair, starting with another pair in each pass, so that no
//! pair is always first. Then chunks of long messages, one at a time from the message with the
//! fewest missing bytes, as on the network (SRPT). One chunk in twenty goes to the pairs round
//! robin, so that a long message progresses even while shorter ones arrive.

use std::sync::Arc;

use super::registry::Snapshot;
use crate::error::Disconnected;
use crate::pair::inbox::PairEvent;
use crate::pair::side::{Pair, ReceiveQuota};

/// One chunk in this many is chosen round robin and not by length: 5 %, the share that Homa gives
/// the oldest message (ATC 2021 section 3.4; docs/adr/0007).
const ROUND_ROBIN_EVERY: u32 = 20;

/// Event of a pair, for a reader of many pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PollEvent {
    /// An event of a pair.
    Event(PairEvent),
    /// The pair has ended, and with it its calls and those of its client. Reported once.
    Disconnected(Disconnected),
}

/// Events received by a reader of many pairs, in order, in runs of one pair each. An event is
/// written once, where it is read, and neither the event nor its run holds a reference to the pair,
/// which would cost two locked instructions.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// Pairs of the snapshot.
    pairs: Arc<[Arc<Pair>]>,
    events: Vec<PairEvent>,
    runs: Vec<Run>,
}

/// Events of one pair that follow each other.
#[derive(Debug)]
struct Run {
    /// Index of the pair.
    pair: usize,
    /// Their number.
    events: usize,
    /// Why the pair has ended after them, if it has.
    ended: Option<Disconnected>,
}

impl Arrivals {
    /// Returns whether there are no events.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the number of events, ends of pairs among them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.events.len() + self.ended().count()
    }

    /// Passes all events to `sink` and removes them.
    pub fn drain(&mut self, mut sink: impl FnMut(&Arc<Pair>, PollEvent)) {
        let mut events = self.events.drain(..);
        for Run { pair, events: count, ended } in self.runs.drain(..) {
            let pair = &self.pairs[pair];
            events.by_ref().take(count).for_each(|event| sink(pair, PollEvent::Event(event)));
            if let Some(why) = ended {
                sink(pair, PollEvent::Disconnected(why));
            }
        }
    }

    /// Returns the pairs that have ended.
    pub(crate) fn ended(&self) -> impl Iterator<Item = &Arc<Pair>> {
        self.runs.iter().filter(|run| run.ended.is_some()).map(|run| &self.pairs[run.pair])
    }
}

/// The state of one reader of many pairs.
#[derive(Debug, Default)]
pub struct PollSet {
    pub(crate) snapshot: Snapshot<Pair>,
    /// The pair that is first in the next pass.
    first: usize,
    chunks: u32,
    round_robin: usize,
    /// Events that [`Local::receive`](super::local::Local::receive) passes on.
    pub(crate) arrivals: Arrivals,
    /// Missing bytes of the long messages whose chunks are next, and the index of the pair; valid
    /// during one pass.
    long: Vec<(u32, usize)>,
}

impl PollSet {
    /// Returns whether a message of any pair has arrived in part or was sent in part
    /// ([`Pair::has_partial_message`]).
    #[must_use]
    pub fn has_partial_message(&self) -> bool {
        self.snapshot.pairs().iter().any(|pair| pair.has_partial_message())
    }

    /// Returns whether there were pairs at the last poll.
    #[must_use]
    pub fn has_pairs(&self) -> bool {
        !self.snapshot.pairs().is_empty()
    }

    /// Receives from all pairs: up to `quota.short` short records of each pair, and up to
    /// `quota.chunks` chunks of all pairs together. Returns the number of records received.
    pub(crate) fn pass(&mut self, quota: ReceiveQuota, arrivals: &mut Arrivals) -> usize {
        let count = self.snapshot.pairs().len();
        if count == 0 {
            return 0;
        }
        if !Arc::ptr_eq(&arrivals.pairs, self.snapshot.pairs()) {
            arrivals.pairs = self.snapshot.pairs().clone();
        }
        self.first = (self.first + 1) % count;
        self.long.clear();
        let mut records = 0;
        for at in (self.first..count).chain(0..self.first) {
            // Most pairs are idle in most passes.
            if self.snapshot.pairs()[at].is_idle() {
                continue;
            }
            records += self.receive(at, ReceiveQuota { chunks: 0, ..quota }, arrivals);
            if let Some(remaining) = self.snapshot.pairs()[at].remaining() {
                self.long.push((remaining, at));
            }
        }
        for _ in 0..quota.chunks {
            let Some(next) = self.next_long() else { break };
            let at = self.long[next].1;
            records += self.receive(at, ReceiveQuota { short: 0, chunks: 1 }, arrivals);
            match self.snapshot.pairs()[at].remaining() {
                Some(remaining) => self.long[next].0 = remaining,
                None => drop(self.long.swap_remove(next)),
            }
        }
        records
    }

    /// Returns the index in `long` of the message that is next.
    fn next_long(&mut self) -> Option<usize> {
        self.chunks = (self.chunks + 1) % ROUND_ROBIN_EVERY;
        if self.chunks == 0 && !self.long.is_empty() {
            self.round_robin = self.round_robin.wrapping_add(1);
            return Some(self.round_robin % self.long.len());
        }
        let shortest = self.long.iter().enumerate().min_by_key(|(_, (remaining, _))| *remaining);
        shortest.map(|(next, _)| next)
    }

    /// Receives from one pair.
    fn receive(&self, at: usize, quota: ReceiveQuota, arrivals: &mut Arrivals) -> usize {
        let pair = &self.snapshot.pairs()[at];
        let before = arrivals.events.len();
        let received = pair.receive(quota, &mut arrivals.events);
        let events = arrivals.events.len() - before;
        let ended = received.err().filter(|_| pair.take_end_report());
        if events > 0 || ended.is_some() {
            arrivals.runs.push(Run { pair: at, events, ended });
        }
        received.unwrap_or(0)
    }
}
