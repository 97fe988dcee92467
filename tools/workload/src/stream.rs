//! Where does chance come from?

use rand::SeedableRng;
use rand_pcg::Pcg64;

/// What a stream of random numbers is for.
///
/// Each purpose has a stream of its own, so that drawing more of one thing (a longer run, another
/// load) does not change what is drawn of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Sizes of messages.
    Sizes,
    /// Gaps between messages.
    Arrivals,
    /// Which peer a message goes to.
    Destinations,
    /// Whose turn it is to be measured.
    Turns,
}

/// The generator for one purpose of the experiment with this seed.
#[must_use]
pub fn rng(seed: u64, stream: Stream) -> Pcg64 {
    // The seed is mixed by `seed_from_u64`, so neighbouring sums start unrelated sequences. The
    // factor (2^64 divided by the golden ratio) keeps the sums of small seeds apart.
    const APART: u64 = 0x9e37_79b9_7f4a_7c15;
    let purpose = match stream {
        Stream::Sizes => 0,
        Stream::Arrivals => 1,
        Stream::Destinations => 2,
        Stream::Turns => 3,
    };
    Pcg64::seed_from_u64(seed.wrapping_add(APART.wrapping_mul(purpose)))
}
