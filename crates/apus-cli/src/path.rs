//! Which way do messages go?

use clap::ValueEnum;

/// The way to peers on the same host. To other hosts it is UDP anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Path {
    /// Through shared memory if the peer is on this host and does the same, else over UDP
    Auto,
    /// Over UDP, as to other hosts
    Udp,
}

impl Path {
    /// Whether shared memory may be used.
    pub(crate) const fn may_be_local(self) -> bool {
        matches!(self, Self::Auto)
    }
}
