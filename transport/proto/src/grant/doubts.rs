//! Doubtful hosts: those that have held granted bytes without sending them.
//!
//! A message without progress holds no grants (GRANT-10), but only after a resend interval; its
//! sender may have begun others by then, or have sent just enough. Its host therefore is doubtful
//! for a while (GRANT-21).
//! An honest host may become doubtful as well, because it has had shorter messages to send: its
//! bytes then count for less than they are, which costs no one anything but some queueing.

use crate::peer::HostId;
use crate::time::Instant;
use slotmap::SecondaryMap;

/// The doubtful hosts, and the end of the doubt.
#[derive(Debug, Default)]
pub(super) struct Doubts(SecondaryMap<HostId, Instant>);

impl Doubts {
    /// Doubts `host` until `until`. Returns whether it was trusted before.
    pub(super) fn doubt(&mut self, host: HostId, until: Instant) -> bool {
        self.0.insert(host, until).is_none()
    }

    /// Returns whether `host`, of which a message has made progress at `now`, is trusted from now
    /// on and was not before.
    pub(super) fn trusts_again(&mut self, host: HostId, now: Instant) -> bool {
        let is_over = self.0.get(host).is_some_and(|until| *until <= now);
        if is_over {
            self.0.remove(host);
        }
        is_over
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_host::tests::hosts;
    use super::*;

    #[test]
    fn a_host_is_trusted_again_when_time_has_passed() {
        let [one, other] = hosts();
        let at = Instant::from_nanos;
        let mut doubts = Doubts::default();
        assert!(doubts.doubt(one, at(100)) && !doubts.doubt(one, at(200)));
        assert!(!doubts.trusts_again(one, at(199)) && !doubts.trusts_again(other, at(300)));
        assert!(doubts.trusts_again(one, at(200)) && !doubts.trusts_again(one, at(200)));
        assert!(doubts.doubt(one, at(300)));
    }
}
