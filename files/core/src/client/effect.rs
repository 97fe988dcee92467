//! What a client asks of the world around it.

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
    /// Paths below the mount of nodes that they change, as far as the client knows them. Names may be the server's, and are checked as all
    /// names are: none is empty, `.` or `..`, or has a `/`.
    pub paths: BTreeMap<Ino, Vec<Name>>,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostChange {
    /// The change. Positions in the payload of its batch mean nothing any more.
    pub record: Record,
    /// The bytes of a write, in pieces.
    pub data: Vec<Bytes>,
}

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEffect {
    /// An operation has ended.
    Reply {
        /// The operation.
        operation: OpToken,
        /// Its result.
        result: Result<Reply, Errno>,
    },
    /// The server is to be called; then [`Client::handle_response`](super::Client::handle_response).
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
    /// The kernel is to drop what it has cached; then [`Client::notified`](super::Client::notified). Never from a thread that serves
    /// requests of the kernel.
    Invalidate {
        /// Names the invalidations.
        notification: NotifyToken,
        /// What is dropped, in order.
        items: Vec<Invalidation>,
    },
    /// Something that a person should read in the daemon's log.
    Warn(String),
    /// Changes can never reach the server. They are to be kept where a person finds them.
    Lost(LostChanges),
}
