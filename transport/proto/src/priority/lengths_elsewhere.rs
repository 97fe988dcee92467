//! Messages that arrive at the other transports of the host, as far as they matter for cutoffs
//! (PRIO-17).

use crate::histogram::octaves;
use crate::neighbours::{ArrivingLengths, EIGHTHS};
use crate::time::SEC;
use smallvec::SmallVec;

/// The lengths that they have published, within plausible bounds.
#[derive(Debug, Default)]
pub(super) struct LengthsElsewhere {
    all: SmallVec<[ArrivingLengths; 2]>,
    /// Messages that arrive there in a second.
    messages: u64,
}

impl LengthsElsewhere {
    /// Takes over what each of them has published. No more can arrive than the link carries, and no
    /// more messages than bytes.
    pub(super) fn set(&mut self, published: &[ArrivingLengths], link_mbps: u64) {
        let most = link_mbps.saturating_mul(125_000);
        self.all.clear();
        self.all.extend(published.iter().map(|lengths| {
            let total = lengths.total.min(most);
            let (unscheduled, messages) =
                (lengths.unscheduled.min(total), lengths.messages.min(most));
            ArrivingLengths { unscheduled, total, messages, ..*lengths }
        }));
        self.messages = self.all.iter().map(|lengths| lengths.messages).sum();
    }

    /// Messages that have arrived there in `nanos` nanoseconds.
    pub(super) fn messages_in(&self, nanos: u64) -> u64 {
        if self.messages == 0 { 0 } else { in_time(self.messages, nanos) }
    }

    /// Adds the unscheduled bytes that arrived there in `nanos` nanoseconds to `counts`, by class
    /// of their messages' lengths. The bytes that arrived `here` have at least an equal part of the
    /// sum. Returns the bytes of all messages, of which `total_here` arrived here.
    pub(super) fn add_to(&self, counts: &mut [u64], here: u64, total_here: u64, nanos: u64) -> u64 {
        let sum = |bytes: fn(&ArrivingLengths) -> u64| -> u64 {
            self.all.iter().map(|lengths| in_time(bytes(lengths), nanos)).sum()
        };
        let unscheduled = sum(|lengths| lengths.unscheduled);
        let most = here.saturating_mul(self.all.len() as u64);
        let (part, whole) = (u128::from(unscheduled.min(most)), u128::from(unscheduled.max(1)));
        for lengths in &self.all {
            let bytes = u128::from(in_time(lengths.unscheduled, nanos)) * part / whole;
            for length in lengths.eighths {
                counts[octaves::bucket(length.max(1).into())] += (bytes / EIGHTHS as u128) as u64;
            }
        }
        sum(|lengths| lengths.total).min(total_here.saturating_mul(self.all.len() as u64))
    }
}

/// The number in `nanos` nanoseconds at a rate of `in_a_second`.
fn in_time(in_a_second: u64, nanos: u64) -> u64 {
    (u128::from(in_a_second) * u128::from(nanos) / u128::from(SEC)) as u64
}
