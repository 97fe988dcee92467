//! Submission: sends messages until one is not accepted.
//!
//! A send can fail although its packet is valid: a signal arrived, or the socket reports an ICMP
//! error about an earlier packet to this call. Such an error is reported once (`sock_error` in
//! Linux `include/net/sock.h` clears it), so the call is repeated. An error that occurs
//! [`ATTEMPTS`] times in a row belongs to the packet, or to the call: if the system refuses several
//! messages at once, the first one is sent alone ([`Fallback`]).

use apus_driver::NetworkError;
use rustix::io::Errno;

use crate::errors::{self, ErrorClass};
use crate::fallback::Fallback;
use crate::kernel::OutgoingDatagram;

/// Attempts to send a packet before an error counts as its own. Two would suffice if ICMP errors
/// arrived one at a time. Chosen by us: three, in case two of them arrive within a microsecond.
const ATTEMPTS: u32 = 3;

/// Result of a submission.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Submitted {
    /// Messages accepted by the kernel.
    pub(crate) sent: usize,
    /// System calls made.
    pub(crate) calls: u64,
    /// Whether the error queue must be read (SOCKET-2).
    pub(crate) check_errors: bool,
    /// Calls with several messages that were refused, and the last error.
    pub(crate) refused: u64,
    pub(crate) refusal: Option<Errno>,
    /// Obstacle of the first unsent message; `None` if all messages were sent.
    pub(crate) obstacle: Option<Obstacle>,
}

/// Why the kernel does not accept a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// It accepts no messages at the moment.
    Full,
    /// It does not accept this message.
    Refused(Errno, NetworkError),
    /// The socket is broken.
    Broken(Errno),
}

/// Sends `messages` with `call`, which is [`crate::kernel::send`] except in tests. `many` states
/// whether the system refuses several messages at once.
#[inline]
pub(crate) fn submit<'a>(
    messages: &mut [OutgoingDatagram<'a>],
    many: &mut Fallback,
    mut call: impl FnMut(&mut [OutgoingDatagram<'a>]) -> Result<usize, Errno>,
) -> Submitted {
    let mut done = Submitted::default();
    let mut failures = 0;
    // The error of a call with several messages that was refused; its first one is sent alone.
    let mut refusal = None;
    while done.sent < messages.len() && done.obstacle.is_none() {
        done.calls += 1;
        let is_single = refusal.is_some() || many.is_refused();
        let end = if is_single { done.sent + 1 } else { messages.len() };
        let count = end - done.sent;
        match call(&mut messages[done.sent..end]) {
            Ok(sent) => {
                done.sent += sent;
                // The error of the next message is lost, and may have been an ICMP error.
                done.check_errors |= sent < count;
                failures = 0;
                if let Some(error) = refusal.take() {
                    done.refused += 1;
                    done.refusal = many.note_failure(error).then_some(error);
                } else if count > 1 {
                    many.note_success();
                }
            }
            Err(error) => {
                done.handle_error(error, &mut failures);
                if count > 1 && done.is_refused() {
                    (done.obstacle, failures) = (None, 0);
                    refusal = Some(error);
                }
            }
        }
    }
    done
}

impl Submitted {
    /// Whether the next message, or the call, is not accepted.
    const fn is_refused(&self) -> bool {
        matches!(self.obstacle, Some(Obstacle::Refused(..) | Obstacle::Broken(_)))
    }

    #[cold]
    fn handle_error(&mut self, error: Errno, failures: &mut u32) {
        self.obstacle = match errors::classify(error) {
            ErrorClass::Interrupted => None,
            ErrorClass::WouldBlock => Some(Obstacle::Full),
            ErrorClass::Icmp(cause) => {
                self.check_errors = true;
                *failures += 1;
                (*failures == ATTEMPTS).then_some(match cause {
                    // On an unconnected socket these errors always stem from ICMP, and never
                    // concern this packet.
                    NetworkError::PortClosed | NetworkError::ProtocolUnreachable => Obstacle::Full,
                    _ => Obstacle::Refused(error, cause),
                })
            }
            ErrorClass::Destination(cause) => Some(Obstacle::Refused(error, cause)),
            ErrorClass::Broken => Some(Obstacle::Broken(error)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::{Family, RawAddress};
    use std::collections::VecDeque;
    use std::io::IoSlice;

    /// Submits `count` messages to a kernel that returns the results of `script`, then accepts
    /// everything.
    fn submitted(count: usize, script: &[Result<usize, Errno>]) -> Submitted {
        let to = RawAddress::new("10.0.0.1:1".parse().unwrap(), Family::V4).unwrap();
        let pieces = [IoSlice::new(b"packet")];
        let mut messages: Vec<_> =
            (0..count).map(|_| OutgoingDatagram::new(&to, &pieces, &[])).collect();
        let mut script: VecDeque<_> = script.iter().copied().collect();
        submit(&mut messages, &mut Fallback::default(), |messages| {
            script.pop_front().unwrap_or(Ok(messages.len()))
        })
    }

    fn expect(sent: usize, calls: u64, check: bool, obstacle: Option<Obstacle>) -> Submitted {
        Submitted { sent, calls, check_errors: check, obstacle, ..Submitted::default() }
    }

    #[test]
    fn usually_one_call_sends_everything() {
        assert_eq!(submitted(5, &[]), expect(5, 1, false, None));
        assert_eq!(submitted(0, &[]), expect(0, 0, false, None));
    }

    #[test]
    fn a_signal_is_retried() {
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
    fn a_packet_that_fails_repeatedly_is_refused() {
        let again = [Ok(1), Err(Errno::MSGSIZE), Err(Errno::MSGSIZE), Err(Errno::MSGSIZE)];
        let refused = Obstacle::Refused(Errno::MSGSIZE, NetworkError::TooBig);
        assert_eq!(submitted(2, &again), expect(1, 4, true, Some(refused)));
    }

    #[test]
    fn an_error_that_icmp_never_causes_refuses_the_packet_at_once() {
        let refused = Obstacle::Refused(Errno::PERM, NetworkError::NotPermitted);
        assert_eq!(submitted(1, &[Err(Errno::PERM)]), expect(0, 1, false, Some(refused)));
        assert_eq!(submitted(2, &[Err(Errno::PERM); 2]), expect(0, 2, false, Some(refused)));
    }

    #[test]
    fn a_flood_of_icmp_errors_refuses_no_packet() {
        let flood = [Err(Errno::CONNREFUSED); 3];
        assert_eq!(submitted(2, &flood), expect(0, 3, true, Some(Obstacle::Full)));
    }

    #[test]
    fn an_error_that_sendmmsg_lost_causes_a_check() {
        assert_eq!(submitted(3, &[Ok(1)]), expect(3, 2, true, None));
    }

    #[test]
    fn a_full_system_leaves_the_rest_unsent() {
        assert_eq!(
            submitted(3, &[Ok(2), Err(Errno::AGAIN)]),
            expect(2, 2, true, Some(Obstacle::Full))
        );
        assert_eq!(submitted(3, &[Err(Errno::NOBUFS)]), expect(0, 1, false, Some(Obstacle::Full)));
    }

    #[test]
    fn a_broken_socket_is_broken_at_once() {
        let broken = Obstacle::Broken(Errno::BADF);
        assert_eq!(submitted(1, &[Err(Errno::BADF)]), expect(0, 1, false, Some(broken)));
        assert_eq!(submitted(3, &[Err(Errno::BADF); 2]), expect(0, 2, false, Some(broken)));
    }

    /// A kernel that refuses several messages at once with `error`. Returns the result of each of
    /// `rounds` submissions of three messages.
    fn refusing(error: Errno, rounds: usize) -> Vec<Submitted> {
        let to = RawAddress::new("10.0.0.1:1".parse().unwrap(), Family::V4).unwrap();
        let pieces = [IoSlice::new(b"packet")];
        let mut many = Fallback::default();
        let submissions = (0..rounds).map(|_| {
            let mut messages: Vec<_> =
                (0..3).map(|_| OutgoingDatagram::new(&to, &pieces, &[])).collect();
            submit(&mut messages, &mut many, |messages| match messages.len() {
                1 => Ok(1),
                _ => Err(error),
            })
        });
        submissions.collect()
    }

    /// FALLBACK-1, FALLBACK-2.
    #[test]
    fn a_system_that_refuses_several_messages_at_once_gets_each_alone() {
        for error in [Errno::NOSYS, Errno::IO, Errno::INVAL, Errno::PERM, Errno::MSGSIZE] {
            let rounds = refusing(error, 4);
            for round in &rounds {
                assert_eq!((round.sent, round.obstacle), (3, None), "{error}");
            }
            assert_eq!(rounds[3].calls, 3, "{error}: no further attempt");
            let refusals = rounds.iter().filter(|round| round.refusal == Some(error)).count();
            assert_eq!(refusals, 1, "{error}: reported once");
        }
    }
}
