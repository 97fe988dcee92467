//! Burst losses.
//!
//! A link is in one of two states, as in the model of Gilbert (1960) and Elliott (1963): good,
//! without losses, and bad, where every packet is lost. The state may change with every packet.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;

/// State of one link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    bad: bool,
}

impl Burst {
    /// Returns whether the next packet is lost. Of 10,000 packets, `begin` start a burst of
    /// `length` packets on average.
    pub(super) fn strikes(&mut self, rng: &mut Pcg64Mcg, begin: u32, length: u32) -> bool {
        self.bad = if self.bad {
            rng.random_range(0..length.max(1)) != 0
        } else {
            begin > 0 && rng.random_range(0..10_000) < begin
        };
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn losses_come_in_bursts_of_the_mean_length() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut burst = Burst::default();
        let lost: Vec<bool> = (0..200_000).map(|_| burst.strikes(&mut rng, 50, 10)).collect();
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let mean = lost.iter().filter(|lost| **lost).count() as f64 / bursts as f64;
        assert!((8.0..12.0).contains(&mean), "{mean}");
        assert!((800..1_100).contains(&bursts), "0.5 % of the good packets: {bursts}");
    }

    #[test]
    fn without_bursts_no_packet_is_lost() {
        let mut rng = Pcg64Mcg::seed_from_u64(1);
        let mut burst = Burst::default();
        assert!((0..10_000).all(|_| !burst.strikes(&mut rng, 0, 10)));
    }
}
