//! Which messages transmit, and what changes when one comes or ends?
//!
//! Every message needs two links, an uplink and a downlink, and has a rank. The rule (S1) singles out one
//! set of messages, because it can be applied from the first rank on. It need not be: a set that obeys it
//! everywhere but at a few links is mended there. At a link that has become free, the first waiting message
//! that is not held up at its other link takes it; if that link carried a later message, this one stops, and
//! what it leaves free is mended in turn. Each step puts an earlier message in the place of a later one, so
//! it ends, usually after one or two.
//!
//! Between two events nothing needs to be done: messages that transmit get shorter at the same pace and
//! those that wait stay as they are, so whoever held up another still does.
//!
//! # Invariants
//!
//! - **S1** A message transmits if and only if no message of an earlier rank transmits on one of its links.
//! - **S2** `ends` has exactly the messages that transmit, `waiting` the others.

use std::collections::BTreeSet;

use slab::Slab;

use super::waiting::Waiting;
use crate::message::HostId;

/// Picoseconds since the beginning of the run, or that a message takes on a host's link.
pub(super) type Picos = u64;

/// Key of a message in the slab.
pub(super) type Key = usize;

/// Position of a link: uplinks of all hosts first, then downlinks.
pub(super) type LinkIndex = usize;

/// What decides between two messages: the smaller goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// What remains to be sent.
    pub(super) remaining: Picos,
    /// How many messages had come before it.
    pub(super) age: u64,
}

/// A message that is not completely sent.
#[derive(Debug)]
struct Job<T> {
    /// The sender's uplink and the receiver's downlink.
    links: [LinkIndex; 2],
    age: u64,
    state: State,
    /// What the caller wants back.
    content: T,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// It waits with so much to be sent.
    Waits(Picos),
    /// It transmits, and if nothing stops it until then.
    TransmitsUntil(Picos),
}

/// All messages that are not completely sent, and which of them transmit.
#[derive(Debug)]
pub(super) struct Schedule<T> {
    /// What each link carries.
    carries: Box<[Option<Key>]>,
    jobs: Slab<Job<T>>,
    waiting: Waiting,
    /// The messages that transmit: when they end, their age, their key.
    ends: BTreeSet<(Picos, u64, Key)>,
    /// Links that have become free since S1 held everywhere.
    freed: Vec<LinkIndex>,
    /// How many messages have come.
    count: u64,
}

impl<T> Schedule<T> {
    /// Nothing to send, between so many hosts.
    pub(super) fn new(hosts: u32) -> Self {
        let links = 2 * hosts as usize;
        Self {
            carries: vec![None; links].into(),
            jobs: Slab::new(),
            waiting: Waiting::new(links),
            ends: BTreeSet::new(),
            freed: Vec::new(),
            count: 0,
        }
    }

    /// When the next message is completely sent, if none comes before.
    pub(super) fn next_end(&self) -> Option<Picos> {
        self.ends.first().map(|&(end, ..)| end)
    }

    /// A message comes that takes `work` on a link. `now` is not after the next end.
    pub(super) fn add(&mut self, now: Picos, from: HostId, to: HostId, work: Picos, content: T) {
        let links = [from as LinkIndex, self.carries.len() / 2 + to as LinkIndex];
        let rank = Rank { remaining: work, age: self.count };
        self.count += 1;
        let state = State::Waits(work);
        let key = self.jobs.insert(Job { links, age: rank.age, state, content });
        if links.iter().any(|&link| self.holds_up(now, link, rank)) {
            self.waiting.insert(links, rank, key);
        } else {
            self.start(now, key, rank);
            self.mend(now);
        }
    }

    /// Ends the message that is the next to be completely sent, and tells when it was.
    pub(super) fn complete(&mut self) -> Option<(Picos, T)> {
        let (now, _, key) = self.ends.pop_first()?;
        let job = self.jobs.remove(key);
        for link in job.links {
            self.carries[link] = None;
            self.freed.push(link);
        }
        self.mend(now);
        Some((now, job.content))
    }

    /// What ranks a message now.
    fn rank(&self, now: Picos, key: Key) -> Rank {
        let job = &self.jobs[key];
        let remaining = match job.state {
            State::Waits(remaining) => remaining,
            State::TransmitsUntil(end) => end - now,
        };
        Rank { remaining, age: job.age }
    }

    /// Whether a link carries a message that goes before one of this rank.
    fn holds_up(&self, now: Picos, link: LinkIndex, rank: Rank) -> bool {
        self.carries[link].is_some_and(|key| self.rank(now, key) < rank)
    }

    /// Makes S1 hold again.
    fn mend(&mut self, now: Picos) {
        while let Some(link) = self.freed.pop() {
            if let Some((rank, key)) = self.successor(now, link) {
                self.waiting.remove_first(self.jobs[key].links);
                self.start(now, key, rank);
            }
        }
    }

    /// The first message that waits for a link and is held up by none, at either of its links.
    fn successor(&self, now: Picos, link: LinkIndex) -> Option<(Rank, Key)> {
        let taken_by = self.carries[link].map(|key| self.rank(now, key));
        let earlier = |rank: &Rank| taken_by.is_none_or(|taken_by| *rank < taken_by);
        let mut waiting = self.waiting.firsts(link).take_while(|(rank, _)| earlier(rank));
        waiting.find(|&(rank, key)| {
            let [uplink, downlink] = self.jobs[key].links;
            let other = if link == uplink { downlink } else { uplink };
            !self.holds_up(now, other, rank)
        })
    }

    /// Gives a message its links; whatever they carried stops.
    fn start(&mut self, now: Picos, key: Key, rank: Rank) {
        let links = self.jobs[key].links;
        for link in links {
            if let Some(stopped) = self.carries[link] {
                // Its other link is free now; who was held up by it at this one still is, by the new one.
                let others =
                    self.stop(now, stopped).into_iter().filter(|link| !links.contains(link));
                self.freed.extend(others);
            }
        }
        for link in links {
            self.carries[link] = Some(key);
        }
        let end = now + rank.remaining;
        self.jobs[key].state = State::TransmitsUntil(end);
        self.ends.insert((end, rank.age, key));
    }

    /// Takes its links from a message; it waits again.
    fn stop(&mut self, now: Picos, key: Key) -> [LinkIndex; 2] {
        let rank = self.rank(now, key);
        self.ends.remove(&(now + rank.remaining, rank.age, key));
        self.jobs[key].state = State::Waits(rank.remaining);
        let links = self.jobs[key].links;
        for link in links {
            self.carries[link] = None;
        }
        self.waiting.insert(links, rank, key);
        links
    }
}
