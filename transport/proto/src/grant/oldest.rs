//! The oldest message's share of the grants, so that the longest messages make progress while
//! shorter ones keep arriving.

use super::window::Window;
use crate::config::Config;
use crate::message::MessageIn;

/// The share of granted bytes reserved for the oldest message (HM `homa_grant.c`
/// `homa_grant_check_fifo`, GRANT-8).
///
/// The kernel gives one increment per interval of link time. Here the share is earned by the
/// scheduled bytes that arrive: under load, when it matters, this is the same, and it needs neither
/// a timer nor the rate of the link.
#[derive(Debug)]
pub(super) struct OldestShare {
    /// Bytes out of 1000.
    per_mille: u64,
    /// `fifo_grant_increment`, the most that [`Self::increment`] can be.
    longest: u64,
    increment: u32,
    /// Earned bytes, times 1000.
    credit: u64,
    /// Bytes of an increment that is being given and did not fit into `max_incoming` at once.
    pending: u32,
}

/// Part of `max_incoming` that one increment is at most. Source: the kernel's 50,000 of 400,000
/// bytes.
const PART: u64 = 8;

/// No increment is less: a full packet, and the least that `fifo_grant_increment` can be.
const SHORTEST: u64 = 1_500;

impl OldestShare {
    pub(super) const fn new(config: &Config) -> Self {
        let longest = config.fifo_grant_increment();
        Self {
            per_mille: config.grant_fifo_fraction(),
            longest,
            increment: longest as u32,
            credit: 0,
            pending: 0,
        }
    }

    /// Sets the limit on granted bytes of all messages together. An increment overtakes the grants
    /// of others and delays them: on a link that is a hundred times slower, it must be smaller.
    pub(super) fn set_max_incoming(&mut self, bytes: u64) {
        self.increment = (bytes / PART).max(SHORTEST).min(self.longest) as u32;
    }

    /// Scheduled bytes have arrived. At most one increment is saved.
    pub(super) fn data_arrived(&mut self, bytes: u32) {
        let most = u64::from(self.increment) * 1_000;
        self.credit = (self.credit + u64::from(bytes) * self.per_mille).min(most);
    }

    /// Bytes that the oldest message should be granted now; `None` if its share is not due.
    ///
    /// A message that already has its window and two increments in flight gets no further one: its
    /// sender does not use them.
    pub(super) fn due(&mut self, message: &MessageIn, window: u32) -> Option<u32> {
        let enough = window.saturating_add(2 * self.increment);
        if message.outstanding() > enough {
            return None;
        }
        if self.pending == 0 && self.credit >= u64::from(self.increment) * 1_000 {
            self.credit = 0;
            self.pending = self.increment;
        }
        let left = message.length() - Window::base(message);
        (self.pending > 0).then(|| self.pending.min(left))
    }

    /// `bytes` of the share have been granted.
    pub(super) const fn granted(&mut self, bytes: u32) {
        self.pending = self.pending.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HM `homa_grant.c` `homa_grant_check_fifo`: 5 % means one increment of 50,000 bytes for each
    /// 1,000,000 that arrive.
    #[test]
    fn the_share_is_earned_by_arriving_bytes() {
        let mut share = OldestShare::new(&Config::default());
        let message = MessageIn::new(10_000_000, 40_000);
        share.data_arrived(999_999);
        assert_eq!(share.due(&message, 40_000), None);
        share.data_arrived(1);
        assert_eq!(share.due(&message, 40_000), Some(50_000));
        share.granted(20_000);
        assert_eq!(share.due(&message, 40_000), Some(30_000), "the rest, when there is room");
        share.granted(30_000);
        assert_eq!(share.due(&message, 40_000), None);
    }

    #[test]
    fn an_increment_is_an_eighth_of_what_may_be_granted_at_most() {
        let mut share = OldestShare::new(&Config::default());
        let message = MessageIn::new(10_000_000, 1);
        for (max_incoming, increment) in
            [(1_600_000, 50_000), (160_000, 20_000), (40_000, 5_000), (1, 1_500)]
        {
            share.set_max_incoming(max_incoming);
            share.data_arrived(u32::MAX);
            assert_eq!(share.due(&message, 40_000), Some(increment));
            share.granted(increment);
        }
    }

    #[test]
    fn a_sender_that_does_not_use_its_grants_gets_no_more() {
        let mut share = OldestShare::new(&Config::default());
        share.data_arrived(5_000_000);
        let message = MessageIn::new(10_000_000, 140_001);
        assert_eq!(share.due(&message, 40_000), None);
        assert_eq!(share.due(&MessageIn::new(10_000_000, 140_000), 40_000), Some(50_000));
    }

    #[test]
    fn a_fraction_of_zero_switches_the_share_off() {
        let config = Config::builder().grant_fifo_fraction(0).build().unwrap();
        let mut share = OldestShare::new(&config);
        share.data_arrived(u32::MAX);
        assert_eq!(share.due(&MessageIn::new(10_000_000, 1), 40_000), None);
    }
}
