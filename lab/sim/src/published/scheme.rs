//! Transports in the comparison of the paper, and the reliability of their figures.

use std::fmt;

use serde::Deserialize;

/// A transport in the comparison of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Scheme {
    /// Homa.
    Homa,
    /// pFabric: switches keep the packets of the messages with the fewest remaining bytes.
    #[serde(rename = "pFabric")]
    PFabric,
    /// PIAS: priorities by the bytes sent so far, on DCTCP.
    #[serde(rename = "PIAS")]
    Pias,
    /// pHost: receivers grant packets, without priorities that adapt.
    #[serde(rename = "pHost")]
    PHost,
    /// NDP: switches trim packets. The paper has no slowdown of NDP for W2 and W4.
    #[serde(rename = "NDP")]
    Ndp,
    /// The omniscient scheduler ([`crate::oracle`]).
    #[serde(rename = "SRPT-Oracle")]
    SrptOracle,
}

impl Scheme {
    /// All schemes, in the order of the paper.
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

/// Reliability of a figure's digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Recalled; the order of magnitude is right.
    RecalledLow,
    /// Recalled; the digits may be wrong.
    RecalledMedium,
    /// Recalled with confidence.
    RecalledHigh,
    /// Read in a primary source: the paper, its raw data, its simulator.
    Verified,
}

/// Returns whether two names denote the same workload: `W4` is `w4`.
pub(super) fn same_workload(name: &str, other: &str) -> bool {
    name.eq_ignore_ascii_case(other)
}
