//! SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), and the way back from its output to its state.
//!
//! Until November 2026 the secret numbers of an endpoint were outputs of it.

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A generator.
pub(super) struct Splitmix(u64);

impl Splitmix {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The generator after it has given `output`.
    pub(super) fn after(output: u64) -> Self {
        let mut z = output ^ (output >> 31) ^ (output >> 62);
        z = z.wrapping_mul(0x3196_42b2_d24d_8ec3);
        z = z ^ (z >> 27) ^ (z >> 54);
        z = z.wrapping_mul(0x96de_1b17_3f11_9089);
        Self(z ^ (z >> 30) ^ (z >> 60))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GAMMA);
        self.output()
    }

    /// The output before the last one.
    pub(super) fn previous(&self) -> u64 {
        Self(self.0.wrapping_sub(GAMMA)).output()
    }

    fn output(&self) -> u64 {
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Whether one of these is the output of a generator whose next output is as expected.
pub(super) fn find_generator(
    mut outputs: impl Iterator<Item = u64>,
    is_expected: impl Fn(u64) -> bool,
) -> bool {
    outputs.any(|output| is_expected(Splitmix::after(output).next()))
}
