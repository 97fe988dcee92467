//! Names of nodes: files, directories and everything else that has attributes.

use serde::{Deserialize, Serialize};

/// Number of a node. It never names another node of the same export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Ino(pub u64);

impl Ino {
    /// The directory that is exported.
    pub const ROOT: Self = Self(1);
}

impl std::fmt::Display for Ino {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// A node, and the proof that the server has given it to a client.
///
/// The proof is a keyed hash of the number. A client cannot reach a node by guessing numbers: it
/// must have found it in a directory. A node that the client has created, with a number of its own
/// range, needs no proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle {
    /// The node.
    pub ino: Ino,
    /// The proof; 0 for a node that this client has created.
    pub proof: u64,
}

impl Handle {
    /// Returns the handle of a node that the client creates, with a number of its own range.
    pub const fn created(ino: Ino) -> Self {
        Self { ino, proof: 0 }
    }
}
