//! Schedule: which messages transmit.
//!
//! Every message needs two links, an uplink and a downlink, and has a rank. The rule (SCHEDULE-1)
//! determines the set of transmitting messages, because it can be applied in the order of ranks.
//! The schedule is updated incrementally: a set that obeys the rule everywhere except at a few
//! links is repaired there. At a free link, the first waiting message that is not blocked at its
//! other link starts; if that link carried a later message, the later message stops, and the link
//! that it frees is repaired in turn. Each step replaces a later message by an earlier one, so the
//! repair ends, usually after one or two steps.
//!
//! The set does not change between two events: transmitting messages shrink at the same pace, and
//! waiting messages do not shrink, so a message that blocked another still does.
//!
//! # Invariants
//!
//! - **SCHEDULE-1**: A message transmits if and only if no message of an earlier rank transmits on
//!   one of its links.
//! - **SCHEDULE-2**: `ends` has exactly the messages that transmit, and `waiting` the others.

use std::collections::BTreeSet;

use slab::Slab;

use super::rank::{Key, LinkIndex, Picos, Rank};
use super::wait_queues::WaitQueues;
use crate::message::HostId;

/// A message that has not been sent completely.
#[derive(Debug)]
struct Job<T> {
    /// The sender's uplink and the receiver's downlink.
    links: [LinkIndex; 2],
    age: u64,
    state: JobState,
    /// Value to return to the caller.
    content: T,
}

#[derive(Clone, Copy, Debug)]
enum JobState {
    /// Waits, with this remaining transmission time.
    Waiting(Picos),
    /// Transmits until this time, unless it is stopped.
    Transmitting(Picos),
}

/// All messages that have not been sent completely, and the transmitting ones among them.
#[derive(Debug)]
pub(super) struct Schedule<T> {
    /// Message on each link.
    carries: Box<[Option<Key>]>,
    jobs: Slab<Job<T>>,
    waiting: WaitQueues,
    /// Transmitting messages: end time, age, key.
    ends: BTreeSet<(Picos, u64, Key)>,
    /// Links that were freed since SCHEDULE-1 last held everywhere.
    freed: Vec<LinkIndex>,
    /// Number of messages so far.
    count: u64,
}

impl<T> Schedule<T> {
    /// Returns an empty schedule for `hosts` hosts.
    pub(super) fn new(hosts: u32) -> Self {
        let links = 2 * hosts as usize;
        Self {
            carries: vec![None; links].into(),
            jobs: Slab::new(),
            waiting: WaitQueues::new(links),
            ends: BTreeSet::new(),
            freed: Vec::new(),
            count: 0,
        }
    }

    /// Returns when the next message is completely sent, unless another one arrives before.
    pub(super) fn next_end(&self) -> Option<Picos> {
        self.ends.first().map(|&(end, ..)| end)
    }

    /// Adds a message that takes `work` on a link. `now` is not after the next end.
    pub(super) fn add(&mut self, now: Picos, from: HostId, to: HostId, work: Picos, content: T) {
        let links = [from as LinkIndex, self.carries.len() / 2 + to as LinkIndex];
        let rank = Rank { remaining: work, age: self.count };
        self.count += 1;
        let state = JobState::Waiting(work);
        let key = self.jobs.insert(Job { links, age: rank.age, state, content });
        if links.iter().any(|&link| self.blocks(now, link, rank)) {
            self.waiting.insert(links, rank, key);
        } else {
            self.start(now, key, rank);
            self.repair(now);
        }
    }

    /// Removes the next message that is completely sent, and returns when it was.
    pub(super) fn complete(&mut self) -> Option<(Picos, T)> {
        let (now, _, key) = self.ends.pop_first()?;
        let job = self.jobs.remove(key);
        for link in job.links {
            self.carries[link] = None;
            self.freed.push(link);
        }
        self.repair(now);
        Some((now, job.content))
    }

    /// Returns the current rank of a message.
    fn rank(&self, now: Picos, key: Key) -> Rank {
        let job = &self.jobs[key];
        let remaining = match job.state {
            JobState::Waiting(remaining) => remaining,
            JobState::Transmitting(end) => end - now,
        };
        Rank { remaining, age: job.age }
    }

    /// Returns whether a link carries a message that precedes this rank.
    fn blocks(&self, now: Picos, link: LinkIndex, rank: Rank) -> bool {
        self.carries[link].is_some_and(|key| self.rank(now, key) < rank)
    }

    /// Restores SCHEDULE-1.
    fn repair(&mut self, now: Picos) {
        while let Some(link) = self.freed.pop() {
            if let Some((rank, key)) = self.successor(now, link) {
                self.waiting.remove_first(self.jobs[key].links);
                self.start(now, key, rank);
            }
        }
    }

    /// Returns the first message that waits for a link and is not blocked at either of its links.
    fn successor(&self, now: Picos, link: LinkIndex) -> Option<(Rank, Key)> {
        let carried = self.carries[link].map(|key| self.rank(now, key));
        let earlier = |rank: &Rank| carried.is_none_or(|carried| *rank < carried);
        let mut waiting = self.waiting.firsts(link).take_while(|(rank, _)| earlier(rank));
        waiting.find(|&(rank, key)| {
            let [uplink, downlink] = self.jobs[key].links;
            let other = if link == uplink { downlink } else { uplink };
            !self.blocks(now, other, rank)
        })
    }

    /// Starts a message on its links and stops the messages that they carried.
    fn start(&mut self, now: Picos, key: Key, rank: Rank) {
        let links = self.jobs[key].links;
        for link in links {
            if let Some(stopped) = self.carries[link] {
                // Its other link is free now. Messages that it blocked at this link are blocked by
                // the new message.
                let others =
                    self.stop(now, stopped).into_iter().filter(|link| !links.contains(link));
                self.freed.extend(others);
            }
        }
        for link in links {
            self.carries[link] = Some(key);
        }
        let end = now + rank.remaining;
        self.jobs[key].state = JobState::Transmitting(end);
        self.ends.insert((end, rank.age, key));
    }

    /// Stops a message, which waits again.
    fn stop(&mut self, now: Picos, key: Key) -> [LinkIndex; 2] {
        let rank = self.rank(now, key);
        self.ends.remove(&(now + rank.remaining, rank.age, key));
        self.jobs[key].state = JobState::Waiting(rank.remaining);
        let links = self.jobs[key].links;
        for link in links {
            self.carries[link] = None;
        }
        self.waiting.insert(links, rank, key);
        links
    }
}
