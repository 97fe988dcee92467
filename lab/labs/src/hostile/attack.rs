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
    /// A request that announces more bytes than it may send, of which one is sent, and signs of
    /// life.
    Announcements,
    /// Requests whose granted bytes are not sent, and signs of life.
    Grants,
    /// A server that does both with the responses to an honest client.
    Responses,
}

impl Attack {
    /// All attacks, in the order of the report.
    pub const ALL: [Self; 7] = [
        Self::Malformed,
        Self::Forged,
        Self::Unknown,
        Self::Claims,
        Self::Announcements,
        Self::Grants,
        Self::Responses,
    ];

    /// Returns the name in options and results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Forged => "forged",
            Self::Unknown => "unknown",
            Self::Claims => "claims",
            Self::Announcements => "announcements",
            Self::Grants => "grants",
            Self::Responses => "responses",
        }
    }

    /// Returns whether the attack is possible; against endpoints that seal, an attacker has no key.
    #[must_use]
    pub const fn is_possible(self, sealed: bool) -> bool {
        !sealed || self.is_flood()
    }

    /// Returns whether the attacker sends as many packets as it can. Other attacks need few
    /// packets; they act in sessions, and may concern calls of some lengths only.
    #[must_use]
    pub const fn is_flood(self) -> bool {
        matches!(self, Self::Malformed | Self::Forged | Self::Unknown)
    }

    /// Returns the lengths of honest calls under this attack, each measured apart.
    #[must_use]
    pub const fn sizes(self) -> &'static [u32] {
        match self {
            Self::Malformed | Self::Forged | Self::Unknown | Self::Claims => &[SHORT],
            Self::Announcements | Self::Grants | Self::Responses => &SIZES,
        }
    }

    /// Returns whether a client of the attacker is attacked, and not a server.
    #[must_use]
    pub const fn is_on_client(self) -> bool {
        matches!(self, Self::Responses)
    }
}

/// Payload bytes of an honest call while floods are measured.
pub(super) const SHORT: u32 = 100;

/// Payload bytes of honest calls under other attacks: one packet, and messages that need GRANTs.
pub(super) const SIZES: [u32; 3] = [200, 1_000_000, 2_000_000];

/// A row of the report: honest calls of one length, under an attack or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) attack: Option<Attack>,
    pub(super) size: u32,
}

impl Case {
    /// Returns the cases for these attacks. The calls of each length without an attack come before
    /// the first attack on them.
    pub(super) fn of(attacks: &[Attack]) -> Vec<Self> {
        let mut cases = vec![Self { attack: None, size: SHORT }];
        for attack in attacks {
            for size in attack.sizes().iter().copied() {
                let alone = Self { attack: None, size };
                if !cases.contains(&alone) {
                    cases.push(alone);
                }
            }
            let case = |size: &u32| Self { attack: Some(*attack), size: *size };
            cases.extend(attack.sizes().iter().map(case));
        }
        cases
    }

    /// Returns the name in results.
    pub(super) fn name(self) -> String {
        let attack = self.attack.map_or("none", Attack::name);
        match self.size {
            SHORT => attack.to_owned(),
            size if size >= 1_000_000 => format!("{attack} {} MB", size / 1_000_000),
            size => format!("{attack} {size} B"),
        }
    }

    /// Returns the same calls without an attack.
    pub(super) const fn alone(self) -> Self {
        Self { attack: None, ..self }
    }

    /// Returns the calls per second; `None` for a share of the capacity.
    ///
    /// Chosen by us: long calls that rarely overlap take about a tenth of the time of one core.
    pub(super) const fn rate(self) -> Option<f64> {
        match self.size {
            SHORT => None,
            0..10_000 => Some(500.0),
            10_000..1_500_000 => Some(50.0),
            _ => Some(25.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_length_is_measured_without_an_attack_first() {
        let names = |attacks: &[Attack]| -> Vec<String> {
            Case::of(attacks).into_iter().map(Case::name).collect()
        };
        assert_eq!(names(&[Attack::Claims]), ["none", "claims"]);
        assert_eq!(
            names(&[Attack::Forged, Attack::Grants, Attack::Responses]),
            [
                "none",
                "forged",
                "none 200 B",
                "none 1 MB",
                "none 2 MB",
                "grants 200 B",
                "grants 1 MB",
                "grants 2 MB",
                "responses 200 B",
                "responses 1 MB",
                "responses 2 MB",
            ]
        );
    }
}
