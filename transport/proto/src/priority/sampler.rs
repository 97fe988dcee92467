//! The sizes of messages that arrive, and the cutoffs that follow from them.
//!
//! The kernel leaves this to a user program (`homa_prio`, HM `util/homa_prio.cc`): the number of
//! unscheduled levels is the share of unscheduled bytes and one more, and the cutoffs give each of
//! them the same number of bytes (SIGCOMM 2018 section 3.4; docs/networks.md). Requirement PRIO-8.
//! Transports of one host publish their arrivals to each other, since their messages meet at one
//! port (PRIO-17).

use super::OwnCutoffs;
use super::lengths_elsewhere::LengthsElsewhere;
use crate::config::Config;
use crate::extent::extent;
use crate::histogram::octaves;
use crate::neighbours::{ArrivingLengths, EIGHTHS};
use crate::time::{Instant, SEC, USEC};
use apus_wire::{DATA_HEADER_LEN, PRIORITIES, WIRE_OVERHEAD};

/// Classes for all lengths that a `u32` holds.
const CLASSES: usize = octaves::bucket(u32::MAX as u64) + 1;

/// Sizes of the messages that have arrived since the cutoffs were computed last.
#[derive(Debug)]
pub(crate) struct Sampler {
    /// Unscheduled bytes by class of the message's length.
    unscheduled: Box<[u64; CLASSES]>,
    /// All bytes.
    total: u64,
    messages: u64,
    since: Instant,
    interval: u64,
    min_messages: u64,
    levels: u8,
    /// Arrivals at the other transports of the host.
    elsewhere: LengthsElsewhere,
    /// The last publication for them, and its time.
    published: (ArrivingLengths, Instant),
}

/// Least time between two publications in nanoseconds, whatever the interval is. Chosen by us: more
/// often it would cost more than it is worth.
const PUBLISH_INTERVAL: u64 = 1_000 * USEC;

impl Sampler {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            unscheduled: Box::new([0; CLASSES]),
            total: 0,
            messages: 0,
            since: Instant::ZERO,
            interval: config.cutoffs_interval_usecs() * USEC,
            min_messages: config.cutoffs_min_messages(),
            levels: config.num_priorities() as u8,
            elsewhere: LengthsElsewhere::default(),
            published: Default::default(),
        }
    }

    /// Counts a message whose first `unscheduled` bytes arrived without a GRANT. An empty one
    /// counts as one byte (EXTENT-1): cutoffs distribute bytes, and there would be none otherwise.
    pub(crate) fn record(&mut self, length: u32, unscheduled: u32) {
        if self.interval > 0 {
            let unscheduled = if length == 0 { extent(0) } else { unscheduled.min(length) };
            let length = extent(length);
            self.unscheduled[octaves::bucket(length.into())] += u64::from(unscheduled);
            self.total += u64::from(length);
            self.messages += 1;
        }
    }

    /// If the cutoffs are due: returns the bytes that arrived without a GRANT since the last
    /// renewal, with the headers of a packet for each message, and the elapsed nanoseconds.
    pub(crate) fn due(&self, now: Instant) -> Option<(u64, u64)> {
        // Without an interval no message counts.
        let nanos = now.since(self.since);
        let messages = self.messages + self.elsewhere.messages_in(nanos);
        let is_due = messages >= self.min_messages && nanos >= self.interval && self.messages > 0;
        let headers = self.messages * (DATA_HEADER_LEN as u64 + WIRE_OVERHEAD);
        is_due.then(|| (self.unscheduled.iter().sum::<u64>() + headers, nanos))
    }

    /// Recomputes the cutoffs if they are due. Returns whether they changed.
    pub(crate) fn renew(&mut self, now: Instant, own: &mut OwnCutoffs) -> bool {
        if self.due(now).is_none() {
            return false;
        }
        let table = self.table(now.since(self.since));
        self.published.0 = self.arriving(now);
        self.unscheduled.fill(0);
        (self.total, self.messages, self.since) = (0, 0, now);
        // The lowest entry means "no limit"; compare the others.
        let lowest = table.iter().position(|cutoff| *cutoff > 0).unwrap_or(0);
        let present = &own.announced().unscheduled;
        let same = usize::from(own.scheduled_levels()) == lowest
            && table[lowest + 1..] == present[lowest + 1..];
        if !same {
            own.replace(table);
        }
        !same
    }

    /// Stores the arrivals at the other transports of the host, whose link carries `link_mbps`
    /// Mbit/s.
    pub(crate) fn observe(&mut self, elsewhere: &[ArrivingLengths], link_mbps: u64) {
        self.elsewhere.set(elsewhere, link_mbps);
    }

    /// Returns the arrivals here, if it is time to publish them again; never if the cutoffs are not
    /// renewed.
    pub(crate) fn poll_lengths(&mut self, now: Instant) -> Option<ArrivingLengths> {
        let interval = self.interval.max(PUBLISH_INTERVAL);
        if self.interval == 0 || now.since(self.published.1) < interval {
            return None;
        }
        if self.since == Instant::ZERO {
            // The clock may be older than the transport.
            self.since = now;
        }
        self.published.1 = now;
        // A new sample is too small to use.
        if now.since(self.since) >= interval {
            self.published.0 = self.arriving(now);
        }
        Some(self.published.0)
    }

    /// The counts until `now`, scaled to a second.
    fn arriving(&self, now: Instant) -> ArrivingLengths {
        let nanos = now.since(self.since).max(1);
        let in_a_second =
            |count: u64| (u128::from(count) * u128::from(SEC) / u128::from(nanos)) as u64;
        let unscheduled: u64 = self.unscheduled.iter().sum();
        let mut eighths = [0; EIGHTHS];
        let (mut eighth, mut sum) = (0, 0);
        for (class, bytes) in self.unscheduled.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            sum += bytes;
            while eighth < EIGHTHS && sum * EIGHTHS as u64 >= unscheduled * (eighth as u64 + 1) {
                eighths[eighth] = octaves::largest(class) as u32;
                eighth += 1;
            }
        }
        ArrivingLengths {
            eighths,
            unscheduled: in_a_second(unscheduled),
            total: in_a_second(self.total),
            messages: in_a_second(self.messages),
        }
    }

    /// The cutoffs for the bytes counted here in `nanos` nanoseconds and the bytes that arrived
    /// elsewhere in that time.
    fn table(&self, nanos: u64) -> [u32; PRIORITIES] {
        let mut counts = self.unscheduled.clone();
        let here: u64 = counts.iter().sum();
        let total = self.total + self.elsewhere.add_to(&mut *counts, here, self.total, nanos);
        let unscheduled: u64 = counts.iter().sum();
        let wanted = unscheduled_levels(u64::from(self.levels), unscheduled, total);
        let is_shared = self.levels == 2 && unscheduled < total;
        let (part, parts) = if is_shared { ABOVE_SHARED } else { (1, wanted) };

        let mut table = [0; PRIORITIES];
        let mut level = usize::from(self.levels) - 1;
        let lowest = usize::from(self.levels) - wanted as usize;
        let mut sum = 0;
        let mut filled = 0;
        for (class, bytes) in counts.iter().enumerate().filter(|(_, bytes)| **bytes > 0) {
            sum += bytes;
            table[level] = octaves::largest(class) as u32;
            // This level is full; the next class starts the next one. A class may fill several.
            while level > lowest && sum * parts >= unscheduled * part * (filled + 1) {
                filled += 1;
                level -= 1;
                table[level] = octaves::largest(class) as u32;
            }
        }
        table
    }
}

/// With two levels, of which scheduled packets share the lower one: the part of the unscheduled
/// bytes that the upper one carries. Chosen by us, from sweeps (docs/networks.md): where most bytes
/// are unscheduled, with half of them p99 of messages of 500 to 1,000 bytes is ten times as long,
/// and with nine tenths that of shorter ones half as much again.
const ABOVE_SHARED: (u64, u64) = (3, 4);

/// The number of levels for unscheduled packets (PRIO-8): their share of `levels`, rounded, and one
/// more.
///
/// Scheduled packets keep a level if there are three. Of two, they share the lower one with the
/// longest unscheduled messages: short messages suffer more from 10,000 unscheduled bytes before
/// them than those suffer from scheduled packets.
fn unscheduled_levels(levels: u64, unscheduled: u64, total: u64) -> u64 {
    let share = (levels * unscheduled + total / 2) / total.max(1);
    match levels {
        1 | 2 => levels,
        _ if unscheduled < total => (share + 1).min(levels - 1),
        _ => levels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sampler(levels: u64) -> (Sampler, OwnCutoffs) {
        let config =
            Config::builder().num_priorities(levels).cutoffs_min_messages(100).build().unwrap();
        (Sampler::new(&config), OwnCutoffs::configured(&config))
    }

    const LATER: Instant = Instant::from_nanos(2_000_000_000);

    /// Requirement PRIO-8.
    #[test]
    fn each_unscheduled_level_gets_the_same_bytes() {
        let (mut sampler, mut own) = sampler(8);
        for length in 1..=1_000 {
            sampler.record(length, length);
        }
        assert!(sampler.renew(LATER, &mut own));
        assert_eq!(own.scheduled_levels(), 0, "nothing is scheduled");
        let table = own.announced().unscheduled;
        // With sizes 1 to n once each, a share s of the bytes lies below n * sqrt(s).
        for (level, share) in [(7, 0.125_f64), (6, 0.25), (4, 0.5), (1, 0.875)] {
            let expected = 1_000.0 * share.sqrt();
            let ratio = f64::from(table[level]) / expected;
            assert!((0.95..1.2).contains(&ratio), "level {level}: {table:?}");
        }
    }

    /// Cutoffs after messages of which `per_cent` of the bytes were unscheduled, and whether they
    /// are new.
    fn learned(levels: u64, per_cent: u32) -> (OwnCutoffs, bool) {
        let (mut sampler, mut own) = sampler(levels);
        for _ in 0..1_000 {
            sampler.record(100_000, per_cent * 1_000);
        }
        let is_new = sampler.renew(LATER, &mut own);
        (own, is_new)
    }

    /// Levels that are left to scheduled packets then.
    fn scheduled_levels(levels: u64, per_cent: u32) -> u8 {
        learned(levels, per_cent).0.scheduled_levels()
    }

    #[test]
    fn cutoffs_that_have_changed_have_another_version() {
        let (own, is_new) = learned(8, 25);
        assert!(is_new);
        assert_eq!(own.announced().version, 2);
    }

    /// PRIO-8.
    #[test]
    fn unscheduled_packets_have_their_share_of_the_levels_and_one_more() {
        let shares = [1, 7, 25, 77, 99, 100];
        assert_eq!(shares.map(|share| scheduled_levels(8, share)), [7, 6, 5, 1, 1, 0]);
        assert_eq!(shares.map(|share| scheduled_levels(4, share)), [3, 3, 2, 1, 1, 0]);
        assert_eq!(shares.map(|share| scheduled_levels(3, share)), [2, 2, 1, 1, 1, 0]);
        assert_eq!(
            [1, 2].map(|levels| scheduled_levels(levels, 25)),
            [0, 0],
            "they share the lowest"
        );
    }

    /// PRIO-8.
    #[test]
    fn of_two_levels_scheduled_packets_share_the_lower_one_with_the_longest_unscheduled_messages() {
        let cutoff = |scheduled| {
            let (mut sampler, mut own) = sampler(2);
            for length in 1..=1_000 {
                sampler.record(length, length);
            }
            sampler.record(scheduled, 1);
            sampler.renew(LATER, &mut own);
            assert_eq!(own.scheduled_levels(), 0);
            let table = own.announced().unscheduled;
            assert_eq!(table[0], u32::MAX, "{table:?}");
            f64::from(table[1])
        };
        // With sizes 1 to n once each, a share s of the bytes lies below n * sqrt(s).
        let (half, most) = (1_000.0 * 0.5_f64.sqrt(), 1_000.0 * 0.75_f64.sqrt());
        assert!((0.95..1.2).contains(&(cutoff(1) / half)), "nothing is scheduled");
        assert!((0.95..1.2).contains(&(cutoff(500_000) / most)));
    }

    #[test]
    fn too_few_messages_too_early_or_the_same_sizes_change_nothing() {
        let (mut sampler, mut own) = sampler(8);
        let before = own.clone();
        for _ in 0..99 {
            sampler.record(10, 10);
        }
        assert!(!sampler.renew(LATER, &mut own));
        sampler.record(10, 10);
        assert!(!sampler.renew(Instant::from_nanos(5), &mut own));
        assert_eq!(own, before);
        assert!(sampler.renew(LATER, &mut own));
        for _ in 0..200 {
            sampler.record(10, 10);
        }
        assert!(!sampler.renew(LATER.plus(2_000_000_000), &mut own), "nothing has changed");
    }

    /// PRIO-8: a server that receives only empty messages keeps a valid table.
    #[test]
    fn empty_messages_alone_make_a_valid_table() {
        let (mut sampler, mut own) = sampler(8);
        for _ in 0..100 {
            sampler.record(0, 0);
        }
        assert!(sampler.renew(LATER, &mut own));
        assert_eq!(own.scheduled_levels(), 0);
        let table = own.announced().unscheduled;
        assert!(table[0] == u32::MAX && table[1..].iter().all(|cutoff| *cutoff == 1), "{table:?}");
    }

    /// `count` messages of `length` unscheduled bytes in a second.
    fn arriving(count: u64, length: u32) -> ArrivingLengths {
        let bytes = count * u64::from(length);
        ArrivingLengths { eighths: [length; 8], unscheduled: bytes, total: bytes, messages: count }
    }

    /// PRIO-17.
    #[test]
    fn messages_that_arrive_elsewhere_on_the_host_have_their_levels() {
        let longest_on_level_5 = |elsewhere: &[ArrivingLengths]| {
            let (mut sampler, mut own) = sampler(8);
            sampler.observe(elsewhere, 10_000);
            for _ in 0..1_000 {
                sampler.record(5_000, 5_000);
            }
            sampler.renew(LATER, &mut own);
            own.announced().unscheduled[5]
        };
        assert!(longest_on_level_5(&[]) > 5_000, "alone, all levels are theirs");
        let short = arriving(50_000, 50);
        assert!(longest_on_level_5(&[short]) < 60, "half of the bytes are of shorter messages");
        assert!(longest_on_level_5(&[arriving(500, 50)]) > 5_000, "a hundredth of them");
    }

    /// PRIO-17.
    #[test]
    fn a_neighbour_leaves_an_equal_part_of_the_levels() {
        let levels_of_own = |elsewhere: &[ArrivingLengths]| {
            let (mut sampler, mut own) = sampler(8);
            sampler.observe(elsewhere, 10_000);
            for _ in 0..1_000 {
                sampler.record(500, 500);
            }
            sampler.record(1_000_000, 1);
            sampler.renew(LATER, &mut own);
            own.announced().unscheduled.iter().filter(|cutoff| **cutoff >= 500).count()
        };
        let liar = ArrivingLengths {
            eighths: [1; 8],
            unscheduled: u64::MAX,
            total: u64::MAX,
            messages: u64::MAX,
        };
        // A third of the bytes here are unscheduled: they have three levels and one more. Half of
        // the bytes, rounded down, fill one level and not quite a second one; three quarters fill
        // two.
        assert_eq!(
            [levels_of_own(&[]), levels_of_own(&[liar]), levels_of_own(&[liar; 3])],
            [4, 3, 2]
        );
    }

    /// PRIO-17: a transport with few messages has cutoffs when its host has enough of them.
    #[test]
    fn messages_elsewhere_count_as_messages() {
        let (mut sampler, mut own) = sampler(8);
        sampler.record(5_000, 5_000);
        assert!(!sampler.renew(LATER, &mut own), "one is not enough");
        sampler.observe(&[arriving(1_000, 50)], 10_000);
        assert!(sampler.renew(LATER, &mut own));
        sampler.observe(&[arriving(1_000, 70)], 10_000);
        assert!(!sampler.renew(LATER.plus(2 * SEC), &mut own), "none here");
    }

    /// PRIO-17.
    #[test]
    fn what_arrives_is_published_once_in_an_interval() {
        let (mut sampler, mut own) = sampler(8);
        let begin = Instant::from_nanos(100 * SEC);
        assert_eq!(sampler.poll_lengths(begin), Some(ArrivingLengths::default()));
        for length in 1..=1_000 {
            sampler.record(length, length.min(100));
        }
        assert_eq!(sampler.poll_lengths(begin.plus(SEC - 1)), None);
        let published = sampler.poll_lengths(begin.plus(2 * SEC)).unwrap();
        assert_eq!((published.unscheduled, published.messages), ((5_050 + 90_000) / 2, 500));
        assert_eq!(published.total, 500_500 / 2);
        assert!((168..190).contains(&published.eighths[0]), "{published:?}");
        assert!((525..600).contains(&published.eighths[3]), "{published:?}");
        assert!(published.eighths.is_sorted() && published.eighths[7] >= 1_000);
        // The renewed sample is published, and not the start of the next one.
        assert!(sampler.renew(begin.plus(4 * SEC), &mut own));
        let published = sampler.poll_lengths(begin.plus(4 * SEC)).unwrap();
        assert_eq!(published.messages, 250);
    }

    fn length() -> impl Strategy<Value = u32> {
        prop_oneof![1 => Just(0), 9 => 1u32..200_000_000]
    }

    proptest! {
        /// For any sizes, a configuration could have the table.
        #[test]
        fn the_table_is_always_valid(
            sizes in proptest::collection::vec((length(), 0u32..60_000), 100..200),
            levels in 1u64..=8,
            elsewhere in proptest::collection::vec(any::<([u32; 8], u64, u64, u64)>(), 0..4),
        ) {
            let (mut sampler, mut own) = sampler(levels);
            let elsewhere: Vec<ArrivingLengths> = elsewhere
                .into_iter()
                .map(|(eighths, unscheduled, total, messages)| ArrivingLengths {
                    eighths, unscheduled, total, messages,
                })
                .collect();
            sampler.observe(&elsewhere, 400_000);
            for (length, unscheduled) in sizes {
                sampler.record(length, unscheduled);
            }
            sampler.renew(LATER, &mut own);
            let table = own.announced().unscheduled;
            let lowest = usize::from(own.scheduled_levels());
            prop_assert!(table[..lowest].iter().all(|cutoff| *cutoff == 0));
            prop_assert_eq!(table[lowest], u32::MAX);
            let used = &table[lowest..levels as usize];
            prop_assert!(used.windows(2).all(|pair| pair[0] >= pair[1] && pair[1] > 0), "{:?}", table);
        }
    }
}
