//! Effects: actions that a client requests from its caller.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::wire::{Errno, Ino, Name, Record, RequestKind, Time};
use bytes::Bytes;

use super::operation::Reply;

/// Names an operation that waits for its reply; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpToken(pub u64);

/// Names a call to the server; chosen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientCall(pub u64);

/// Names a callback of the server that waits for its response; chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerCallback(pub u64);

/// Names invalidations that the kernel is carrying out; chosen by the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NotifyToken(pub u64);

/// The present time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Time since an arbitrary origin, on a clock that runs while the machine is suspended.
    pub now: Duration,
    /// Time of day.
    pub wall: Time,
}

/// Something that the kernel has cached and must drop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Invalidation {
    /// Attributes of a node and, if `data` is set, its cached pages.
    Node {
        /// The node.
        node: Ino,
        /// Pages, too.
        data: bool,
    },
    /// Every cached name is looked up again before its next use.
    Names,
}

/// Changes that can never reach the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostChanges {
    /// Why.
    pub why: String,
    /// The changes, in the order in which programs made them.
    pub changes: Vec<LostChange>,
    /// Paths below the mount of the changed nodes, where the client has them. Names may be the
    /// server's, and are checked like all names: none is empty, `.` or `..`, or contains a `/`.
    pub paths: BTreeMap<Ino, Vec<Name>>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostChange {
    /// The change. Its positions in the payload of its batch no longer mean anything.
    pub record: Record,
    /// The bytes of a write, in pieces.
    pub data: Vec<Bytes>,
}

/// An action that a client requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEffect {
    /// An operation has ended.
    Reply {
        /// The operation.
        operation: OpToken,
        /// Its result.
        result: Result<Reply, Errno>,
    },
    /// Call the server, then [`Client::handle_response`](crate::client::Client::handle_response).
    Call {
        /// Names the call.
        call: ClientCall,
        /// Kind of the request.
        kind: RequestKind,
        /// The message's header, framed.
        header: Bytes,
        /// Its payload, in pieces.
        payload: Vec<Bytes>,
    },
    /// A callback is to be answered.
    Answer {
        /// The callback.
        callback: ServerCallback,
        /// The response.
        message: Bytes,
    },
    /// Have the kernel drop cached items, then call [`Client::notified`](crate::client::Client::notified).
    /// Never on a thread that serves requests of the kernel.
    Invalidate {
        /// Names the invalidations.
        notification: NotifyToken,
        /// The items, in order.
        items: Vec<Invalidation>,
    },
    /// Something that a person should read in the daemon's log.
    Warn(String),
    /// Changes can never reach the server. They are to be kept where a person finds them.
    Lost(LostChanges),
}
