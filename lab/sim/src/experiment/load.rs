//! Message streams of a workload.

use apus_workload::{Arrivals, SizeDistribution, Stream, rng};
use rand::RngExt;
use rand::distr::Distribution;
use rand_pcg::Pcg64;

use crate::message::{HostId, Message};
use apus_workload::time::Nanos;

/// Traffic pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// From any host to any other one, all pairs being equally likely.
    Uniform,
    /// From this number of hosts to one receiver at the same moment: each arrival is a group of
    /// messages of the same size. From 1 to the number of hosts less one.
    Incast(u32),
}

/// An endless stream of messages in order of time: open loop, Poisson.
///
/// In the papers every host has its own arrivals. A single Poisson process with random senders is
/// equivalent.
#[derive(Debug)]
pub struct Load {
    arrivals: Arrivals,
    sizes: SizeDistribution,
    size_rng: Pcg64,
    pair_rng: Pcg64,
    hosts: u32,
    pattern: Pattern,
    begin: Nanos,
    next_number: u32,
    /// Messages of the current arrival that have not been returned.
    group: Vec<Message>,
}

impl Load {
    /// Returns messages with these sizes among `hosts` hosts, on average `per_second` of them, from
    /// `begin` on, numbered from `first_number`.
    #[must_use]
    pub fn new(
        sizes: SizeDistribution,
        hosts: u32,
        pattern: Pattern,
        per_second: f64,
        begin: Nanos,
        first_number: u32,
        seed: u64,
    ) -> Self {
        let group = match pattern {
            Pattern::Uniform => 1,
            Pattern::Incast(senders) => senders,
        };
        Self {
            arrivals: Arrivals::at_rate(per_second / f64::from(group), rng(seed, Stream::Arrivals)),
            sizes,
            size_rng: rng(seed, Stream::Sizes),
            pair_rng: rng(seed, Stream::Destinations),
            hosts,
            pattern,
            begin,
            next_number: first_number,
            group: Vec::new(),
        }
    }

    /// Draws a host other than `other`.
    fn other_than(&mut self, other: HostId) -> HostId {
        let drawn = self.pair_rng.random_range(0..self.hosts - 1);
        drawn + u32::from(drawn >= other)
    }

    fn message(&mut self, from: HostId, to: HostId, bytes: u32, at: Nanos) -> Message {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        Message { number, from, to, bytes, at }
    }

    fn arrive(&mut self) {
        let gap = self.arrivals.next().expect("endless").as_nanos();
        let at = self.begin + gap as Nanos;
        let bytes = self.sizes.sample(&mut self.size_rng).max(Message::SHORTEST);
        let to = self.pair_rng.random_range(0..self.hosts);
        match self.pattern {
            Pattern::Uniform => {
                let from = self.other_than(to);
                let message = self.message(from, to, bytes, at);
                self.group.push(message);
            }
            Pattern::Incast(senders) => {
                // Consecutive hosts of a ring from a random position: different hosts without a
                // list.
                let start = self.pair_rng.random_range(0..self.hosts - 1);
                for i in (0..senders.min(self.hosts - 1)).rev() {
                    let from = (to + 1 + (start + i) % (self.hosts - 1)) % self.hosts;
                    let message = self.message(from, to, bytes, at);
                    self.group.push(message);
                }
            }
        }
    }
}

impl Iterator for Load {
    type Item = Message;

    fn next(&mut self) -> Option<Message> {
        if self.group.is_empty() {
            self.arrive();
        }
        self.group.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn load(pattern: Pattern, seed: u64) -> Load {
        Load::new(SizeDistribution::fixed(100), 10, pattern, 1e6, 500, 7, seed)
    }

    #[test]
    fn all_pairs_are_equally_likely_and_no_host_sends_to_itself() {
        let mut counts = [[0_u32; 10]; 10];
        for message in load(Pattern::Uniform, 1).take(90_000) {
            counts[message.from as usize][message.to as usize] += 1;
        }
        for (from, row) in counts.iter().enumerate() {
            for (to, count) in row.iter().enumerate() {
                // Five standard deviations of 1000: 160.
                let expected = if from == to { 0..1 } else { 840..1_160 };
                assert!(expected.contains(count), "{from} to {to}: {count}");
            }
        }
    }

    #[test]
    fn messages_come_at_the_rate_and_in_order() {
        let messages: Vec<Message> = load(Pattern::Uniform, 2).take(10_000).collect();
        assert!(messages.windows(2).all(|pair| pair[0].at <= pair[1].at));
        assert!(messages.windows(2).all(|pair| pair[0].number + 1 == pair[1].number));
        let seconds = (messages.last().unwrap().at - 500) as f64 / 1e9;
        assert!(
            (0.0095..0.0105).contains(&seconds),
            "{seconds} s for 10,000 at 1,000,000 a second"
        );
    }

    #[test]
    fn an_incast_has_different_senders_and_one_receiver() {
        let messages: Vec<Message> = load(Pattern::Incast(9), 3).take(9 * 50).collect();
        for group in messages.chunks(9) {
            let senders: BTreeSet<HostId> = group.iter().map(|message| message.from).collect();
            assert_eq!(senders.len(), 9);
            assert!(!senders.contains(&group[0].to));
            assert!(group.iter().all(|m| (m.to, m.at) == (group[0].to, group[0].at)));
        }
    }

    #[test]
    fn a_seed_determines_the_stream() {
        let first = |seed| load(Pattern::Uniform, seed).take(100).collect::<Vec<_>>();
        assert_eq!(first(5), first(5));
        assert_ne!(first(5), first(6));
    }
}
