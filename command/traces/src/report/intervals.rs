//! Time intervals.

/// Merges overlapping intervals. Returns disjoint intervals, the earliest first.
pub(super) fn union(mut intervals: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    intervals.sort_unstable();
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (from, until) in intervals {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => joined.push((from, until)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::union;

    #[test]
    fn overlapping_intervals_are_merged() {
        let joined = union(vec![(5, 7), (0, 3), (1, 2), (3, 4), (6, 9)]);
        assert_eq!(joined, [(0, 4), (5, 9)]);
        assert_eq!(union(Vec::new()), []);
    }
}
