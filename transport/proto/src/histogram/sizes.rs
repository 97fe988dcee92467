//! Histogram of message lengths.

/// Messages by length, in the buckets of the kernel module (docs/reference/homa-module.md,
/// *Metrics*): 64 of 64 bytes, then 1 KiB each up to 128 KiB, and one for longer messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeHistogram {
    counts: [u64; BUCKETS],
    bytes: u64,
}

/// Width of the buckets of short messages, in bytes.
const SHORT: usize = 64;
/// Longest message that is in one of them.
const SHORT_MAX: usize = 64 * SHORT;
/// Width of the others.
const MEDIUM: usize = 1_024;
/// Longest message that has a bucket of its length.
const MEDIUM_MAX: usize = 128 * MEDIUM;
const BUCKETS: usize = SHORT_MAX / SHORT + (MEDIUM_MAX - SHORT_MAX) / MEDIUM + 1;

impl Default for SizeHistogram {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], bytes: 0 }
    }
}

impl SizeHistogram {
    /// Counts a message of `bytes` bytes.
    #[inline]
    pub const fn record(&mut self, bytes: usize) {
        self.counts[bucket(bytes)] += 1;
        self.bytes += bytes as u64;
    }

    /// Returns the buckets that are not empty, the shortest first: the longest message that belongs
    /// to the bucket, in bytes, and the number of messages in it. `u64::MAX` is no bound.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let all = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        all.map(|(index, count)| (longest(index), *count))
    }

    /// Adds the messages of another histogram.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.bytes += other.bytes;
    }

    /// Returns the bytes of all messages.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

const fn bucket(bytes: usize) -> usize {
    // An empty message counts in the shortest bucket.
    let last = bytes.saturating_sub(1);
    if last < SHORT_MAX {
        last / SHORT
    } else if last < MEDIUM_MAX {
        (last - SHORT_MAX) / MEDIUM + SHORT_MAX / SHORT
    } else {
        BUCKETS - 1
    }
}

const fn longest(index: usize) -> u64 {
    let short = SHORT_MAX / SHORT;
    if index < short {
        ((index + 1) * SHORT) as u64
    } else if index < BUCKETS - 1 {
        (SHORT_MAX + (index - short + 1) * MEDIUM) as u64
    } else {
        u64::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_those_of_the_kernel_module() {
        assert_eq!(BUCKETS, 64 + 124 + 1);
        let bounds = [
            (0, 64),
            (1, 64),
            (64, 64),
            (65, 128),
            (4_096, 4_096),
            (4_097, 5_120),
            (131_072, 131_072),
        ];
        for (bytes, upto) in bounds {
            assert_eq!(longest(bucket(bytes)), upto, "{bytes}");
        }
        assert_eq!((bucket(131_073), longest(BUCKETS - 1)), (BUCKETS - 1, u64::MAX));
    }

    #[test]
    fn empty_buckets_are_not_shown() {
        let mut sizes = SizeHistogram::default();
        [100, 100, 1_000_000].iter().for_each(|bytes| sizes.record(*bytes));
        let seen: Vec<_> = sizes.buckets().collect();
        assert_eq!((seen, sizes.bytes()), (vec![(128, 2), (u64::MAX, 1)], 1_000_200));
    }
}
