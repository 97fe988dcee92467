//! The attacks.

use serde::{Deserialize, Serialize};

/// An attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attack {
    /// Datagrams that are no packets: the cost of delivering a flood.
    Malformed,
    /// Packets of each type in the name of the honest client, in sessions that do not exist; with
    /// `--sealed`, under keys that the attacker does not have.
    Forged,
    /// First packets of unknown clients; with `--sealed`, of handshakes.
    Unknown,
    /// Four requests of maximum length; only the first packet of each is sent.
    Claims,
}

impl Attack {
    /// All attacks, in the order of the report.
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

    /// Returns whether the attack is possible; against endpoints that seal, an attacker has no key.
    #[must_use]
    pub const fn is_possible(self, sealed: bool) -> bool {
        !sealed || !matches!(self, Self::Claims)
    }
}
