//! Buckets, eight in each octave: values are accurate to 12.5 %.

/// Buckets in an octave.
pub const PER_OCTAVE: u64 = 8;

/// Returns the bucket of a value: the value itself below eight, then its octave and the three bits
/// below its highest one.
#[inline]
#[must_use]
pub const fn bucket(value: u64) -> usize {
    if value < PER_OCTAVE {
        return value as usize;
    }
    let octave = value.ilog2() - PER_OCTAVE.trailing_zeros();
    (octave as u64 * PER_OCTAVE + (value >> octave)) as usize
}

/// Returns the largest value of a bucket that [`bucket`] returns. Other buckets have no meaning.
#[inline]
#[must_use]
pub const fn largest(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < PER_OCTAVE {
        return bucket;
    }
    let (octave, within) = (bucket / PER_OCTAVE - 1, bucket % PER_OCTAVE);
    ((PER_OCTAVE + within) << octave) + ((1 << octave) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_join_without_gaps_and_are_no_wider_than_an_eighth() {
        let last = bucket(u64::MAX);
        assert_eq!(largest(last), u64::MAX);
        for index in 0..last {
            let upto = largest(index);
            assert_eq!((bucket(upto), bucket(upto + 1)), (index, index + 1), "{upto}");
            assert!(largest(index + 1) - upto <= upto / 8 + 1, "{upto}");
        }
    }
}
