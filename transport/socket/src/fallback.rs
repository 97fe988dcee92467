//! Calls that the system refuses although a simpler one works: a filter of system calls, a broken
//! offload of a device, an old or an emulated kernel.
//!
//! The simpler call replaces a refused one at once, so no packet is lost, and from then on
//! (SOCKET-3).
//!
//! # Invariants
//!
//! - **FALLBACK-1** A call counts as refused only if the simpler call worked in its place: an error
//!   of a destination, or of the socket, is also one of the simpler call.
//! - **FALLBACK-2** Errors that a packet may cause as well count only [`DOUBTS`] times in a row:
//!   one packet may meet a full table of connections, and the next one not.

use rustix::io::Errno;
use std::sync::atomic::{AtomicI32, Ordering};

/// Failures in a row after which a call counts as refused. Chosen by us: three.
const DOUBTS: u8 = 3;

/// Whether the system refuses a call.
#[derive(Debug, Default)]
pub(crate) struct Fallback {
    /// Failures in a row where the simpler call worked.
    doubts: u8,
    is_refused: bool,
}

impl Fallback {
    /// Returns whether only the simpler call is to be used.
    #[inline]
    pub(crate) const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Records that the call worked.
    #[inline]
    pub(crate) const fn note_success(&mut self) {
        self.doubts = 0;
    }

    /// Records that the simpler call worked where this one failed with `error`. Returns whether the
    /// call counts as refused from now on.
    #[cold]
    pub(crate) fn note_failure(&mut self, error: Errno) -> bool {
        self.doubts += 1;
        if error == Errno::NOSYS || self.doubts >= DOUBTS {
            self.is_refused = true;
        }
        self.is_refused
    }
}

/// A call that has a simpler one in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Several datagrams in one call.
    SendMany,
    /// Several packets in one datagram of the system.
    Segment,
    /// Several datagrams in one call.
    ReceiveMany,
}

impl Call {
    const ALL: [Self; 3] = [Self::SendMany, Self::Segment, Self::ReceiveMany];

    const fn consequence(self) -> (&'static str, &'static str) {
        match self {
            Self::SendMany => ("sendmmsg", "datagrams are sent one at a time"),
            Self::Segment => ("UDP_SEGMENT", "packets are sent one at a time"),
            Self::ReceiveMany => ("recvmmsg", "datagrams are received one at a time"),
        }
    }
}

/// Refused calls of both halves that were not reported to the engine: the error of each, or 0.
#[derive(Debug, Default)]
pub(crate) struct RefusedCalls([AtomicI32; Call::ALL.len()]);

impl RefusedCalls {
    /// Records that `call` is refused with `error`.
    #[cold]
    pub(crate) fn add(&self, call: Call, error: Errno) {
        self.0[call as usize].store(error.raw_os_error(), Ordering::Relaxed);
    }

    /// Returns a sentence about a refused call, once.
    #[inline]
    pub(crate) fn take(&self) -> Option<String> {
        let is_none = self.0.iter().all(|error| error.load(Ordering::Relaxed) == 0);
        if is_none { None } else { self.describe() }
    }

    #[cold]
    fn describe(&self) -> Option<String> {
        Call::ALL.into_iter().find_map(|call| {
            let error = self.0[call as usize].swap(0, Ordering::Relaxed);
            let (name, consequence) = call.consequence();
            let error = (error != 0).then(|| Errno::from_raw_os_error(error))?;
            Some(format!("the system refuses {name} ({error}): {consequence}, which is slower"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FALLBACK-2.
    #[test]
    fn a_call_that_does_not_exist_is_refused_at_once_and_others_after_three_failures() {
        let mut fallback = Fallback::default();
        assert!(fallback.note_failure(Errno::NOSYS) && fallback.is_refused());
        for error in [Errno::PERM, Errno::IO, Errno::INVAL, Errno::MSGSIZE] {
            let mut fallback = Fallback::default();
            let mut refused = [false; 5];
            for (i, refused) in refused.iter_mut().enumerate() {
                *refused = fallback.note_failure(error);
                if i == 1 {
                    fallback.note_success();
                }
            }
            assert_eq!(refused, [false, false, false, false, true], "{error}");
        }
    }

    #[test]
    fn a_refused_call_is_reported_once() {
        let refused = RefusedCalls::default();
        assert_eq!(refused.take(), None);
        refused.add(Call::ReceiveMany, Errno::NOSYS);
        refused.add(Call::SendMany, Errno::PERM);
        let texts: Vec<String> = std::iter::from_fn(|| refused.take()).collect();
        assert_eq!(texts.len(), 2);
        assert!(texts[0].contains("sendmmsg") && texts[1].contains("recvmmsg"), "{texts:?}");
        assert_eq!(refused.take(), None);
    }
}
