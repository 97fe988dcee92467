//! When a server's present life began, as its client can tell (AMO-11).
//!
//! A restarted server does not know the session of its client, and what an earlier life executed.
//! It states how long it has lived. The client compares that with two instants of its own clock: a
//! request that left after the server's birth cannot have reached an earlier life, unless two lives
//! have overlapped; and the session was last shown before the birth, so it is an earlier life's and
//! none that this server has forgotten, or knows at another address of the client.

use crate::time::Instant;

/// Greatest ratio between the rates of two clocks, as a fraction: the system corrects clocks by up
/// to 500 parts in a million (adjtimex(2)).
const DRIFT: u64 = 2_000;

/// Resolution of a stated age, in nanoseconds.
const UNIT: u64 = 1_000;

/// Bounds of the instant at which a server's present life began, on the clock of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Birth {
    earliest: Instant,
    latest: Instant,
}

/// The age of an endpoint born at `born`, as it states it at `now`: in microseconds. 0 states
/// nothing.
pub(crate) fn stated_age(born: Option<Instant>, now: Instant) -> u32 {
    let age = born.map_or(0, |born| now.since(born) / UNIT);
    u32::try_from(age).unwrap_or(u32::MAX)
}

impl Birth {
    /// The birth of a server that was asked at `asked` or later, and whose answer, read at `now`,
    /// states the age `stated` ([`stated_age`]). `None` if it states none, or is too old for the
    /// field (71 minutes).
    pub(crate) fn of_stated(stated: u32, asked: Instant, now: Instant) -> Option<Self> {
        let is_known = stated > 0 && stated < u32::MAX;
        is_known.then(|| Self::of_age(u64::from(stated) * UNIT, asked, now))
    }

    /// The birth of a server that was `age` nanoseconds old at some time from `asked` to `now`.
    pub(crate) fn of_age(age: u64, asked: Instant, now: Instant) -> Self {
        let slack = age / DRIFT + UNIT;
        let before = |at: Instant, nanos| Instant::from_nanos(at.as_nanos().saturating_sub(nanos));
        Self {
            earliest: before(asked, age.saturating_add(slack)),
            latest: before(now, age.saturating_sub(slack)),
        }
    }

    /// Whether no life of the server can have executed a request that left at `sent` for the first
    /// time, in a session that was last shown at `shown`.
    pub(crate) fn excludes(self, shown: Instant, sent: Instant) -> bool {
        shown < self.earliest && sent >= self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + micros * 1_000)
    }

    /// AMO-11: a server born at 10,000 us by the client's clock, asked at 20,000, answers at 20,100
    /// and is heard at 20,200.
    #[test]
    fn only_what_left_after_the_birth_in_a_session_from_before_is_excluded() {
        let stated = stated_age(Some(at(10_000)), at(20_100));
        let birth = Birth::of_stated(stated, at(20_000), at(20_200)).unwrap();
        assert!(birth.excludes(at(9_800), at(10_200)));
        assert!(!birth.excludes(at(9_800), at(10_000)), "it may have left just before the birth");
        assert!(!birth.excludes(at(9_950), at(10_200)), "the session may be this life's");
    }

    #[test]
    fn no_age_and_a_great_age_exclude_nothing() {
        assert_eq!(stated_age(None, at(5)), 0);
        assert_eq!(stated_age(Some(at(5)), at(5)), 0);
        assert_eq!(Birth::of_stated(0, at(5), at(6)), None);
        let old = stated_age(Some(at(0)), at(1 << 33));
        assert_eq!(Birth::of_stated(old, at(1 << 33), at(1 << 33)), None);
    }

    #[test]
    fn clocks_may_differ_in_rate() {
        let hour = 3_600_000_000;
        let birth = Birth::of_stated(hour as u32, at(2 * hour), at(2 * hour)).unwrap();
        let drift = hour / DRIFT;
        assert!(!birth.excludes(at(0), at(hour)));
        assert!(birth.excludes(at(0), at(hour + drift + 2)));
        assert!(!birth.excludes(at(hour - drift), at(2 * hour)));
    }
}
