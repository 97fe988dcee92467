//! In which row is an RPC shown?

/// A row for each stretch of time, so that none overlaps another in its row; as few rows as there are at a time. The
/// stretches have to be in the order of their begins.
pub(super) fn lanes(stretches: impl Iterator<Item = (i64, i64)>) -> Vec<usize> {
    // Until when each row is taken.
    let mut rows: Vec<i64> = Vec::new();
    let lane = |(from, until): (i64, i64)| {
        let free = rows.iter().position(|end| *end < from);
        let row = free.unwrap_or(rows.len());
        if row == rows.len() {
            rows.push(until);
        } else {
            rows[row] = until;
        }
        row
    };
    stretches.map(lane).collect()
}

#[cfg(test)]
mod tests {
    use super::lanes;

    #[test]
    fn rows_are_used_again() {
        let stretches = [(0, 10), (1, 3), (2, 20), (4, 5), (11, 12), (11, 12)];
        assert_eq!(lanes(stretches.into_iter()), [0, 1, 2, 1, 0, 1]);
    }
}
