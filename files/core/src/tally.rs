//! Counts by kind.

/// Counts of events of `N` kinds, by their numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally<const N: usize>([u64; N]);

impl<const N: usize> Default for Tally<N> {
    fn default() -> Self {
        Self([0; N])
    }
}

impl<const N: usize> Tally<N> {
    /// Counts an event.
    pub(crate) fn add(&mut self, kind: u8) {
        self.0[usize::from(kind)] += 1;
    }

    /// Returns the counts with their kinds.
    pub(crate) fn of<K: Copy>(&self, kinds: [K; N]) -> Vec<(K, u64)> {
        kinds.into_iter().zip(self.0).collect()
    }
}
