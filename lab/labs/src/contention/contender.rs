//! Contenders: the pairs that carry messages.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The pairs that carry messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Contender {
    /// Pairs of apus behind one lock for all of them.
    GlobalLock,
    /// Pairs of apus as they are.
    FineGrained,
    /// Socket pairs of the kernel.
    Unix,
}

impl Contender {
    pub(super) const ALL: [Self; 3] = [Self::GlobalLock, Self::FineGrained, Self::Unix];
}

impl fmt::Display for Contender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::GlobalLock => "global-lock",
            Self::FineGrained => "fine-grained",
            Self::Unix => "unix",
        })
    }
}
