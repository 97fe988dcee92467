//! Callbacks: requests of the server to a client.

use serde::{Deserialize, Serialize};

use crate::wire::handle::Handle;
use crate::wire::lease::LeaseKind;
use crate::wire::limits::MAX_NODES;
use crate::wire::list::list;

/// A request of the server to a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Callback {
    /// Recalls leases. Before the client responds, all its changes of these nodes, and all earlier
    /// ones, are at the server, and its kernel has dropped the nodes.
    Recall {
        /// The session with the leases.
        session: u64,
        /// The recalled nodes.
        #[serde(deserialize_with = "list::<_, _, MAX_NODES>")]
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
        #[serde(deserialize_with = "list::<_, _, MAX_NODES>")]
        open: Vec<Handle>,
    },
    /// The client does not have the session.
    UnknownSession,
    /// The client did not understand the message.
    Malformed,
}
