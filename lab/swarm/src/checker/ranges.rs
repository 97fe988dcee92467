//! Received byte ranges of a message.

use std::collections::BTreeMap;

/// Disjoint, non-adjacent ranges.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// End of each range, by its start.
    ranges: BTreeMap<u32, u32>,
    bytes: u32,
}

impl Ranges {
    /// Adds a range, which may overlap existing ranges.
    pub(super) fn insert(&mut self, mut start: u32, mut end: u32) {
        while let Some((&from, &to)) = self.ranges.range(..=end).next_back()
            && to >= start
        {
            self.ranges.remove(&from);
            self.bytes -= to - from;
            (start, end) = (start.min(from), end.max(to));
        }
        self.ranges.insert(start, end);
        self.bytes += end - start;
    }

    /// Returns the number of bytes in all ranges.
    pub(super) const fn bytes(&self) -> u32 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_count_once() {
        let mut ranges = Ranges::default();
        for (start, end, bytes) in
            [(10, 20, 10), (30, 40, 20), (15, 18, 20), (5, 12, 25), (20, 30, 35)]
        {
            ranges.insert(start, end);
            assert_eq!(ranges.bytes(), bytes, "{ranges:?}");
        }
        assert_eq!(ranges.ranges.len(), 1);
        ranges.insert(0, 100);
        assert_eq!(ranges.bytes(), 100);
    }
}
