//! Windows: latencies of short messages in each interval of a load, by due time.

use serde::{Deserialize, Serialize};

/// The short messages due in one window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Window {
    /// Number of short messages that were due.
    pub(crate) due: u32,
    /// Median latency in nanoseconds; messages never completed count as slower than all others.
    /// `None` if half of the messages or more were not completed, or if no message was due.
    pub(crate) p50: Option<u64>,
}

/// Collects windows while a load runs.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    /// Length of a window in nanoseconds.
    length: u64,
    /// Latencies of the completed messages of each window.
    completed: Vec<Vec<u64>>,
}

impl Windows {
    /// Returns windows of `length` nanoseconds, without messages.
    pub(super) fn new(length: u64) -> Self {
        Self { length: length.max(1), completed: Vec::new() }
    }

    /// Records a message that was due at `due` and took `latency` nanoseconds.
    pub(super) fn record(&mut self, due: u64, latency: u64) {
        let index = (due / self.length) as usize;
        if self.completed.len() <= index {
            self.completed.resize_with(index + 1, Vec::new);
        }
        self.completed[index].push(latency);
    }

    /// Returns the windows until `ends`, given the due times of all messages, completed or not.
    pub(super) fn finish(mut self, due: impl Iterator<Item = u64>, ends: u64) -> Vec<Window> {
        let count = ends.div_ceil(self.length) as usize;
        let mut windows = vec![Window { due: 0, p50: None }; count];
        for due in due {
            if let Some(window) = windows.get_mut((due / self.length) as usize) {
                window.due += 1;
            }
        }
        for (window, completed) in windows.iter_mut().zip(&mut self.completed) {
            completed.sort_unstable();
            let middle = (window.due / 2) as usize;
            window.p50 = completed.get(middle).copied();
        }
        windows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_belong_to_the_window_in_which_they_were_due() {
        let mut windows = Windows::new(10);
        for (due, latency) in [(1, 5), (2, 500), (9, 7), (10, 8), (35, 1)] {
            windows.record(due, latency);
        }
        let found = windows.finish([1, 2, 9, 10, 35].into_iter(), 40);
        let expected = [(3, Some(7)), (1, Some(8)), (0, None), (1, Some(1))];
        assert_eq!(found, expected.map(|(due, p50)| Window { due, p50 }));
    }

    #[test]
    fn messages_that_were_not_completed_count_as_the_slowest() {
        let mut windows = Windows::new(10);
        windows.record(1, 5);
        windows.record(2, 6);
        let three = windows.clone().finish([1, 2, 3].into_iter(), 10);
        assert_eq!(three, [Window { due: 3, p50: Some(6) }]);
        let four = windows.finish([1, 2, 3, 4].into_iter(), 10);
        assert_eq!(four, [Window { due: 4, p50: None }]);
    }
}
