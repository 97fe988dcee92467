//! Close word: the reason for which each side closed the pair.
//!
//! A side sets its word before its socket closes. A process that is killed leaves the word at 0, so
//! the survivor can tell a death from a close. The word is only a claim of the peer.

use crate::error::Disconnected;

/// The side closed the pair.
const CLOSED: u32 = 1;
/// The side reports that its peer broke the protocol.
const ACCUSED: u32 = 2;

/// Returns the word of a side that closes the pair for `why`.
pub(crate) const fn encode(why: Disconnected) -> u32 {
    match why {
        Disconnected::Violation(_) => ACCUSED,
        _ => CLOSED,
    }
}

/// Returns the reason that the peer of a closing side reports.
pub(crate) const fn decode(word: u32) -> Disconnected {
    match word {
        CLOSED => Disconnected::PeerClosed,
        ACCUSED => Disconnected::Accused,
        _ => Disconnected::PeerDied,
    }
}
