//! Errors between two processes: of the protocol, of a pair, of connecting.

use std::io;

/// How a peer broke the protocol. Only its own pair is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A record lacks the mark of all records.
    #[error("a record begins without its mark")]
    Mark,
    /// A record has an unknown kind, or a kind that this side of the pair does not receive.
    #[error("a record has an unknown or misdirected kind")]
    Kind,
    /// A record is longer than the limit, or than the rest of the ring.
    #[error("a record is longer than its ring allows")]
    Length,
    /// The reader of a ring publishes a position that was never written.
    #[error("a read position is ahead of the writer")]
    Head,
    /// A part of a message does not follow the previous one, or exceeds the message.
    #[error("parts of a message do not fit together")]
    Part,
}

/// Why a pair has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Disconnected {
    /// This side closed the pair.
    #[error("closed by this side")]
    Closed,
    /// The peer closed the pair.
    #[error("closed by the peer")]
    PeerClosed,
    /// The peer's process ended without closing the pair: it was killed, crashed, or exited.
    #[error("the peer's process ended without closing the pair")]
    PeerDied,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Violation(Violation),
    /// The peer reports that this side broke the protocol.
    #[error("the peer reports that this side broke the protocol")]
    Accused,
}

/// Why a message was not accepted. No part of it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// No room. [`Pair::receive`](crate::Pair::receive) reports when there is room again.
    #[error("no room until the peer has read earlier messages")]
    Full,
    /// The message is longer than `max_message`.
    #[error("the message has {length} bytes, but max_message is {limit}")]
    TooLarge {
        /// Length of the message in bytes.
        length: u64,
        /// The limit in bytes.
        limit: u32,
    },
    /// The pair has ended.
    #[error(transparent)]
    Disconnected(#[from] Disconnected),
}

/// Why a pair could not be made. Calls can still go over UDP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No process listens under that name: the peer is not on this host, or does not offer this
    /// path.
    #[error("no process listens for local peers under this name")]
    NotListening,
    /// The peer's queue of connecting clients is full, or another thread of this process connects
    /// to the peer.
    #[error("the peer's queue of connecting clients is full, or another thread connects to it")]
    Busy,
    /// The peer did not reply in time.
    #[error("the peer did not reply in time")]
    TimedOut,
    /// The peer runs as another user, which the policy excludes.
    #[error("the peer runs as user {uid}, which this side does not allow")]
    ForeignUser {
        /// Effective user id of the peer.
        uid: u32,
    },
    /// Another user owns the peer's UDP socket, or none does: the process has only taken the name.
    #[error("the process under the peer's name, of user {uid}, does not own the peer's UDP socket")]
    NotOwner {
        /// Effective user id of the process.
        uid: u32,
    },
    /// The peer rejected this client.
    #[error("the peer rejected the connection: {0}")]
    Rejected(Rejection),
    /// The peer's reply is malformed, or the peer closed the connection without one.
    #[error("the peer's reply is malformed or missing")]
    Malformed,
    /// This endpoint has `max_pairs` pairs.
    #[error("this endpoint has reached max_pairs")]
    TooManyPairs,
    /// This endpoint was closed.
    #[error("this endpoint is closed")]
    Closed,
    /// The name is longer than a socket name may be.
    #[error("the name is longer than a socket name may be")]
    NameTooLong,
    /// A system call failed.
    #[error("cannot {action}: {source}")]
    System {
        /// The attempted operation, as an infinitive.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl ConnectError {
    /// Returns a function that wraps an error of the system.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::System { action, source: errno.into() }
    }
}

/// Why a server rejects a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[repr(u32)]
pub enum Rejection {
    /// The client has another version of the handshake.
    #[error("another version of the handshake")]
    Version = 1,
    /// The client runs as a user that the server does not allow.
    #[error("user not allowed")]
    User = 2,
    /// The rings are larger than the server allows, or invalid.
    #[error("ring sizes not allowed")]
    Sizes = 3,
    /// The memory has another length or kind than announced, or lacks seals.
    #[error("memory not as announced")]
    Memory = 4,
    /// The server has reached its `max_pairs`.
    #[error("too many peers")]
    TooMany = 5,
    /// The server is closing.
    #[error("server closing")]
    Closing = 6,
    /// The hello is malformed.
    #[error("malformed hello")]
    Malformed = 7,
}

impl Rejection {
    /// Returns the reason with this number. An unknown number becomes `Malformed`: the client uses
    /// another path in any case.
    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Version,
            2 => Self::User,
            3 => Self::Sizes,
            4 => Self::Memory,
            5 => Self::TooMany,
            6 => Self::Closing,
            _ => Self::Malformed,
        }
    }
}
