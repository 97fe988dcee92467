//! Attacks: what the hostile host of a fabric can do, and how much of it.

use std::fmt;

use apus_sim::message::HostId;
use apus_workload::time::{MICROSECOND, Nanos};

/// What a hostile host can see and do (lab ADR 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Position {
    /// Sends packets with any source address, and sees nothing.
    OffPath,
    /// Like `OffPath`, and learns the ids of RPCs, as if logs or traces were published.
    Informed,
    /// Has addresses of its own, and sees what is sent to them.
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
    /// What the host can see and do.
    pub position: Position,
    /// The hostile host. The honest ones have the numbers below.
    pub host: HostId,
    /// The host that it would like to harm most; if it is on a link, the one whose packets it sees.
    pub target: HostId,
    /// Share of its link that its packets use, in thousandths.
    pub per_mille: u32,
    /// Packets that it sends one behind the other.
    pub burst: u32,
    /// Beginning.
    pub from: Nanos,
    /// End.
    pub until: Nanos,
    /// Whether it sends nothing: the run to which an attacked one is compared.
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
