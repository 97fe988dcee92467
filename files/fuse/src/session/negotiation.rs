//! Start of a connection: negotiates the version and the supported features.

use super::settings::{PAGE, SessionSettings};
use crate::codec::{Init, InitFlags, InitReply};

/// Major version of the protocol.
pub(crate) const MAJOR: u32 = 7;

/// Latest minor version that the codec supports.
const MINOR: u32 = 45;

/// Earliest minor version that the codec supports: Linux 5.4.
pub(crate) const OLDEST_MINOR: u32 = 31;

/// Pages of the longest request of a kernel that does not negotiate them.
const DEFAULT_PAGES: u32 = 32;

/// Parameters that both sides agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Negotiated {
    /// Minor version of the protocol, 31 to 45; the major version is 7.
    pub minor: u32,
    /// Accepted features of the kernel's offer.
    pub flags: InitFlags,
    /// Longest write in bytes.
    pub max_write: u32,
    /// Longest read-ahead in bytes.
    pub max_readahead: u32,
}

/// Answer to INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The connection is established.
    Agreed(InitReply, Negotiated),
    /// The kernel is newer: the reply tells it the major version of this side, and it sends another
    /// INIT.
    OtherMajor(InitReply),
    /// The kernel is too old.
    TooOld,
}

/// Decides how INIT is answered.
pub(crate) fn negotiate(init: &Init, settings: &SessionSettings) -> Answer {
    if init.major < MAJOR || (init.major == MAJOR && init.minor < OLDEST_MINOR) {
        return Answer::TooOld;
    }
    let flags = init.flags & settings.flags & !SessionSettings::NEVER;
    let mut max_write = settings.checked_max_write();
    if !flags.contains(InitFlags::MAX_PAGES) {
        max_write = max_write.min(DEFAULT_PAGES * PAGE);
    }
    let reply = InitReply {
        major: MAJOR,
        minor: MINOR,
        max_readahead: init.max_readahead.min(settings.max_readahead),
        flags,
        max_background: settings.max_background,
        congestion_threshold: settings.congestion_threshold,
        max_write,
        time_granularity: 1,
        max_pages: u16::try_from(max_write / PAGE).unwrap_or(u16::MAX),
    };
    if init.major > MAJOR {
        return Answer::OtherMajor(reply);
    }
    let negotiated = Negotiated {
        minor: init.minor.min(MINOR),
        flags,
        max_write,
        max_readahead: reply.max_readahead,
    };
    Answer::Agreed(reply, negotiated)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(major: u32, minor: u32, flags: InitFlags) -> Init {
        Init { major, minor, max_readahead: 131_072, flags }
    }

    #[test]
    fn only_what_is_offered_and_wanted_is_taken() {
        let everything = init(7, 46, InitFlags::all());
        let Answer::Agreed(reply, agreed) = negotiate(&everything, &SessionSettings::default())
        else {
            panic!("7.46 is understood as 7.45");
        };
        assert_eq!(agreed.minor, 45);
        assert_eq!(reply.flags, SessionSettings::FLAGS);
        assert!(!agreed.flags.intersects(SessionSettings::NEVER));
        assert_eq!((reply.max_pages, reply.max_write), (256, 1 << 20));

        let settings =
            SessionSettings { flags: InitFlags::all(), max_write: 10_000, ..Default::default() };
        let few = init(7, 31, InitFlags::ASYNC_READ | InitFlags::WRITEBACK_CACHE);
        let Answer::Agreed(reply, agreed) = negotiate(&few, &settings) else {
            panic!("7.31 is understood")
        };
        assert_eq!(agreed.flags, InitFlags::ASYNC_READ);
        assert_eq!(reply.max_write, 8192);
    }

    #[test]
    fn other_versions_are_refused_or_asked_again() {
        let answer = |major, minor| {
            negotiate(&init(major, minor, InitFlags::empty()), &SessionSettings::default())
        };
        assert_eq!(answer(7, 30), Answer::TooOld);
        assert_eq!(answer(6, 99), Answer::TooOld);
        let Answer::OtherMajor(reply) = answer(8, 0) else { panic!("8 is newer") };
        assert_eq!(reply.major, 7);
    }
}
