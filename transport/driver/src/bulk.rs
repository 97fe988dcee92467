//! Bulk packets: packets that may wait, received separately from urgent packets.

use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The source of bulk packets: packets that the receiver need not handle before others have
/// followed.
#[derive(Clone, Copy, Debug)]
pub struct BulkSource<'a> {
    /// Becomes readable when such a packet arrives.
    pub descriptor: BorrowedFd<'a>,
    /// Longest time that a sleeping thread may ignore the descriptor after a receive with bulk
    /// packets.
    pub max_delay: Duration,
    /// Whether the last receive returned bulk packets and drained the source.
    pub drained: bool,
}

/// Delay during which a sleeping thread ignores a [`BulkSource`]. It starts with the first sleep
/// after a receive that drained the source, so that further packets can arrive.
#[derive(Debug, Default)]
pub struct BulkDelay {
    /// Whether the source was drained since the last sleep.
    is_drained: bool,
    /// End of the delay, in nanoseconds of the caller's clock.
    until: u64,
}

impl BulkDelay {
    /// Records a receive. Returns whether it drained `source`: later bulk packets are then not due
    /// yet.
    pub fn note_receive(&mut self, source: Option<BulkSource<'_>>) -> bool {
        let is_drained = source.is_some_and(|source| source.drained);
        self.is_drained |= is_drained;
        is_drained
    }

    /// Returns the nanoseconds for which a sleep that starts at `now` ignores `source`; 0 if its
    /// packets wake the thread.
    pub fn of_sleep(&mut self, source: Option<BulkSource<'_>>, now: u64) -> u64 {
        let Some(source) = source else { return 0 };
        if std::mem::take(&mut self.is_drained) {
            let delay = u64::try_from(source.max_delay.as_nanos()).unwrap_or(u64::MAX);
            self.until = now.saturating_add(delay);
        }
        self.until.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn after_a_drained_source_others_have_their_time_to_follow() {
        let stdin = std::io::stdin();
        let source = |drained| {
            let max_delay = Duration::from_nanos(700);
            Some(BulkSource { descriptor: stdin.as_fd(), max_delay, drained })
        };
        let mut delay = BulkDelay::default();
        assert_eq!(delay.of_sleep(source(false), 1_000), 0, "the first packet wakes");
        assert!(!delay.note_receive(source(false)), "none of them, or not all");
        assert_eq!(delay.of_sleep(source(false), 1_000), 0);
        assert!(delay.note_receive(source(true)));
        assert!(!delay.note_receive(source(false)), "an urgent one");
        assert_eq!(delay.of_sleep(source(true), 2_000), 700);
        assert_eq!(delay.of_sleep(source(true), 2_100), 600, "from the first sleep on");
        assert_eq!(delay.of_sleep(source(true), 2_700), 0, "nothing came: the next one wakes");
        assert!(delay.note_receive(source(true)));
        assert_eq!(delay.of_sleep(None, 3_000), 0);
    }
}
