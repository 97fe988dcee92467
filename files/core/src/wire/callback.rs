//! What the server asks of a client.

use serde::{Deserialize, Serialize};

use crate::wire::handle::Handle;
use crate::wire::lease::LeaseKind;

/// A request of the server to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Callback {
    /// The client gives leases back. Before it responds, all its changes that concern these nodes, and all before them, are at
    /// the server, and its kernel has forgotten them.
    Recall {
        /// The session to which the leases belong.
        session: u64,
        /// What is recalled.
        nodes: Vec<RecalledNode>,
    },
    /// The session has ended: its leases are gone, and its batches are refused.
    Fence {
        /// The session.
        session: u64,
    },
}

/// A lease that is recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecalledNode {
    /// The node.
    pub node: Handle,
    /// The kind that the client may keep.
    pub keep: LeaseKind,
    /// Whether another client has removed its last name.
    pub is_removed: bool,
}

/// A client's response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallbackResponse {
    /// The leases are given back.
    Recalled {
        /// Nodes without a name that the client has open: the server keeps them until a record
        /// [`Close`](crate::wire::Record::Close).
        open: Vec<Handle>,
    },
    /// The client does not know the session.
    UnknownSession,
    /// The client did not understand the message.
    Malformed,
}
