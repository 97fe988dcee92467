//! The mode of security.

use std::fmt;

/// How endpoints show who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum SecurityMode {
    /// Certificates of a CA.
    #[default]
    Tls,
    /// Raw public keys that each host has in a file.
    Keys,
    /// A secret that all hosts of a cluster know.
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
