//! What does chance say?

use rand::distr::uniform::{SampleRange, SampleUniform};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Draws everything that a seed decides. Each purpose has a stream of its own, so that a change in how one
/// thing is drawn leaves the others as they were.
#[derive(Debug)]
pub(crate) struct Dice(Pcg64Mcg);

impl Dice {
    /// The stream for one purpose of a seed.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        // Multiples of an odd number differ for different purposes.
        Self(Pcg64Mcg::seed_from_u64(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// A number of a range, all equally likely.
    pub(crate) fn within<T: SampleUniform>(&mut self, range: impl SampleRange<T>) -> T {
        self.0.random_range(range)
    }

    /// A number of a range, all orders of magnitude equally likely.
    pub(crate) fn scale(&mut self, least: u64, most: u64) -> u64 {
        let bits = |value: u64| u64::BITS - value.leading_zeros();
        let magnitude = self.within(bits(least)..=bits(most));
        let low = if magnitude == 0 { 0 } else { 1 << (magnitude - 1) };
        let high = if magnitude >= 64 { u64::MAX } else { (1 << magnitude) - 1 };
        self.within(low.max(least)..=high.min(most))
    }

    /// True in so many of 100 cases.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.within(0..100) < percent
    }

    /// One of several.
    pub(crate) fn one_of<T: Copy>(&mut self, several: &[T]) -> T {
        several[self.within(0..several.len())]
    }

    /// For what draws by itself.
    pub(crate) const fn rng(&mut self) -> &mut Pcg64Mcg {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_stay_in_their_range_and_reach_its_ends() {
        let mut dice = Dice::new(1, 0);
        let drawn: Vec<u64> = (0..10_000).map(|_| dice.scale(3, 1_000)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&3), Some(&1_000)));
        let short = drawn.iter().filter(|value| **value < 64).count();
        assert!((4_000..7_000).contains(&short), "as many short as long ones: {short}");
        assert!((0..100).all(|_| dice.scale(0, 1) < 2));
    }
}
