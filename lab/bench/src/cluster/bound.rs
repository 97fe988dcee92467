//! The bound: the best possible p99 of short messages on links that do not preempt packets.
//!
//! A link finishes the packet that it has started. Even a short message of the highest priority
//! waits for the packet currently on the wire, at each link that it crosses. On slow links this is
//! a multiple of the message's time on an idle path, and no transport can avoid it.

use super::offered_load::packets;
use crate::slowdown::Scale;

/// The properties of the links that determine the bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links<'a> {
    pub(super) mbps: u64,
    pub(super) mtu: u32,
    /// Number of links that a request and its reply cross in sequence.
    pub(super) crossed: usize,
    /// Share of busy time of each link.
    pub(super) load: f64,
    /// Each size of a message and its share of the messages.
    pub(super) shares: &'a [(u32, f64)],
}

/// Number of steps that divide the longest packet's time.
const STEPS: usize = 400;

/// Returns the computation of the best p99 slowdown of short messages, line by line; empty if their
/// best times are unknown.
pub(super) fn lines(links: Links<'_>, scale: &Scale) -> Vec<String> {
    let Links { mbps, mtu, crossed, load, shares } = links;
    let full = links.longest();
    let short: Vec<(f64, f64)> = scale
        .best
        .iter()
        .zip(shares)
        .filter(|((size, _), _)| *size <= scale.short)
        .map(|(&(_, best), &(_, share))| (best as f64 / 1e3, share))
        .collect();
    if short.is_empty() {
        return Vec::new();
    }
    let bases = short.iter().map(|&(base, _)| base);
    let (least, most) = (bases.clone().fold(f64::INFINITY, f64::min), bases.fold(0.0, f64::max));
    let waits = links.waits();
    vec![
        format!(
            "a full packet of {mtu} bytes takes {full:.1} us on a link of {mbps} Mbit/s, and is not interrupted"
        ),
        format!(
            "a request and its reply cross {crossed} links, each of them busy for {:.0} % of the time: one in a \
             hundred waits {:.1} us or longer for packets that were on the wire before it, whatever its priority",
            load * 100.0,
            waits.quantile(0.99)
        ),
        format!(
            "short messages take {least:.0} to {most:.0} us when nothing else is under way: their p99 slowdown is \
             {:.2} at best",
            p99(&waits, &short)
        ),
    ]
}

impl Links<'_> {
    /// Returns the serialization time of a full packet in microseconds.
    fn longest(&self) -> f64 {
        let full = packets(self.mtu);
        full.wire_bytes(full.payload) as f64 * 8.0 / self.mbps as f64
    }

    /// Returns the distribution of a message's total wait at all links.
    fn waits(&self) -> Waits {
        let cut = packets(self.mtu);
        let longest = cut.wire_bytes(cut.payload) as f64;
        // The packets on a link, by their bytes on the wire.
        let mut kinds: Vec<(f64, f64)> = Vec::new();
        for &(size, share) in self.shares {
            let (full, rest) = (size / cut.payload, size % cut.payload);
            kinds.push((longest, share * f64::from(full) * longest));
            if rest > 0 {
                let rest = cut.wire_bytes(rest) as f64;
                kinds.push((rest, share * rest));
            }
        }
        let bytes: f64 = kinds.iter().map(|&(_, bytes)| bytes).sum();
        // At one link: no wait if it is idle, else the rest of a packet, uniformly distributed.
        let mut one = vec![0.0; STEPS + 1];
        one[0] = 1.0 - self.load;
        for (packet, weight) in kinds {
            let steps = ((packet / longest * STEPS as f64).round() as usize).max(1);
            let each = self.load * weight / bytes / steps as f64;
            one[1..=steps].iter_mut().for_each(|share| *share += each);
        }
        let mut shares = vec![1.0];
        for _ in 0..self.crossed {
            shares = convolved(&shares, &one);
        }
        Waits { shares, step: self.longest() / STEPS as f64 }
    }
}

/// The distribution of waits: the share of the messages that wait for each number of steps.
struct Waits {
    shares: Vec<f64>,
    /// In microseconds.
    step: f64,
}

impl Waits {
    /// Returns the share of the messages that wait for longer than that.
    fn beyond(&self, micros: f64) -> f64 {
        let steps = (micros / self.step) as usize;
        self.shares.iter().skip(steps + 1).sum()
    }

    /// Returns the wait that this share of the messages does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let mut sum = 0.0;
        let reached = |each: &f64| {
            sum += each;
            sum >= share
        };
        let steps = self.shares.iter().position(reached).unwrap_or(self.shares.len());
        steps as f64 * self.step
    }
}

/// Returns the slowdown exceeded by one message in a hundred; each kind has a base and a share.
fn p99(waits: &Waits, kinds: &[(f64, f64)]) -> f64 {
    let all: f64 = kinds.iter().map(|&(_, share)| share).sum();
    let beyond = |slowdown: f64| {
        let each = kinds.iter().map(|&(base, share)| share * waits.beyond((slowdown - 1.0) * base));
        each.sum::<f64>() / all.max(f64::MIN_POSITIVE)
    };
    let (mut low, mut high) = (1.0, 1e6);
    while high - low > 1e-3 {
        let middle = f64::midpoint(low, high);
        if beyond(middle) > 0.01 { low = middle } else { high = middle }
    }
    high
}

/// Returns the distribution of the sum of two independent variables.
fn convolved(one: &[f64], other: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; one.len() + other.len() - 1];
    for (at, share) in one.iter().enumerate() {
        for (by, each) in other.iter().enumerate() {
            sum[at + by] += share * each;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(crossed: usize, load: f64) -> Links<'static> {
        // One full packet each; 1538 bytes at 100 Mbit/s.
        Links { mbps: 100, mtu: 1500, crossed, load, shares: &[(1416, 1.0)] }
    }

    fn close(one: f64, other: f64) {
        assert!((one - other).abs() < 0.01 * other, "{one} is not {other}");
    }

    #[test]
    fn a_link_is_waited_for_as_often_as_it_is_busy_and_half_a_packet_on_average() {
        let waits = links(1, 0.6).waits();
        close(waits.beyond(0.0), 0.6);
        let mean: f64 =
            waits.shares.iter().enumerate().map(|(at, share)| at as f64 * share * waits.step).sum();
        close(mean, 0.6 * 123.04 / 2.0);
        close(waits.quantile(0.7), 123.04 / 2.0);
    }

    #[test]
    fn no_message_waits_for_longer_than_a_packet_at_each_link() {
        let waits = links(4, 0.8).waits();
        assert!(waits.beyond(4.0 * 123.04) < 1e-9);
        close(waits.shares.iter().sum(), 1.0);
        // Bernoulli times uniform, four times: mean 1.6 packets, deviation 0.65.
        let p99 = waits.quantile(0.99) / 123.04;
        assert!((2.9..3.3).contains(&p99), "{p99}");
    }

    #[test]
    fn a_slowdown_is_what_a_wait_is_to_the_base() {
        let waits = links(4, 0.8).waits();
        let wait = waits.quantile(0.99);
        close(p99(&waits, &[(100.0, 0.5)]), 1.0 + wait / 100.0);
        let scale = Scale { best: vec![(1416, 100_000)], groups: vec![1416], short: 1416 };
        let lines = lines(links(4, 0.8), &scale);
        assert!(lines[0].contains("takes 123.0 us on a link of 100 Mbit/s"), "{lines:?}");
        assert!(lines[2].contains(&format!("{:.2} at best", 1.0 + wait / 100.0)), "{lines:?}");
    }

    #[test]
    fn nothing_is_said_without_best_times() {
        let scale = Scale { best: Vec::new(), groups: vec![1416], short: 1416 };
        assert_eq!(lines(links(4, 0.8), &scale), [""; 0]);
    }

    #[test]
    fn idle_links_delay_no_message() {
        let waits = links(4, 0.0).waits();
        assert_eq!((waits.beyond(0.0), waits.quantile(0.99)), (0.0, 0.0));
        close(p99(&waits, &[(100.0, 1.0)]), 1.0);
    }
}
