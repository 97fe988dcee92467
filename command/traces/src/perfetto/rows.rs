//! Display rows for overlapping RPCs.

/// Assigns a row to each interval so that intervals in a row do not overlap, with as few rows as
/// possible. Intervals must be ordered by start.
pub(super) fn assign_rows(intervals: impl Iterator<Item = (i64, i64)>) -> Vec<usize> {
    // End of the last interval in each row.
    let mut rows: Vec<i64> = Vec::new();
    let assign = |(from, until): (i64, i64)| {
        let free = rows.iter().position(|end| *end < from);
        let row = free.unwrap_or(rows.len());
        if row == rows.len() {
            rows.push(until);
        } else {
            rows[row] = until;
        }
        row
    };
    intervals.map(assign).collect()
}

#[cfg(test)]
mod tests {
    use super::assign_rows;

    #[test]
    fn rows_are_used_again() {
        let intervals = [(0, 10), (1, 3), (2, 20), (4, 5), (11, 12), (11, 12)];
        assert_eq!(assign_rows(intervals.into_iter()), [0, 1, 2, 1, 0, 1]);
    }
}
