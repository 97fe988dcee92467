//! Which way do messages go?

use apus::Builder;
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
    /// An endpoint that goes this way: `Auto` leaves it as it is set up.
    pub(crate) fn apply(self, builder: Builder) -> Builder {
        match self {
            Self::Auto => builder,
            Self::Udp => builder.local(false),
        }
    }
}
