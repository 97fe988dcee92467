//! A program's description of its peer.

use serde::{Deserialize, Serialize};

use crate::Wait;

/// Waiting modes that a peer's processes support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waits {
    /// They sleep in the kernel.
    Block,
    /// They sleep in the kernel or poll: a setting decides.
    Both,
}

impl Waits {
    /// Returns whether a process can wait like that.
    #[must_use]
    pub fn include(self, wait: Wait) -> bool {
        wait == Wait::Block || self == Self::Both
    }
}

/// Class of comparable peers. Each class has a program of apus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Over the loopback interface, in the clear.
    Clear,
    /// Over the loopback interface, encrypted.
    Sealed,
    /// Between processes of one host, unencrypted, over the peer's fastest path: shared memory if
    /// it has that.
    SameHost,
}

/// A peer in words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// Name of its rows.
    pub name: String,
    /// The package whose version in the lock file is the peer's version; `None` for the system and
    /// for apus.
    pub package: Option<String>,
    /// Configuration of the peer.
    pub settings: String,
    /// The latency advice of its documentation, and how it was followed.
    pub advice: String,
    /// How its processes can wait.
    pub waits: Waits,
    /// Maximum message length in bytes; `None` without a relevant limit.
    pub longest: Option<usize>,
    /// Whether a process can serve several others and call them at the same time. If so, the peer
    /// takes part in tails.
    pub is_node: bool,
    /// Whether a server with any number of clients allocates memory for each connecting client. If
    /// so, the peer takes part in memory, provided that it is a node.
    pub grows: bool,
    /// The apus program that it is compared with.
    pub class: Class,
}
