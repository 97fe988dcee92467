//! The buckets of a histogram, independent of the type that counted.

use super::Exemplar;

/// The non-empty buckets of a histogram.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Buckets {
    /// Sum of all values.
    pub sum: u64,
    /// The largest value of each bucket and the number of its values, in ascending order. The bound
    /// is `None` for the last bucket if it is unbounded.
    pub buckets: Vec<(Option<u64>, u64)>,
    /// RPCs in the time trace that are counted here: the latest of each bucket, if there is one.
    #[cfg_attr(feature = "serde", serde(default, skip_serializing_if = "Vec::is_empty"))]
    pub exemplars: Vec<Exemplar>,
}

impl Buckets {
    /// Creates buckets from pairs of bound and count, where the bound `u64::MAX` means none.
    pub(super) fn new(sum: u64, buckets: impl Iterator<Item = (u64, u64)>) -> Self {
        let bound = |upto| (upto != u64::MAX).then_some(upto);
        let buckets = buckets.map(|(upto, count)| (bound(upto), count)).collect();
        Self { sum, buckets, exemplars: Vec::new() }
    }

    /// Returns the number of values.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// Returns the bound of the bucket that holds the quantile `share`: 0.5 for the median. `None`
    /// if there are no values, or if the quantile is in the unbounded bucket. Shares outside 0 to 1
    /// count as the nearest.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let wanted = (share.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0);
        let mut seen = 0;
        let bucket = self.buckets.iter().find(|(_, count)| {
            seen += count;
            seen as f64 >= wanted
        });
        bucket.and_then(|(upto, _)| *upto)
    }

    /// Returns the mean of all values; `None` if there are none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum as f64 / count as f64)
    }

    /// Returns the counts added since `before`; all counts if `before` has more. All exemplars
    /// remain: each is the latest of its bucket, even if it was counted before.
    pub(super) fn since(&self, before: &Self) -> Self {
        let earlier =
            |upto| before.buckets.iter().find(|(bound, _)| *bound == upto).map(|(_, n)| *n);
        let less = |(upto, count): &(Option<u64>, u64)| {
            Some((*upto, count.checked_sub(earlier(*upto).unwrap_or(0))?))
        };
        let less: Option<Vec<_>> = self.buckets.iter().map(less).collect();
        match (less, self.sum.checked_sub(before.sum)) {
            (Some(buckets), Some(sum)) if self.count() >= before.count() => {
                let buckets = buckets.into_iter().filter(|(_, count)| *count > 0).collect();
                Self { sum, buckets, exemplars: self.exemplars.clone() }
            }
            _ => self.clone(),
        }
    }

    /// Adds the values of another histogram. Of two exemplars in a bucket the later one remains.
    pub(super) fn add(&mut self, other: &Self) {
        self.sum = self.sum.saturating_add(other.sum);
        for (upto, count) in &other.buckets {
            // The unbounded bucket is the last one.
            let key = |bound: &Option<u64>| bound.unwrap_or(u64::MAX);
            match self.buckets.binary_search_by_key(&key(upto), |(bound, _)| key(bound)) {
                Ok(index) => self.buckets[index].1 += count,
                Err(index) => self.buckets.insert(index, (*upto, *count)),
            }
        }
        for exemplar in &other.exemplars {
            self.add_exemplar(*exemplar);
        }
    }

    fn add_exemplar(&mut self, exemplar: Exemplar) {
        let buckets = &self.buckets;
        let bucket =
            |nanos: u64| buckets.iter().position(|(upto, _)| upto.is_none_or(|upto| nanos <= upto));
        let place = bucket(exemplar.nanos);
        match self.exemplars.iter_mut().find(|known| bucket(known.nanos) == place) {
            Some(known) if known.unix_millis >= exemplar.unix_millis => {}
            Some(known) => *known = exemplar,
            None => self.exemplars.push(exemplar),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(u64, u64)]) -> Buckets {
        Buckets::new(pairs.iter().map(|(_, count)| count).sum(), pairs.iter().copied())
    }

    #[test]
    fn quantiles_are_bounds() {
        let buckets = of(&[(10, 50), (20, 49), (u64::MAX, 1)]);
        assert_eq!([0.0, 0.5, 0.51, 0.99].map(|q| buckets.quantile(q)), [10, 10, 20, 20].map(Some));
        assert_eq!(buckets.quantile(1.0), None, "the bucket has no bound");
        assert_eq!(Buckets::default().quantile(0.5), None);
    }

    #[test]
    fn sums_and_differences() {
        let mut sum = of(&[(10, 1), (u64::MAX, 2)]);
        sum.add(&of(&[(5, 1), (10, 1), (20, 3)]));
        assert_eq!(sum, of(&[(5, 1), (10, 2), (20, 3), (u64::MAX, 2)]));
        assert_eq!(sum.since(&of(&[(10, 1), (20, 3)])), of(&[(5, 1), (10, 1), (u64::MAX, 2)]));
        let less = of(&[(5, 1)]);
        assert_eq!(less.since(&sum), less, "the endpoint was restarted");
    }

    #[test]
    fn exemplars_are_the_latest_of_their_buckets() {
        let with = |pairs, exemplars: &[(u64, u64, u64)]| {
            let peer = "127.0.0.1:1".parse().unwrap();
            let exemplar =
                |&(rpc, nanos, millis)| Exemplar { rpc, peer, nanos, unix_millis: Some(millis) };
            let exemplars = exemplars.iter().map(exemplar).collect();
            Buckets { exemplars, ..of(pairs) }
        };
        let ids = |buckets: &Buckets| {
            buckets.exemplars.iter().map(|exemplar| exemplar.rpc).collect::<Vec<_>>()
        };
        let one = with(&[(10, 2), (20, 1)], &[(2, 8, 300), (4, 20, 100)]);
        let other =
            with(&[(10, 1), (20, 1), (u64::MAX, 1)], &[(6, 9, 200), (8, 11, 200), (10, 21, 1)]);
        let mut sum = one.clone();
        sum.add(&other);
        assert_eq!(ids(&sum), [2, 8, 10]);
        assert_eq!(ids(&sum.since(&one)), [2, 8, 10], "those of the later snapshot");
        assert_eq!(ids(&one.since(&sum)), [2, 4], "the endpoint was restarted");
    }
}
