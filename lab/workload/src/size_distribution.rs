//! Distributions of message sizes.

use std::cmp::Ordering;

use rand::distr::Distribution;
use rand::{Rng, RngExt};

/// A distribution of message sizes: finitely many sizes, each with its share of the messages.
///
/// Sizes are not interpolated. The published tables are step functions as well (`util/dist.cc` of
/// the kernel module), and the mean of a step function is a plain sum.
///
/// # Invariants
///
/// - **SIZES-1**: There is at least one size; sizes strictly increase. The first may be 0.
/// - **SIZES-2**: Every share is positive, and the cumulative share of the largest size is exactly 1.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    steps: Box<[SizeShare]>,
}

/// One size of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SizeShare {
    /// Length of the message in bytes.
    size: u32,
    /// Share of the messages that have this size.
    share: f64,
    /// Share of the messages that have this size or a smaller one.
    cumulative: f64,
}

impl SizeDistribution {
    /// Returns the distribution whose messages all have this size.
    #[must_use]
    pub fn fixed(size: u32) -> Self {
        Self::from_shares(&[(size, 1.0)])
    }

    /// Returns the distribution with these sizes and weights. The weights are scaled to a sum of 1.
    ///
    /// # Panics
    ///
    /// The sizes break SIZES-1, or the weights SIZES-2.
    #[must_use]
    pub fn from_shares(shares: &[(u32, f64)]) -> Self {
        assert!(!shares.is_empty(), "SIZES-1");
        assert!(shares.windows(2).all(|pair| pair[0].0 < pair[1].0), "SIZES-1");
        assert!(shares.iter().all(|&(_, share)| share > 0.0), "SIZES-2");
        let total: f64 = shares.iter().map(|&(_, share)| share).sum();
        let mut sum = 0.0;
        let mut steps: Box<[SizeShare]> = shares
            .iter()
            .map(|&(size, share)| {
                sum += share;
                SizeShare { size, share: share / total, cumulative: sum / total }
            })
            .collect();
        steps.last_mut().expect("SIZES-1").cumulative = 1.0;
        Self { steps }
    }

    /// Returns the distribution with messages longer than `limit` cut to `limit`.
    #[must_use]
    pub fn truncated(&self, limit: u32) -> Self {
        let kept = self.steps.partition_point(|step| step.size <= limit);
        let mut shares: Vec<_> =
            self.steps[..kept].iter().map(|step| (step.size, step.share)).collect();
        let rest: f64 = self.steps[kept..].iter().map(|step| step.share).sum();
        match shares.last_mut() {
            Some((size, share)) if *size == limit => *share += rest,
            _ if rest > 0.0 => shares.push((limit, rest)),
            _ => {}
        }
        Self::from_shares(&shares)
    }

    /// Returns each size and its share of the messages, smallest size first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, f64)> + DoubleEndedIterator + '_ {
        self.steps.iter().map(|step| (step.size, step.share))
    }

    /// Returns the mean size in bytes, exact except for rounding.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.iter().map(|(size, share)| f64::from(size) * share).sum()
    }

    /// Returns the smallest size.
    #[must_use]
    pub fn smallest(&self) -> u32 {
        self.steps[0].size
    }

    /// Returns the largest size.
    #[must_use]
    pub fn largest(&self) -> u32 {
        self.steps[self.steps.len() - 1].size
    }

    /// Returns the smallest size such that at least the share `fraction` of the messages is not
    /// larger; `quantile(0.5)` is the median. Fractions below 0 count as 0, above 1 as 1.
    #[must_use]
    pub fn quantile(&self, fraction: f64) -> u32 {
        let index = self.steps.partition_point(|step| step.cumulative < fraction);
        self.steps[index.min(self.steps.len() - 1)].size
    }

    /// Returns the share of the messages that are not larger than `size`.
    #[must_use]
    pub fn messages_up_to(&self, size: u32) -> f64 {
        match self.steps.partition_point(|step| step.size <= size) {
            0 => 0.0,
            count => self.steps[count - 1].cumulative,
        }
    }

    /// Returns the share of all bytes that is in messages not larger than `size`; if all messages
    /// are empty, the share of the messages.
    #[must_use]
    pub fn bytes_up_to(&self, size: u32) -> f64 {
        if self.largest() == 0 {
            return self.messages_up_to(size);
        }
        let bytes = |(size, share)| f64::from(size) * share;
        self.iter().take_while(|&(each, _)| each <= size).map(bytes).sum::<f64>() / self.mean()
    }
}

impl Distribution<u32> for SizeDistribution {
    /// Draws a size by inversion: exactly one `f64` per message, so the n-th draw of a seed does
    /// not depend on the distribution.
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> u32 {
        let draw: f64 = rng.random();
        let found = self.steps.binary_search_by(|step| {
            if step.cumulative <= draw { Ordering::Less } else { Ordering::Greater }
        });
        self.steps[found.expect_err("never equal")].size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stream, rng};

    #[test]
    fn a_fixed_size_has_one_step() {
        let sizes = SizeDistribution::fixed(100);
        assert_eq!(sizes.iter().collect::<Vec<_>>(), [(100, 1.0)]);
        assert_eq!((sizes.mean(), sizes.quantile(0.0), sizes.quantile(1.0)), (100.0, 100, 100));
    }

    #[test]
    fn messages_may_be_empty() {
        let sizes = SizeDistribution::from_shares(&[(0, 1.0), (100, 1.0)]);
        assert_eq!((sizes.smallest(), sizes.mean(), sizes.messages_up_to(0)), (0, 50.0, 0.5));
        assert_eq!((sizes.bytes_up_to(0), sizes.bytes_up_to(100)), (0.0, 1.0));
        let empty = SizeDistribution::fixed(0);
        assert_eq!((empty.mean(), empty.bytes_up_to(0), empty.quantile(0.5)), (0.0, 1.0, 0));
        assert_eq!(sizes.truncated(0).iter().collect::<Vec<_>>(), [(0, 1.0)]);
    }

    #[test]
    fn weights_are_scaled_and_the_last_step_closes_at_one() {
        let sizes = SizeDistribution::from_shares(&[(1, 1.0), (2, 1.0), (4, 1.0)]);
        assert!((sizes.mean() - 7.0 / 3.0).abs() < 1e-12);
        assert_eq!(sizes.messages_up_to(4), 1.0);
        assert_eq!(sizes.messages_up_to(0), 0.0);
        assert_eq!(sizes.bytes_up_to(0), 0.0);
        assert!((sizes.bytes_up_to(3) - 3.0 / 7.0).abs() < 1e-12);
    }

    #[test]
    fn a_quantile_is_the_first_size_that_reaches_the_fraction() {
        let sizes = SizeDistribution::from_shares(&[(10, 0.25), (20, 0.25), (30, 0.5)]);
        let at = |fraction| sizes.quantile(fraction);
        assert_eq!((at(0.25), at(0.26), at(0.5), at(0.51)), (10, 20, 20, 30));
        assert_eq!((at(-1.0), at(2.0)), (10, 30), "fractions beyond the ends");
    }

    #[test]
    fn truncation_moves_longer_messages_to_the_limit() {
        let sizes = SizeDistribution::from_shares(&[(10, 0.5), (20, 0.25), (30, 0.25)]);
        let steps = |limit| sizes.truncated(limit).iter().collect::<Vec<_>>();
        assert_eq!(steps(25), [(10, 0.5), (20, 0.25), (25, 0.25)], "between two sizes");
        assert_eq!(steps(20), [(10, 0.5), (20, 0.5)], "at a size");
        assert_eq!(steps(5), [(5, 1.0)], "below all");
        assert_eq!(steps(30), steps(1000), "nothing is longer");
    }

    #[test]
    fn samples_have_the_shares_of_the_steps() {
        let sizes = SizeDistribution::from_shares(&[(1, 0.1), (2, 0.6), (3, 0.3)]);
        let mut rng = rng(7, Stream::Sizes);
        let mut counts = [0.0; 4];
        for _ in 0..100_000 {
            counts[sizes.sample(&mut rng) as usize] += 1e-5;
        }
        for (size, share) in sizes.iter() {
            // At most five standard deviations of the count: sqrt(0.25 / 100000) * 5 = 0.008.
            assert!((counts[size as usize] - share).abs() < 0.008, "{size}: {counts:?}");
        }
    }
}
