//! Paths: shared memory or UDP to peers on the same host.

use apus::EndpointBuilder;
use clap::ValueEnum;

/// How messages reach peers on the same host. Other hosts are always reached by UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Path {
    /// Through shared memory if the peer is on this host and also uses `auto`, otherwise over UDP
    Auto,
    /// Over UDP, as to other hosts
    Udp,
}

impl Path {
    /// Applies the path to an endpoint's settings. `Auto` leaves the choice to the configuration.
    pub(crate) fn apply(self, builder: EndpointBuilder) -> EndpointBuilder {
        match self {
            Self::Auto => builder,
            Self::Udp => builder.local(false),
        }
    }
}
