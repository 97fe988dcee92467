//! The security mode of an endpoint.

use std::fmt;

/// How endpoints prove their identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum SecurityMode {
    /// Certificates of a CA.
    #[default]
    Tls,
    /// Raw public keys, listed in a file on each host.
    Keys,
    /// A secret shared by all hosts of a cluster.
    Secret,
}

impl fmt::Display for SecurityMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tls => "tls",
            Self::Keys => "keys",
            Self::Secret => "secret",
        })
    }
}
