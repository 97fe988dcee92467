//! What a program says about its peer.

use serde::{Deserialize, Serialize};

use crate::Wait;

/// The ways in which the processes of a peer can wait.
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

/// Peers that are compared with each other. Each class has a program of apus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Over the loopback interface, in the clear.
    Clear,
    /// Over the loopback interface, encrypted.
    Sealed,
    /// Between processes of one host, in the clear, over the peer's strongest way: shared memory if it has that.
    SameHost,
}

/// A peer in words.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// Name of its rows.
    pub name: String,
    /// The package whose version in the lock file is the peer's; `None` if it is the system or apus.
    pub package: Option<String>,
    /// How it is set up.
    pub settings: String,
    /// What its documentation recommends for latency, and that it was done.
    pub advice: String,
    /// How its processes can wait.
    pub waits: Waits,
    /// Bytes of its longest message; `None` if there is no limit that matters here.
    pub longest: Option<usize>,
    /// Whether a process can serve several others and call them at the same time. It then takes part in tails.
    pub is_node: bool,
    /// Whether a server of any number of clients allocates memory of its own for each one that connects. It then takes part in
    /// memory, if it is a node.
    pub grows: bool,
    /// Which of apus's programs it is compared with.
    pub class: Class,
}
