//! The client's session with the server.

use std::time::Duration;

use crate::wire::{Hello, Ino, InoRange, LeaseKind, WireVersion};
use bytes::Bytes;

use crate::store::ClientId;

/// Behaviour of operations while the server does not respond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// They wait until the server is back, or they are interrupted.
    Wait,
    /// They fail with `ETIMEDOUT` after this time without a response.
    Error(Duration),
}

/// Settings of a client.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Identity of the mount, drawn at random.
    pub id: ClientId,
    /// Host and path of the mount, for people.
    pub name: Bytes,
    /// Name of the export; empty for the export without a name.
    pub export: Bytes,
    /// Refuses all changes.
    pub read_only: bool,
    /// Behaviour of operations while the server does not respond.
    pub lost: Lost,
    /// Whether the kernel looks up every name again on request
    /// ([`Invalidation::Names`](crate::client::Invalidation::Names)). If not, it must not keep names.
    pub kernel_drops_names: bool,
}

/// State of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum SessionState {
    /// Hello was sent, or is to be.
    Greeting,
    /// Leases of the session before are being claimed.
    Reclaiming,
    /// It is used.
    Live,
    /// The server refuses the client for good.
    Refused,
}

/// The session.
#[derive(Debug)]
pub(in crate::client) struct Session {
    pub(in crate::client) settings: ClientSettings,
    pub(in crate::client) state: SessionState,
    /// Its number; `None` before the first Welcome, and when it has ended.
    pub(in crate::client) number: Option<u64>,
    /// How long leases are valid after a request.
    pub(in crate::client) term: Duration,
    /// Until when leases are certainly valid.
    pub(in crate::client) valid_until: Duration,
    /// Whether the term has passed and the kernel was asked to drop pages, which have no term.
    pub(in crate::client) has_lapsed: bool,
    /// When a request was last sent that the server has responded to, or will.
    pub(in crate::client) last_sent: Duration,
    /// Since when the server has not responded; `None` while it does.
    pub(in crate::client) silent_since: Option<Duration>,
    /// The server refuses changes.
    pub(in crate::client) is_server_read_only: bool,
    /// The shortest time that a call has taken.
    pub(in crate::client) round_trip: Option<Duration>,
    /// The session before was not renewed in its term.
    pub(in crate::client) was_away: bool,
    /// Numbers for new nodes that are left.
    next_ino: u64,
    end_ino: u64,
    /// All ranges that the server gave.
    ranges: Vec<InoRange>,
    /// Next Hello at the earliest.
    pub(in crate::client) greet_at: Duration,
    /// Number of greetings after the first one.
    pub(in crate::client) greeting: u64,
    /// Leases of the previous session, to be reclaimed in this one; the next one last.
    pub(in crate::client) to_reclaim: Vec<(Ino, LeaseKind)>,
}

/// The part of a term, as a divisor, during which a client no longer uses its leases, because the
/// server's clock may be faster than its own. Chosen by us: 3 %, thirty times the difference of two
/// clocks that NTP steers (500 ppm each).
const CLOCK_MARGIN: u32 = 32;
/// Number of unused inode numbers below which more are requested.
const FEW_INOS: u64 = 4_096;
/// Ranges that are remembered: each had 2^20 numbers.
const MOST_RANGES: usize = crate::wire::limits::MAX_RANGES;

impl Session {
    pub(in crate::client) fn new(settings: ClientSettings, now: Duration) -> Self {
        Self {
            settings,
            state: SessionState::Greeting,
            number: None,
            term: Duration::ZERO,
            valid_until: Duration::ZERO,
            has_lapsed: false,
            last_sent: now,
            silent_since: Some(now),
            is_server_read_only: false,
            round_trip: None,
            was_away: false,
            next_ino: 0,
            end_ino: 0,
            ranges: Vec::new(),
            greet_at: now,
            greeting: 0,
            to_reclaim: Vec::new(),
        }
    }

    /// Returns the Hello that starts or resumes the session.
    pub(in crate::client) fn hello(&self) -> Hello {
        Hello {
            oldest: WireVersion::OLDEST,
            newest: WireVersion::CURRENT,
            client: self.settings.id.0,
            name: self.settings.name.clone(),
            session: self.number,
            ranges: if self.number.is_none() { self.ranges.clone() } else { Vec::new() },
            read_only: self.settings.read_only,
            export: self.settings.export.clone(),
            greeting: self.greeting,
        }
    }

    /// Returns whether changes are refused: by the mount's settings, or by the server.
    pub(in crate::client) fn is_read_only(&self) -> bool {
        self.settings.read_only || self.is_server_read_only
    }

    /// Adds a range of numbers.
    pub(in crate::client) fn add_range(&mut self, range: InoRange) {
        if self.ranges.len() == MOST_RANGES {
            self.ranges.remove(0);
        }
        self.ranges.push(range);
        (self.next_ino, self.end_ino) = (range.first, range.first.saturating_add(range.count));
    }

    /// Returns whether a new range should be requested.
    pub(in crate::client) fn is_short_of_inos(&self) -> bool {
        self.end_ino - self.next_ino < FEW_INOS
    }

    /// Returns whether a node can be created.
    pub(in crate::client) fn has_ino(&self) -> bool {
        self.next_ino < self.end_ino
    }

    /// Returns a number for a new node.
    ///
    /// # Panics
    ///
    /// If there is none: see [`has_ino`](Self::has_ino).
    pub(in crate::client) fn take_ino(&mut self) -> Ino {
        assert!(self.has_ino(), "a node is created without a number");
        self.next_ino += 1;
        Ino(self.next_ino - 1)
    }

    /// Returns whether leases may be used.
    pub(in crate::client) fn is_live(&self, now: Duration) -> bool {
        self.state == SessionState::Live && now < self.valid_until
    }

    /// Returns how long the kernel may use cached state without asking.
    pub(in crate::client) fn rest(&self, now: Duration) -> Duration {
        self.valid_until.saturating_sub(now)
    }

    /// Extends the term: the server has responded to a request that was sent at `sent`.
    pub(in crate::client) fn renew(&mut self, sent: Duration) {
        let term = self.term - self.term / CLOCK_MARGIN;
        self.valid_until = self.valid_until.max(sent + term);
        self.silent_since = None;
        self.has_lapsed = false;
    }

    /// Records the duration of a call.
    pub(in crate::client) fn note_round_trip(&mut self, time: Duration) {
        self.round_trip = Some(self.round_trip.map_or(time, |shortest| shortest.min(time)));
    }

    /// Returns when the session is renewed if no other request is sent.
    pub(in crate::client) fn renew_at(&self) -> Duration {
        self.last_sent + self.term / 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The server starts a term when it responds, by its own clock: on a clock that is 3 % faster,
    /// the term ends sooner.
    #[test]
    fn the_end_of_a_term_is_left_to_clocks_that_differ() {
        let settings = ClientSettings {
            id: ClientId([1; 16]),
            name: Bytes::new(),
            export: Bytes::new(),
            read_only: false,
            lost: Lost::Wait,
            kernel_drops_names: true,
        };
        let term = Duration::from_secs(10);
        let mut session = Session::new(settings, Duration::ZERO);
        (session.state, session.term) = (SessionState::Live, term);
        session.renew(Duration::from_secs(1));
        assert!(session.is_live(Duration::from_secs(1) + term.mul_f64(0.96)));
        assert!(!session.is_live(Duration::from_secs(1) + term.mul_f64(0.975)));
    }
}
