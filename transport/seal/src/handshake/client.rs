//! The client's end of a handshake: repeats its packets until they are answered or it gives up.

use super::cookie::COOKIE_LEN;
use super::flight::{Flight, PADDED};
use std::net::IpAddr;
use std::time::Duration;

/// Time until the first packets are sent again. It doubles each time.
///
/// Chosen by us: many round trips of a datacenter, and far less than a call's timeout.
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// Longest time between two attempts, and the rest of a handshake that lets another one go first.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Attempts before the handshake fails, after about 4 s (SEAL-10).
const ATTEMPTS: u32 = 9;

/// Repetitions of FINISH before a NO_KEY from the server outweighs the wait for READY: packets that
/// overtake FINISH lead to a NO_KEY as well. Chosen by us: 140 ms.
const FINISH_REPEATS: u32 = 3;

/// Time from the last answer to a HELLO until this end may send its own to the same peer: the peer
/// has sent FINISH four times by then (SEAL-15).
pub(super) const ANSWERED_WAIT: Duration = Duration::from_millis(200);

/// Time for which a repeated HELLO is still answered although this end wants its own handshake: the
/// client repeats its HELLO within that time if the answer was lost (SEAL-15).
pub(super) const REPEATED_WAIT: Duration = Duration::from_millis(40);

/// A client's handshake.
#[derive(Debug)]
pub(super) struct ClientHandshake {
    pub(super) flight: Flight,
    /// Local address to send from.
    pub(super) from: Option<IpAddr>,
    cookie: Option<[u8; COOKIE_LEN]>,
    attempts: u32,
    /// When it started.
    pub(super) began: Duration,
    /// When its packets are sent next.
    pub(super) due: Duration,
    /// Whether it has let another handshake with the same peer go first (HANDSHAKE-3).
    has_rested: bool,
    /// When its rest ends; zero if it has never rested.
    rests_until: Duration,
    /// Whether its keys are in use, so that only READY is missing.
    pub(super) is_complete: bool,
}

impl ClientHandshake {
    pub(super) fn new(flight: Flight, from: Option<IpAddr>, now: Duration) -> Self {
        Self {
            flight,
            from,
            cookie: None,
            attempts: 0,
            began: now,
            due: now,
            has_rested: false,
            rests_until: Duration::ZERO,
            is_complete: false,
        }
    }

    /// Stores the cookie of a RETRY and makes the first packets due again. Returns whether it was
    /// new.
    pub(super) fn take_cookie(&mut self, cookie: &[u8], now: Duration) -> bool {
        let Ok(cookie) = <[u8; COOKIE_LEN]>::try_from(cookie) else { return false };
        if self.cookie.is_some_and(|known| known == cookie) {
            return false;
        }
        self.cookie = Some(cookie);
        self.due = now;
        true
    }

    /// Makes the next packets due at once and restarts the count of attempts: the server answered.
    pub(super) const fn answered(&mut self, now: Duration) {
        self.attempts = 0;
        self.due = now;
    }

    /// Returns whether READY is late: the keys are in use and FINISH has been repeated often
    /// enough, so the server may have dropped the handshake.
    pub(super) const fn is_overdue(&self) -> bool {
        self.is_complete && self.attempts > FINISH_REPEATS
    }

    /// Returns whether this handshake proceeds although the peer has started handshake `other`,
    /// whose HELLO is then dropped (HANDSHAKE-3).
    ///
    /// During a rest, handshakes with lower ids are answered as well, but not in the last 200 ms:
    /// the next HELLO from here could overtake the answer, and the peer would read both if it has
    /// rested before.
    pub(super) fn proceeds(&self, now: Duration, other: u64) -> bool {
        if self.is_complete {
            // The peer has not read FINISH yet. Requests with these keys may be in flight.
            return !self.is_overdue();
        }
        other < self.flight.id && self.rests_until < now + ANSWERED_WAIT
    }

    /// Lets another handshake with the same peer go first for a second. Works once.
    pub(super) fn rest(&mut self, now: Duration) {
        if !self.has_rested {
            self.has_rested = true;
            self.rest_until(now + LONGEST_WAIT);
        }
    }

    /// Lets another handshake with the same peer go first until `at`.
    pub(super) fn rest_until(&mut self, at: Duration) {
        self.rests_until = self.rests_until.max(at);
        self.due = self.due.max(at);
    }

    /// Returns whether it is resting: it sends no packets and reads no answers.
    pub(super) fn is_resting(&self, now: Duration) -> bool {
        now < self.rests_until
    }

    /// Returns the packets to send at `now`, or `None` if all attempts have gone unanswered.
    pub(super) fn attempt(&mut self, now: Duration) -> Option<Vec<Vec<u8>>> {
        if self.attempts == ATTEMPTS {
            return None;
        }
        let wait = FIRST_WAIT * (1 << self.attempts);
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
