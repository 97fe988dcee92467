//! Exemplars: for each bucket of durations, one RPC that fell into it.
//!
//! A histogram shows that calls were slow. An exemplar names one of them, whose stages are in the
//! time trace. Only RPCs selected by the probe filter are stored, since a trace contains no others.
//! Each bucket has the latest one.
//!
//! [`crate::observation`] stores them when it counts a duration. No memory is allocated: each
//! bucket has a fixed place.

use crate::histogram::{COARSE_BUCKETS, coarse_bucket};
use crate::peer::Address;
use crate::time::Instant;

/// An RPC whose duration was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exemplar {
    /// The other end. Ids of calls are unique for each peer only.
    pub peer: Address,
    /// The client's id of the RPC, which is its name in time traces.
    pub id: u64,
    /// Its duration in nanoseconds.
    pub nanos: u64,
    /// When the duration was counted.
    pub at: Instant,
}

/// The latest exemplar of each bucket of a [`crate::CoarseHistogram`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exemplars {
    latest: [Option<Exemplar>; COARSE_BUCKETS],
}

impl Exemplars {
    /// Stores an exemplar in place of the previous one of its bucket.
    pub fn remember(&mut self, exemplar: Exemplar) {
        self.latest[coarse_bucket(exemplar.nanos)] = Some(exemplar);
    }

    /// Adds later exemplars of another transport. Both must have the same clock.
    pub fn add(&mut self, other: &Self) {
        let counted = |exemplar: &Option<Exemplar>| exemplar.map(|exemplar| exemplar.at);
        for (mine, theirs) in self.latest.iter_mut().zip(&other.latest) {
            // No exemplar is earlier than any.
            if counted(theirs) > counted(mine) {
                *mine = *theirs;
            }
        }
    }

    /// Returns the exemplars, the shortest duration first.
    pub fn iter(&self) -> impl Iterator<Item = &Exemplar> {
        self.latest.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::COARSE_BOUNDS;

    fn exemplar(id: u64, nanos: u64, at: u64) -> Exemplar {
        let peer = Address::from(([10, 0, 0, 1], 1));
        Exemplar { peer, id, nanos, at: Instant::from_nanos(at) }
    }

    fn ids(exemplars: &Exemplars) -> Vec<u64> {
        exemplars.iter().map(|exemplar| exemplar.id).collect()
    }

    #[test]
    fn each_bucket_has_its_latest_rpc() {
        let mut exemplars = Exemplars::default();
        assert!(ids(&exemplars).is_empty());
        exemplars.remember(exemplar(2, 11_000_000_000, 10));
        exemplars.remember(exemplar(4, COARSE_BOUNDS[0], 20));
        exemplars.remember(exemplar(6, COARSE_BOUNDS[0] + 1, 30));
        assert_eq!(ids(&exemplars), [4, 6, 2]);
        exemplars.remember(exemplar(8, 1, 40));
        assert_eq!(ids(&exemplars), [8, 6, 2]);
    }

    #[test]
    fn of_two_transports_the_later_one_is_kept() {
        let (mut one, mut other) = <(Exemplars, Exemplars)>::default();
        one.remember(exemplar(2, 1, 30));
        one.remember(exemplar(4, 6_000_000, 10));
        other.remember(exemplar(6, 1, 20));
        other.remember(exemplar(8, 6_000_000, 20));
        other.remember(exemplar(10, 20_000_000, 20));
        one.add(&other);
        assert_eq!(ids(&one), [2, 8, 10]);
    }
}
