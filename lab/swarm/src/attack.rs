//! Attacks: the abilities of a fabric's hostile host, and the extent of the attack.

use std::fmt;

use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, Nanos};

/// Abilities of a hostile host (lab ADR 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// Sends packets with any source address, and sees no packets.
    OffPath,
    /// Like `OffPath`, and reads the ids of RPCs, as if logs or traces were published.
    Informed,
    /// Has its own addresses, and sees the packets sent to them.
    Client,
    /// Sees the packets to and from one host, and sends any of them again.
    OnLink,
}

impl Position {
    /// All positions.
    pub const ALL: [Self; 4] = [Self::OffPath, Self::Informed, Self::Client, Self::OnLink];
}

/// An attack of one host on the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attack {
    /// Abilities of the host.
    pub position: Position,
    /// The hostile host. Honest hosts have the lower numbers.
    pub host: HostId,
    /// The main victim; for an attacker on a link, the host whose packets it sees.
    pub target: HostId,
    /// Share of its link that its packets use, in thousandths.
    pub per_mille: u32,
    /// Packets that it sends back to back.
    pub burst: u32,
    /// Start.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
    /// Whether it stays silent, for the run that an attacked run is compared with.
    pub is_silent: bool,
}

impl fmt::Display for Attack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { position, host, target, per_mille, burst, from, until, is_silent } = self;
        let micros = |nanos: &Nanos| *nanos as f64 / MICROSECOND as f64;
        write!(
            f,
            "host {host} is hostile: {position:?}, {per_mille} ‰ of its link in bursts of {burst} packets, from {:.3} to \
             {:.3} µs",
            micros(from),
            micros(until),
        )?;
        write!(f, ", mostly at host {target}")?;
        if *is_silent {
            write!(f, "; it is silent in this run")?;
        }
        Ok(())
    }
}
