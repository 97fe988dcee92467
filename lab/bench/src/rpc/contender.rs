//! The contenders, by name.

use clap::ValueEnum;
use serde::Serialize;

/// A way to call a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Contender {
    /// A bare call of an endpoint
    Call,
    /// A method of a typed service
    Service,
    /// A generated client of tonic over apus
    TonicApus,
    /// A generated client of tonic over HTTP/2
    #[value(name = "tonic-http2")]
    #[serde(rename = "tonic-http2")]
    TonicHttp2,
    /// A method of tarpc
    Tarpc,
}

impl Contender {
    pub(crate) const ALL: [Self; 5] =
        [Self::Call, Self::Service, Self::TonicApus, Self::TonicHttp2, Self::Tarpc];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Service => "service",
            Self::TonicApus => "tonic-apus",
            Self::TonicHttp2 => "tonic-http2",
            Self::Tarpc => "tarpc",
        }
    }

    /// Returns how the contender is set up.
    pub(crate) const fn settings(self) -> &'static str {
        match self {
            Self::Call => "apus::tokio::Endpoint, recv_request and reply, without shared memory",
            Self::Service => {
                "#[apus::service] and its async client, postcard, serde's bytes, without shared memory"
            }
            Self::TonicApus => "tonic 0.14, prost, apus-tonic, without shared memory",
            Self::TonicHttp2 => "tonic 0.14, prost, its own transport, one connection, TCP_NODELAY",
            Self::Tarpc => "tarpc 0.37, bincode, serde's bytes, one TCP connection, TCP_NODELAY",
        }
    }
}
