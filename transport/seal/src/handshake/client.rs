//! The client's end of a handshake: sends until it is answered, and gives up in the end.

use super::cookie::COOKIE_LEN;
use super::flight::{Flight, PADDED};
use std::net::IpAddr;

/// Time until the first packets are sent again, in nanoseconds. It doubles each time.
///
/// Chosen by us: many round trips of a datacenter, and far less than a call's timeout.
const FIRST_WAIT: u64 = 20_000_000;

/// Longest time between two attempts, in nanoseconds.
const LONGEST_WAIT: u64 = 1_000_000_000;

/// Attempts before the handshake has failed: after about 4 s (SEAL-10).
const ATTEMPTS: u32 = 9;

/// Times that FINISH is sent before the server's NO_KEY counts for more than the wait for READY: packets that arrive before
/// FINISH have no key either. Chosen by us: 140 ms.
const PATIENCE: u32 = 3;

/// Time from the last answer to a HELLO to one of this end to the same peer, in nanoseconds: FINISH has been sent four times by then (SEAL-15).
pub(super) const ANSWERED_WAIT: u64 = 200_000_000;

/// Time from a HELLO for which it is answered again, if this end wants a handshake of its own: its sender repeats it within that time if the
/// answer was lost (SEAL-15).
pub(super) const REPEATED_WAIT: u64 = 2 * FIRST_WAIT;

/// A client's handshake.
#[derive(Debug)]
pub(super) struct ClientHandshake {
    pub(super) flight: Flight,
    /// Local address to send from.
    pub(super) from: Option<IpAddr>,
    cookie: Option<[u8; COOKIE_LEN]>,
    attempts: u32,
    /// When it began.
    pub(super) began: u64,
    /// When the packets are sent again.
    pub(super) due: u64,
    /// Whether another handshake with the same peer goes first, or has gone first (HANDSHAKE-3).
    has_waited: bool,
    /// Until when it rests for the other one.
    rests_until: u64,
    /// Whether the keys are in use: only READY is missing.
    pub(super) is_complete: bool,
}

impl ClientHandshake {
    pub(super) fn new(flight: Flight, from: Option<IpAddr>, now: u64) -> Self {
        Self {
            flight,
            from,
            cookie: None,
            attempts: 0,
            began: now,
            due: now,
            has_waited: false,
            rests_until: 0,
            is_complete: false,
        }
    }

    /// The server asks for a cookie: the first packets are due again, with it. A second one is ignored.
    pub(super) fn take_cookie(&mut self, cookie: &[u8], now: u64) -> bool {
        let Ok(cookie) = <[u8; COOKIE_LEN]>::try_from(cookie) else { return false };
        if self.cookie.is_some_and(|known| known == cookie) {
            return false;
        }
        self.cookie = Some(cookie);
        self.due = now;
        true
    }

    /// The server's answer has arrived: what follows is due at once, and the attempts are counted anew.
    pub(super) const fn answered(&mut self, now: u64) {
        self.attempts = 0;
        self.due = now;
    }

    /// Returns whether the keys are in use, and FINISH was sent so often that READY should have come: the server may have
    /// dropped the handshake.
    pub(super) const fn is_overdue(&self) -> bool {
        self.is_complete && self.attempts > PATIENCE
    }

    /// Returns whether it goes on although the peer has begun handshake `other`, whose HELLO is not answered then (HANDSHAKE-3). While it
    /// rests, those with lower ids go first, too. At the end of its rest they do not: its next HELLO could overtake the answer, which the peer
    /// would read nevertheless if it has rested before.
    pub(super) const fn goes_on(&self, now: u64, other: u64) -> bool {
        if self.is_complete {
            // The peer has not read FINISH yet. Requests may be under way with these keys.
            return !self.is_overdue();
        }
        other < self.flight.id && self.rests_until < now + ANSWERED_WAIT
    }

    /// Lets another handshake with the same peer go first, for a second, once.
    pub(super) const fn wait_for_other(&mut self, now: u64) {
        if !self.has_waited {
            self.has_waited = true;
            self.wait_until(now + LONGEST_WAIT);
        }
    }

    /// Lets another handshake with the same peer go first until `at`.
    pub(super) const fn wait_until(&mut self, at: u64) {
        if self.rests_until < at {
            self.rests_until = at;
        }
        if self.due < at {
            self.due = at;
        }
    }

    /// Returns whether another handshake with the same peer goes first: nothing is sent, and answers are not read.
    pub(super) const fn rests(&self, now: u64) -> bool {
        now < self.rests_until
    }

    /// Returns what is to be sent at `now`; `None` if the peer has not answered for too long.
    pub(super) fn attempt(&mut self, now: u64) -> Option<Vec<Vec<u8>>> {
        if self.attempts == ATTEMPTS {
            return None;
        }
        let wait = FIRST_WAIT << self.attempts.min(16);
        self.attempts += 1;
        self.due = now + wait.min(LONGEST_WAIT);
        let cookie = self.cookie.as_ref().map(|cookie| &cookie[..]);
        Some(if self.flight.has_finish() {
            self.flight.finishes()
        } else {
            self.flight.hellos(PADDED, cookie)
        })
    }
}
