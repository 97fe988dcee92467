//! When was something so, if it was so at these times?

/// Stretches of time, each from one moment to another, become such that do not overlap, the earliest first.
pub(super) fn join(mut stretches: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    stretches.sort_unstable();
    let mut joined: Vec<(i64, i64)> = Vec::new();
    for (from, until) in stretches {
        match joined.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => joined.push((from, until)),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn what_overlaps_becomes_one() {
        let joined = join(vec![(5, 7), (0, 3), (1, 2), (3, 4), (6, 9)]);
        assert_eq!(joined, [(0, 4), (5, 9)]);
        assert_eq!(join(Vec::new()), []);
    }
}
