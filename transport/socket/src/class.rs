//! Default traffic class of a socket.
//!
//! A class given by control message costs about 110 ns per send: 60 for the message, and 50 because
//! it requires sendmsg instead of sendto (lab/log, 2026-11-20). The socket therefore has a
//! default class, and only packets of another class carry a control message. After several sends in
//! a row with the same other class, that class becomes the default.
//!
//! The priority is in the upper three bits, as in the kernel module: the class selectors CS0 to
//! CS7, which need no privilege and keep their order wherever precedence is honoured (PRIO-10). One
//! socket per priority would mean eight descriptors to poll; SO_PRIORITY only orders the sending
//! host.

use std::os::fd::BorrowedFd;

use rustix::net::sockopt;

use crate::address::Family;
use crate::carrier::Carrier;

/// Sends in a row with the same other class after which it becomes the default. Setting the option
/// costs 220 ns, twice that for two families: as much as two to four control messages. Waiting for
/// four therefore costs at most twice the optimum (the ski rental problem).
const CHANGE_AFTER: u32 = 4;

/// The socket's default class, and a candidate to replace it.
#[derive(Debug)]
pub(crate) struct DefaultClass {
    current: u8,
    /// The other class of the last sends.
    candidate: u8,
    /// Number of these sends.
    streak: u32,
}

impl DefaultClass {
    /// Returns class 0, the default of a new socket.
    pub(crate) fn new() -> Self {
        Self { current: 0, candidate: 0, streak: 0 }
    }

    /// Returns whether a send of `class` needs a control message, and counts the send.
    #[inline]
    pub(crate) fn needs_control(&mut self, class: u8) -> bool {
        if class == self.current {
            self.streak = 0;
            return false;
        }
        if class != self.candidate {
            (self.candidate, self.streak) = (class, 0);
        }
        self.streak += 1;
        true
    }

    /// Makes the candidate the default class after enough sends; returns whether it did. Must not
    /// be called while a message for the kernel is under construction.
    #[inline]
    pub(crate) fn update(&mut self, set: impl FnOnce(u8) -> bool) -> bool {
        if self.streak < CHANGE_AFTER {
            return false;
        }
        self.streak = 0;
        let changed = set(self.candidate);
        if changed {
            self.current = self.candidate;
        }
        changed
    }
}

/// Sets the default class of a socket, for IPv4 and IPv6 packets.
#[cold]
pub(crate) fn set(fd: BorrowedFd<'_>, family: Family, carrier: Carrier, class: u8) -> bool {
    let v6 = || sockopt::set_ipv6_tclass(fd, u32::from(class)).is_ok();
    if family == Family::V6 && carrier != Carrier::Udp {
        // A raw IPv6 socket rejects IPv4 options (`ipv6_setsockopt` in Linux).
        return v6();
    }
    // An IPv6 socket that also reaches IPv4 peers has both options.
    let v4 = sockopt::set_ip_tos(fd, class).is_ok();
    match family {
        Family::V4 => v4,
        Family::V6 => v4 && v6(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends these classes; returns `class` for each control message, and `=class` for each change
    /// of the default.
    fn sends(classes: impl IntoIterator<Item = u8>) -> Vec<String> {
        let mut default = DefaultClass::new();
        let mut log = Vec::new();
        for class in classes {
            let mut set = None;
            default.update(|class| set.replace(class).is_none());
            log.extend(set.map(|class| format!("={class}")));
            if default.needs_control(class) {
                log.push(class.to_string());
            }
        }
        log
    }

    #[test]
    fn the_default_class_needs_no_control_message() {
        assert!(sends([0; 100]).is_empty());
        assert_eq!(sends([0, 184, 0, 32, 0]), ["184", "32"]);
    }

    #[test]
    fn a_class_of_many_sends_in_a_row_becomes_the_default() {
        let log = sends([184; 100]);
        assert_eq!(log.len(), CHANGE_AFTER as usize + 1);
        assert_eq!(log.last().unwrap(), "=184");
    }

    #[test]
    fn a_mixture_changes_nothing() {
        let mixed = (0..100).flat_map(|_| [184, 0, 32, 32]);
        assert!(sends(mixed).iter().all(|entry| !entry.starts_with('=')));
    }

    #[test]
    fn a_change_that_the_system_refuses_is_retried_later() {
        let mut default = DefaultClass::new();
        let mut asked = 0;
        for _ in 0..3 * CHANGE_AFTER {
            assert!(default.needs_control(184), "the class is not lost");
            default.update(|_| {
                asked += 1;
                false
            });
        }
        assert_eq!(asked, 3);
    }
}
