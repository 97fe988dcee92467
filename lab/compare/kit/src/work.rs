//! The work of all peers.

use serde::{Deserialize, Serialize};

/// How a process waits for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// It polls, and never sleeps.
    Spin,
    /// It sleeps in the kernel.
    Block,
}

/// Work of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// Calls one at a time; the reply is the request.
    RoundTrips {
        /// Bytes of a request.
        size: usize,
    },
    /// Many calls outstanding; the reply is the request.
    Rate {
        /// Bytes of a request.
        size: usize,
        /// Number of outstanding calls.
        outstanding: usize,
    },
    /// Long requests, some of them outstanding; the reply is short.
    Throughput {
        /// Bytes of a request.
        size: usize,
        /// Number of outstanding calls.
        outstanding: usize,
    },
    /// Requests to several servers, each started when it is due; the reply is the request.
    Load {
        /// Bytes of the longest request.
        size: usize,
        /// Maximum outstanding calls.
        outstanding: usize,
    },
}

impl Work {
    /// Returns the bytes of a request.
    #[must_use]
    pub const fn size(self) -> usize {
        match self {
            Self::RoundTrips { size }
            | Self::Rate { size, .. }
            | Self::Throughput { size, .. }
            | Self::Load { size, .. } => size,
        }
    }

    /// Returns the number of outstanding calls.
    #[must_use]
    pub const fn outstanding(self) -> usize {
        match self {
            Self::RoundTrips { .. } => 1,
            Self::Rate { outstanding, .. }
            | Self::Throughput { outstanding, .. }
            | Self::Load { outstanding, .. } => outstanding,
        }
    }

    /// Returns whether the reply has the bytes of the request.
    #[must_use]
    pub const fn is_echo(self) -> bool {
        !matches!(self, Self::Throughput { .. })
    }
}
