//! How does one side tell the other why it left?
//!
//! A word of its own that it sets before its socket closes. A process that is killed leaves it at 0; that is
//! how the survivor tells a death from a farewell. It is a claim and no more.

use crate::error::Disconnected;

/// It ended the pair in good order.
const CLOSED: u32 = 1;
/// It says that the other side broke the protocol.
const ACCUSED: u32 = 2;

/// What the leaving side writes.
pub(crate) const fn word(gone: Disconnected) -> u32 {
    match gone {
        Disconnected::Violation(_) => ACCUSED,
        _ => CLOSED,
    }
}

/// What the staying side reads.
pub(crate) const fn read(word: u32) -> Disconnected {
    match word {
        CLOSED => Disconnected::PeerClosed,
        ACCUSED => Disconnected::Accused,
        _ => Disconnected::PeerDied,
    }
}
