//! What have others measured?
//!
//! Figures of SIGCOMM 2018 (Montazeri, Li, Alizadeh, Ousterhout: Homa), so that ours can stand beside them:
//!
//! - [`slowdown`]: slowdown by size of message, figures 12 and 13, of each [`Scheme`];
//! - [`queue_length`]: lengths of queues in switches, Table 1;
//! - [`sustainable_load`]: the highest load that a transport carries, figure 15;
//! - [`scheduled_levels`] and [`payload_share`]: how the paper set Homa up for each workload.
//!
//! Everything is looked up by the name of a workload, `w1` to `w5`; for a name that nobody has published
//! anything about (a file, `w4 truncated at 1000000 bytes`) there is nothing. Figures of which the digits
//! are not certain say so ([`Evidence`]).

mod load;
mod queue;
mod setup;
mod slowdown;
#[cfg(test)]
mod tests;

use std::fmt;

pub use load::{SUSTAINABLE_LOADS, SustainableLoad, sustainable_load};
pub use queue::{GOAL_CORE_MEAN_KB, GOAL_TOR_TO_HOST, Queue, QueueLength, queue_length};
pub use setup::{payload_share, scheduled_levels};
pub use slowdown::{FIGURES, Figure, Percentile, Point, Row, Summary, figure, slowdown};

/// A transport in the comparison of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scheme {
    /// Homa.
    Homa,
    /// pFabric: switches keep the packets of the messages with the fewest remaining bytes.
    PFabric,
    /// PIAS: priorities by the bytes sent so far, on DCTCP.
    Pias,
    /// pHost: receivers grant packets, without priorities that adapt.
    PHost,
    /// NDP: switches trim packets. The paper has no slowdown of it for W2 and W4.
    Ndp,
    /// The omniscient scheduler ([`crate::oracle`]).
    SrptOracle,
}

impl Scheme {
    /// All of them, in the order of the paper.
    pub const ALL: [Self; 6] =
        [Self::Homa, Self::PFabric, Self::Pias, Self::PHost, Self::Ndp, Self::SrptOracle];
}

impl fmt::Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Homa => "Homa",
            Self::PFabric => "pFabric",
            Self::Pias => "PIAS",
            Self::PHost => "pHost",
            Self::Ndp => "NDP",
            Self::SrptOracle => "SRPT-Oracle",
        })
    }
}

/// How sure a figure's digits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// Remembered; the order of magnitude is right.
    RecalledLow,
    /// Remembered; the digits may be off.
    RecalledMedium,
    /// Remembered with confidence.
    RecalledHigh,
    /// Read in a primary source: the paper, its raw data, its simulator.
    Verified,
}

/// Whether two names are those of the same workload: `W4` is `w4`.
fn same_workload(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}
