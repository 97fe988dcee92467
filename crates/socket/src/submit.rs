//! How are messages handed to the kernel until one of them meets an obstacle?
//!
//! A send can fail although nothing is wrong with its packet: a signal came, or an ICMP error about an
//! earlier packet waits in the socket and this call happens to be the one that is told. Such an error
//! is told once (`sock_error` in Linux `include/net/sock.h` clears it), so the call is simply made
//! again; what fails [`ATTEMPTS`] times in a row is the packet's own fault.

use apus_driver::NetworkError;
use rustix::io::Errno;

use crate::errors::{self, Verdict};
use crate::kernel::Outgoing;

/// Times that a packet is tried before an error counts as its own. Two would be enough if ICMP errors
/// came one at a time; ours: a third one for two of them that arrive within a microsecond.
const ATTEMPTS: u32 = 3;

/// How far a submission came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Submitted {
    /// Messages that the kernel took.
    pub(crate) sent: usize,
    /// System calls that were made.
    pub(crate) calls: u64,
    /// Whether the error queue should be looked at (invariant U2).
    pub(crate) look_at_errors: bool,
    /// What stopped the message after the last one that was sent; `None` if there is no such message.
    pub(crate) obstacle: Option<Obstacle>,
}

/// Why the kernel does not take a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It takes nothing at the moment.
    Full,
    /// It does not take this one.
    Refused(Errno, NetworkError),
    /// It takes nothing any more.
    Broken(Errno),
}

/// Sends `messages` with `call`, which is [`crate::kernel::send`] but in tests.
#[inline]
pub(crate) fn submit<'a>(
    messages: &mut [Outgoing<'a>],
    mut call: impl FnMut(&mut [Outgoing<'a>]) -> Result<usize, Errno>,
) -> Submitted {
    let mut done = Submitted { sent: 0, calls: 0, look_at_errors: false, obstacle: None };
    let mut failures = 0;
    while done.sent < messages.len() && done.obstacle.is_none() {
        done.calls += 1;
        match call(&mut messages[done.sent..]) {
            Ok(count) => {
                done.sent += count;
                // What stopped the next message was forgotten, and may have been an ICMP error.
                done.look_at_errors |= done.sent < messages.len();
                failures = 0;
            }
            Err(error) => done.judge(error, &mut failures),
        }
    }
    done
}

impl Submitted {
    #[cold]
    fn judge(&mut self, error: Errno, failures: &mut u32) {
        self.obstacle = match errors::judge(error) {
            Verdict::Interrupted => None,
            Verdict::NotNow => Some(Obstacle::Full),
            Verdict::Told(trouble) => {
                self.look_at_errors = true;
                *failures += 1;
                (*failures == ATTEMPTS).then_some(match trouble {
                    // An unconnected socket learns this from ICMP only: never about this packet.
                    NetworkError::PortClosed | NetworkError::ProtocolUnreachable => Obstacle::Full,
                    _ => Obstacle::Refused(error, trouble),
                })
            }
            Verdict::Own(trouble) => Some(Obstacle::Refused(error, trouble)),
            Verdict::Broken => Some(Obstacle::Broken(error)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Family, RawAddress};
    use std::collections::VecDeque;
    use std::io::IoSlice;

    /// Submits `count` messages to a kernel that answers with `script`, then takes everything.
    fn submitted(count: usize, script: &[Result<usize, Errno>]) -> Submitted {
        let to = RawAddress::new("10.0.0.1:1".parse().unwrap(), Family::V4).unwrap();
        let pieces = [IoSlice::new(b"packet")];
        let mut messages: Vec<_> = (0..count).map(|_| Outgoing::new(&to, &pieces, &[])).collect();
        let mut script: VecDeque<_> = script.iter().copied().collect();
        submit(&mut messages, |messages| script.pop_front().unwrap_or(Ok(messages.len())))
    }

    fn expect(sent: usize, calls: u64, look: bool, obstacle: Option<Obstacle>) -> Submitted {
        Submitted { sent, calls, look_at_errors: look, obstacle }
    }

    #[test]
    fn usually_one_call_does_it() {
        assert_eq!(submitted(5, &[]), expect(5, 1, false, None));
        assert_eq!(submitted(0, &[]), expect(0, 0, false, None));
    }

    #[test]
    fn a_signal_is_not_noticed() {
        let signals = [Err(Errno::INTR); 10];
        assert_eq!(submitted(1, &signals), expect(1, 11, false, None));
    }

    #[test]
    fn an_error_of_an_earlier_packet_does_not_stop_this_one() {
        for error in [Errno::CONNREFUSED, Errno::HOSTUNREACH, Errno::MSGSIZE] {
            assert_eq!(submitted(2, &[Err(error)]), expect(2, 2, true, None));
            assert_eq!(submitted(2, &[Err(error), Err(error)]), expect(2, 3, true, None));
        }
    }

    #[test]
    fn a_packet_that_fails_again_and_again_is_refused() {
        let again = [Ok(1), Err(Errno::MSGSIZE), Err(Errno::MSGSIZE), Err(Errno::MSGSIZE)];
        let refused = Obstacle::Refused(Errno::MSGSIZE, NetworkError::TooBig);
        assert_eq!(submitted(2, &again), expect(1, 4, true, Some(refused)));
    }

    #[test]
    fn an_error_that_icmp_never_tells_is_the_packets_own_at_once() {
        let refused = Obstacle::Refused(Errno::PERM, NetworkError::NotPermitted);
        assert_eq!(submitted(2, &[Err(Errno::PERM)]), expect(0, 1, false, Some(refused)));
    }

    #[test]
    fn a_flood_of_icmp_errors_accuses_no_packet() {
        let flood = [Err(Errno::CONNREFUSED); 3];
        assert_eq!(submitted(2, &flood), expect(0, 3, true, Some(Obstacle::Full)));
    }

    #[test]
    fn an_error_that_sendmmsg_forgot_is_looked_for() {
        assert_eq!(submitted(3, &[Ok(1)]), expect(3, 2, true, None));
    }

    #[test]
    fn a_full_system_keeps_the_rest() {
        assert_eq!(
            submitted(3, &[Ok(2), Err(Errno::AGAIN)]),
            expect(2, 2, true, Some(Obstacle::Full))
        );
        assert_eq!(submitted(3, &[Err(Errno::NOBUFS)]), expect(0, 1, false, Some(Obstacle::Full)));
    }

    #[test]
    fn a_broken_socket_is_broken_at_once() {
        let broken = Obstacle::Broken(Errno::BADF);
        assert_eq!(submitted(3, &[Err(Errno::BADF)]), expect(0, 1, false, Some(broken)));
    }
}
