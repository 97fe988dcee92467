//! The attacks.

use serde::{Deserialize, Serialize};

/// Something that an attacker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attack {
    /// Datagrams that are no packets: what it costs to have a flood delivered.
    Malformed,
    /// Packets of each type in the name of the honest client, in sessions that there are not; with `--sealed` under keys that
    /// the attacker does not have.
    Forged,
    /// First packets of clients that the server does not know; with `--sealed` of handshakes.
    Unknown,
    /// Four requests of the greatest length, of which no more than the first packet comes.
    Claims,
}

impl Attack {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Malformed, Self::Forged, Self::Unknown, Self::Claims];

    /// Returns the name in options and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Forged => "forged",
            Self::Unknown => "unknown",
            Self::Claims => "claims",
        }
    }

    /// Returns whether an attacker can do it to endpoints that seal: it has no key.
    #[must_use]
    pub const fn is_possible(self, sealed: bool) -> bool {
        !sealed || !matches!(self, Self::Claims)
    }
}
