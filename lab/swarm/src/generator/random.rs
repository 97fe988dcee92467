//! Random numbers.

use rand::distr::uniform::{SampleRange, SampleUniform};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Random number generator of a seed. Each purpose has its own stream, so that a change to one
/// generator leaves the others unchanged.
#[derive(Debug)]
pub(crate) struct SeededRng(Pcg64Mcg);

impl SeededRng {
    /// Creates the stream of a seed for one purpose.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        // Multiples of an odd number differ for different purposes.
        Self(Pcg64Mcg::seed_from_u64(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Returns a number in a range, uniformly distributed.
    pub(crate) fn within<T: SampleUniform>(&mut self, range: impl SampleRange<T>) -> T {
        self.0.random_range(range)
    }

    /// Returns a number in a range; all orders of magnitude are equally likely.
    pub(crate) fn scale(&mut self, least: u64, most: u64) -> u64 {
        let bits = |value: u64| u64::BITS - value.leading_zeros();
        let magnitude = self.within(bits(least)..=bits(most));
        let low = if magnitude == 0 { 0 } else { 1 << (magnitude - 1) };
        let high = if magnitude >= 64 { u64::MAX } else { (1 << magnitude) - 1 };
        self.within(low.max(least)..=high.min(most))
    }

    /// Returns true with a probability of `percent` %.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.within(0..100) < percent
    }

    /// Returns one of several values.
    pub(crate) fn one_of<T: Copy>(&mut self, several: &[T]) -> T {
        several[self.within(0..several.len())]
    }

    /// Returns the underlying generator.
    pub(crate) const fn rng(&mut self) -> &mut Pcg64Mcg {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_stay_in_their_range_and_reach_its_ends() {
        let mut rng = SeededRng::new(1, 0);
        let drawn: Vec<u64> = (0..10_000).map(|_| rng.scale(3, 1_000)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&1_000)));
        let short = drawn.iter().filter(|value| **value < 64).count();
        assert!((4_000..7_000).contains(&short), "as many short as long ones: {short}");
        assert!((0..100).all(|_| rng.scale(0, 1) < 2));
    }
}
