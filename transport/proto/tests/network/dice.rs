//! The source of decisions: a seed, or the bytes of a fuzzer.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// A source of decisions.
pub(crate) enum Dice {
    /// Random numbers that follow from a seed.
    Seeded(Pcg64),
    /// Given bytes; when they are used up, all decisions are 0.
    Bytes {
        /// The remaining bytes.
        rest: std::vec::IntoIter<u8>,
    },
}

impl Dice {
    /// Decisions that follow from `seed`.
    pub(crate) fn seeded(seed: u64) -> Self {
        Self::Seeded(Pcg64::seed_from_u64(seed))
    }

    /// Decisions that are taken from `bytes`.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Self {
        Self::Bytes { rest: bytes.into_iter() }
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        match self {
            _ if limit <= 1 => 0,
            Self::Seeded(random) => random.random_range(0..limit),
            // Two bytes are enough; long ranges get a coarser step.
            Self::Bytes { rest } => {
                let high = u64::from(rest.next().unwrap_or(0));
                let low = if limit > 256 { u64::from(rest.next().unwrap_or(0)) } else { 0 };
                let (number, range) =
                    if limit > 256 { (high << 8 | low, 65_536) } else { (high, 256) };
                if limit > range { number * (limit / range) } else { number % limit }
            }
        }
    }

    /// Whether an event with a probability of `per_mille` per mille happens. Prepared bytes decide
    /// it directly.
    pub(crate) fn chance(&mut self, per_mille: u32) -> bool {
        match self {
            _ if per_mille == 0 => false,
            Self::Seeded(_) => self.below(1_000) < u64::from(per_mille),
            Self::Bytes { rest } => {
                let threshold = 255 - u64::from(per_mille.min(1_000)) * 255 / 1_000;
                rest.next().is_some_and(|byte| u64::from(byte) > threshold)
            }
        }
    }

    /// Seed of a transport.
    pub(crate) fn seed(&mut self) -> u64 {
        match self {
            Self::Seeded(random) => random.random(),
            Self::Bytes { .. } => 0,
        }
    }
}
