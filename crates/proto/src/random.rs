//! Random numbers that depend on the endpoint's seed alone.

/// A small generator for numbers that need to differ, not to be secret: SplitMix64 (Steele, Lea and
/// Flood, OOPSLA 2014).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The generator that `seed` decides.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws a number.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
