//! How many datagrams should one receive ask for?
//!
//! A single recvmsg is the cheapest way to take a single datagram, and when packets come one at a time,
//! that is all there is to take. Under load more wait: then one recvmmsg takes several. The batch
//! doubles when it came back full a few times in a row, and halves when it came back less than half
//! full.

use crate::kernel::RECEIVE_BATCH;

/// Full batches in a row after which the next one is doubled. Ours: one full batch is chance.
const PATIENCE: u32 = 4;

/// The size of the next batch.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Datagrams to ask for, 1 to [`RECEIVE_BATCH`].
    size: usize,
    /// Full batches in a row.
    full: u32,
    /// Packets of a datagram in the last batch, rounded up; how many the next one will bring is a
    /// guess.
    merged: usize,
}

impl Batch {
    pub(crate) fn new() -> Self {
        Self { size: 1, full: 0, merged: 1 }
    }

    /// Datagrams to ask for if about `limit` packets are wanted.
    #[inline]
    pub(crate) fn ask(&self, limit: usize) -> usize {
        // A division takes its time, and most often there is no choice.
        if self.size == 1 { 1 } else { self.size.min(limit.div_ceil(self.merged)).max(1) }
    }

    /// `asked` datagrams were asked for, `got` came, and had `packets`.
    #[inline]
    pub(crate) fn learn(&mut self, asked: usize, got: usize, packets: usize) {
        match got {
            0 => {}
            1 => self.merged = packets.max(1),
            _ => self.merged = packets.div_ceil(got).max(1),
        }
        if got == asked {
            self.full += 1;
            if self.full >= PATIENCE {
                self.size = (2 * self.size).min(RECEIVE_BATCH);
                self.full = 0;
            }
        } else {
            self.full = 0;
            if 2 * got < asked {
                self.size = (self.size / 2).max(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sizes asked for when this many datagrams of one packet wait each time.
    fn sizes(waiting: &[usize]) -> Vec<usize> {
        let mut batch = Batch::new();
        let ask = |waiting: &usize| {
            let asked = batch.ask(64);
            let got = asked.min(*waiting);
            batch.learn(asked, got, got);
            asked
        };
        waiting.iter().map(ask).collect()
    }

    #[test]
    fn a_round_trip_at_a_time_costs_single_receives() {
        assert!(sizes(&[1, 0].repeat(100)).iter().all(|size| *size == 1));
    }

    #[test]
    fn under_load_it_grows_to_the_most() {
        let sizes = sizes(&[100; 30]);
        assert_eq!(sizes[..9], [1, 1, 1, 1, 2, 2, 2, 2, 4]);
        assert_eq!(*sizes.last().unwrap(), RECEIVE_BATCH);
    }

    #[test]
    fn when_the_load_ends_it_shrinks() {
        let mut waiting = vec![100; 30];
        waiting.extend([1, 0].repeat(4));
        let sizes = sizes(&waiting);
        assert_eq!(sizes[30..], [16, 8, 4, 2, 1, 1, 1, 1]);
    }

    #[test]
    fn a_limit_counts_packets_and_not_datagrams() {
        let mut batch = Batch::new();
        for _ in 0..100 {
            batch.learn(16, 16, 16 * 20);
        }
        assert_eq!(batch.ask(1000), RECEIVE_BATCH);
        assert_eq!(batch.ask(100), 5);
        assert_eq!(batch.ask(1), 1);
    }
}
