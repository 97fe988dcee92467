//! The window of one message: how far ahead of its data it may be granted.

use crate::config::Config;
use crate::message::MessageIn;

/// The window of granted and not received bytes of a message (HM `homa_grant.c`
/// `homa_grant_update_sysctl_deps`, GRANT-4), and the step by which it moves.
#[derive(Debug)]
pub(super) struct Window {
    /// Fixed size, or 0.
    fixed: u64,
    pub(super) max_incoming: u64,
    increment: u32,
}

/// How far a message may be granted ahead of its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    /// Granted and not received bytes that it may have.
    pub(super) window: u32,
    /// Bytes that are worth a GRANT (GRANT-7).
    pub(super) step: u32,
}

impl Window {
    pub(super) const fn new(config: &Config) -> Self {
        Self {
            fixed: config.window(),
            max_incoming: config.max_incoming(),
            increment: config.grant_increment() as u32,
        }
    }

    pub(super) const fn set_max_incoming(&mut self, bytes: u64) {
        self.max_incoming = bytes;
    }

    /// The terms of each of `active` messages.
    pub(super) fn terms(&self, active: usize) -> Terms {
        let window = self.bytes(active);
        Terms { window, step: self.increment.min(window.div_ceil(2)) }
    }

    /// Window of each of `active` messages.
    ///
    /// One share of `max_incoming` stays free, so that a new, shorter message can be granted at
    /// once.
    pub(super) fn bytes(&self, active: usize) -> u32 {
        let divided = self.max_incoming / (active as u64 + 1);
        // More than `max_incoming` is never granted, and a step of half of more is never
        // worthwhile.
        let bytes = if self.fixed > 0 { self.fixed.min(self.max_incoming) } else { divided };
        u32::try_from(bytes.max(1)).unwrap_or(u32::MAX)
    }

    /// The longest step that GRANT-7 may require.
    pub(super) fn longest_step(&self) -> u32 {
        self.increment.min(self.bytes(1).div_ceil(2))
    }

    /// GRANT-13: the offset from which further grants count: the granted bytes, or the received
    /// bytes if those are more (a packet that starts below the limit may end beyond it, HM
    /// `homa_outgoing.c` `homa_xmit_data`).
    pub(super) fn base(message: &MessageIn) -> u32 {
        message.granted().max(message.received())
    }

    /// Bytes by which `message` should be granted further; `None` if they are not worth a GRANT
    /// yet.
    pub(super) fn increase(message: &MessageIn, terms: Terms) -> Option<u32> {
        let target = message.received().saturating_add(terms.window).min(message.length());
        let wanted = target.checked_sub(Self::base(message))?;
        Self::is_worthwhile(message, terms, wanted).then_some(wanted)
    }

    /// GRANT-7: whether a step of `bytes` is worth a GRANT: it completes the message, or is long
    /// enough. While a shorter step is postponed, more than half of the window is still in flight.
    pub(super) fn is_worthwhile(message: &MessageIn, terms: Terms, bytes: u32) -> bool {
        let ends = bytes > 0 && Self::base(message) + bytes == message.length();
        ends || bytes >= terms.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Instant;

    fn window(fixed: u64) -> Window {
        Window::new(&Config::builder().window(fixed).max_incoming(90_000).build().unwrap())
    }

    /// GRANT-4, HM `homa_grant.c` `homa_grant_update_sysctl_deps`.
    #[test]
    fn the_window_is_a_share_of_max_incoming_unless_it_is_fixed() {
        assert_eq!([1, 2, 8].map(|active| window(0).bytes(active)), [45_000, 30_000, 10_000]);
        assert_eq!([1, 8].map(|active| window(7_000).bytes(active)), [7_000, 7_000]);
    }

    /// Found by the swarm: half of such a window never fits into `max_incoming`, so no message was
    /// granted anything.
    #[test]
    fn a_window_is_no_larger_than_max_incoming() {
        let mut window = window(1_000_000);
        assert_eq!(window.bytes(1), 90_000);
        window.set_max_incoming(5_000);
        let message = MessageIn::new(100_000, 1_000);
        assert!(Window::is_worthwhile(&message, window.terms(1), 5_000));
    }

    #[test]
    fn small_steps_are_put_off_but_not_the_last_one() {
        let terms = window(0).terms(2);
        let mut message = MessageIn::new(100_000, 30_000);
        message.insert(0, &[0; 9_000]);
        assert_eq!(Window::increase(&message, terms), None, "9,000 are less than the increment");
        message.insert(9_000, &[0; 1_000]);
        assert_eq!(Window::increase(&message, terms), Some(10_000));
        message.grant(95_000, Instant::ZERO);
        message.insert(10_000, &[0; 61_000]);
        assert_eq!(Window::increase(&message, terms), Some(5_000), "the end of the message");
        message.grant(100_000, Instant::ZERO);
        assert_eq!(Window::increase(&message, terms), None);
    }

    /// Requirement GRANT-7.
    #[test]
    fn a_window_smaller_than_the_increment_moves_by_half_windows() {
        let terms = window(1_000).terms(1);
        let mut message = MessageIn::new(10_000, 1_000);
        message.insert(0, &[0; 400]);
        assert_eq!(Window::increase(&message, terms), None);
        message.insert(400, &[0; 100]);
        assert_eq!(Window::increase(&message, terms), Some(500));
    }
}
