//! Seeded generators of random numbers, one for each purpose.

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// Purpose of a stream of random numbers.
///
/// Each purpose has a separate stream, so that more draws for one purpose (a longer run, another
/// load) do not change the draws for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Sizes of messages.
    Sizes,
    /// Gaps between messages.
    Arrivals,
    /// Receivers of messages.
    Destinations,
    /// Order of measurements.
    Order,
}

/// Returns the generator for one purpose of the experiment with this seed.
#[must_use]
pub fn rng(seed: u64, stream: Stream) -> Pcg64 {
    // `seed_from_u64` mixes the seed, so neighbouring sums start unrelated sequences. The factor
    // (2^64 divided by the golden ratio) separates the sums of small seeds.
    const APART: u64 = 0x9e37_79b9_7f4a_7c15;
    let purpose = match stream {
        Stream::Sizes => 0,
        Stream::Arrivals => 1,
        Stream::Destinations => 2,
        Stream::Order => 3,
    };
    Pcg64::seed_from_u64(seed.wrapping_add(APART.wrapping_mul(purpose)))
}
