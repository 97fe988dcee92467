//! Which traffic class does the socket carry by itself?
//!
//! A class by control message costs about 110 ns a send: 60 for itself, and 50 because it needs
//! sendmsg where sendto would do (docs/perf-log.md 2026-11-20). So the socket has a usual class, and
//! only packets of another one carry a control message. When several sends in a row need the same
//! other class, that becomes the usual one.

use std::os::fd::BorrowedFd;

use rustix::net::sockopt;

use crate::address::Family;
use crate::carrier::Carrier;

/// Sends in a row with the same unusual class after which it becomes the usual one. Setting the option
/// costs 220 ns, twice that for two families: as much as two to four control messages, so waiting for
/// four costs at most twice what the best foresight would (the ski rental problem).
const PATIENCE: u32 = 4;

/// The class that the socket puts on packets by itself, and whether it still suits.
#[derive(Debug)]
pub(crate) struct UsualClass {
    usual: u8,
    /// The unusual class of the last sends.
    candidate: u8,
    /// Number of these sends.
    streak: u32,
}

impl UsualClass {
    /// Class 0: what every socket begins with.
    pub(crate) fn new() -> Self {
        Self { usual: 0, candidate: 0, streak: 0 }
    }

    /// Whether a send of `class` needs a control message.
    #[inline]
    pub(crate) fn is_unusual(&mut self, class: u8) -> bool {
        if class == self.usual {
            self.streak = 0;
            return false;
        }
        if class != self.candidate {
            (self.candidate, self.streak) = (class, 0);
        }
        self.streak += 1;
        true
    }

    /// Makes the candidate the usual class if it has earned it. Call it while no message for the
    /// kernel is under construction.
    #[inline]
    pub(crate) fn reconsider(&mut self, set: impl FnOnce(u8) -> bool) -> bool {
        if self.streak < PATIENCE {
            return false;
        }
        self.streak = 0;
        let changed = set(self.candidate);
        if changed {
            self.usual = self.candidate;
        }
        changed
    }
}

/// Tells the socket its usual class, for IPv4 and IPv6 packets alike.
#[cold]
pub(crate) fn set(fd: BorrowedFd<'_>, family: Family, carrier: Carrier, class: u8) -> bool {
    let v6 = || sockopt::set_ipv6_tclass(fd, u32::from(class)).is_ok();
    if family == Family::V6 && carrier != Carrier::Udp {
        // A raw socket of IPv6 knows no option of IPv4 (`ipv6_setsockopt` in Linux).
        return v6();
    }
    // An IPv6 socket that also speaks IPv4 has both options.
    let v4 = sockopt::set_ip_tos(fd, class).is_ok();
    match family {
        Family::V4 => v4,
        Family::V6 => v4 && v6(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends these classes; lists `class` where a control message was needed and `=class` where the
    /// usual one changed.
    fn sends(classes: impl IntoIterator<Item = u8>) -> Vec<String> {
        let mut usual = UsualClass::new();
        let mut log = Vec::new();
        for class in classes {
            let mut set = None;
            usual.reconsider(|class| set.replace(class).is_none());
            log.extend(set.map(|class| format!("={class}")));
            if usual.is_unusual(class) {
                log.push(class.to_string());
            }
        }
        log
    }

    #[test]
    fn the_usual_class_needs_no_control_message() {
        assert!(sends([0; 100]).is_empty());
        assert_eq!(sends([0, 184, 0, 32, 0]), ["184", "32"]);
    }

    #[test]
    fn a_class_that_many_sends_in_a_row_need_becomes_the_usual_one() {
        let log = sends([184; 100]);
        assert_eq!(log.len(), PATIENCE as usize + 1);
        assert_eq!(log.last().unwrap(), "=184");
    }

    #[test]
    fn a_mixture_changes_nothing() {
        let mixed = (0..100).flat_map(|_| [184, 0, 32, 32]);
        assert!(sends(mixed).iter().all(|entry| !entry.starts_with('=')));
    }

    #[test]
    fn a_system_that_refuses_is_asked_again_later() {
        let mut usual = UsualClass::new();
        let mut asked = 0;
        for _ in 0..3 * PATIENCE {
            assert!(usual.is_unusual(184), "the class is not lost");
            usual.reconsider(|_| {
                asked += 1;
                false
            });
        }
        assert_eq!(asked, 3);
    }
}
