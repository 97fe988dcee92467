//! Batch size of receives.
//!
//! A single recvmsg is the cheapest way to receive a single datagram, and when packets arrive one
//! at a time, no more are available. Under load several are queued, and one recvmmsg receives them.
//! The batch doubles after several full batches in a row, and halves when less than half of it was
//! filled.

use crate::kernel::RECEIVE_BATCH;

/// Full batches in a row after which the size is doubled. Chosen by us: one full batch is chance.
const GROW_AFTER: u32 = 4;

/// Chooses the size of the next batch.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Datagrams to request, `least` to [`RECEIVE_BATCH`].
    size: usize,
    least: usize,
    /// Full batches in a row.
    full: u32,
    /// Packets per datagram in the last batch, rounded up: the estimate for the next one.
    merged: usize,
}

impl Batch {
    pub(crate) const fn new() -> Self {
        Self::of_at_least(1)
    }

    /// Creates a batch that never requests fewer than `least` datagrams, for a socket with several
    /// queued datagrams per receive.
    pub(crate) const fn of_at_least(least: usize) -> Self {
        Self { size: least, least, full: 0, merged: 1 }
    }

    /// Returns the number of datagrams to request for about `limit` packets.
    #[inline]
    pub(crate) fn next_size(&self, limit: usize) -> usize {
        // Avoids the division in the usual case, without a choice.
        if self.size == 1 { 1 } else { self.size.min(limit.div_ceil(self.merged)).max(1) }
    }

    /// Records a receive: `got` of `requested` datagrams arrived, with `packets` packets in all.
    #[inline]
    pub(crate) fn record(&mut self, requested: usize, got: usize, packets: usize) {
        match got {
            0 => {}
            1 => self.merged = packets.max(1),
            _ => self.merged = packets.div_ceil(got).max(1),
        }
        if got == requested {
            self.full += 1;
            if self.full >= GROW_AFTER {
                self.size = (2 * self.size).min(RECEIVE_BATCH);
                self.full = 0;
            }
        } else {
            self.full = 0;
            if 2 * got < requested {
                self.size = (self.size / 2).max(self.least);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the sizes requested for these numbers of queued one-packet datagrams.
    fn sizes(waiting: &[usize]) -> Vec<usize> {
        let mut batch = Batch::new();
        let receive = |waiting: &usize| {
            let requested = batch.next_size(64);
            let got = requested.min(*waiting);
            batch.record(requested, got, got);
            requested
        };
        waiting.iter().map(receive).collect()
    }

    #[test]
    fn packets_one_at_a_time_are_received_one_at_a_time() {
        assert!(sizes(&[1, 0].repeat(100)).iter().all(|size| *size == 1));
    }

    #[test]
    fn the_batch_grows_to_its_maximum_under_load() {
        let sizes = sizes(&[100; 30]);
        assert_eq!(sizes[..9], [1, 1, 1, 1, 2, 2, 2, 2, 4]);
        assert_eq!(*sizes.last().unwrap(), RECEIVE_BATCH);
    }

    #[test]
    fn the_batch_shrinks_when_the_load_ends() {
        let mut waiting = vec![100; 30];
        waiting.extend([1, 0].repeat(4));
        let sizes = sizes(&waiting);
        assert_eq!(sizes[30..], [16, 8, 4, 2, 1, 1, 1, 1]);
    }

    #[test]
    fn a_limit_counts_packets_and_not_datagrams() {
        let mut batch = Batch::new();
        for _ in 0..100 {
            batch.record(16, 16, 16 * 20);
        }
        assert_eq!(batch.next_size(1000), RECEIVE_BATCH);
        assert_eq!(batch.next_size(100), 5);
        assert_eq!(batch.next_size(1), 1);
    }
}
