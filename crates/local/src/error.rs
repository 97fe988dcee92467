//! What can go wrong between two processes, and whose fault is it?

use std::io;

/// How a peer broke the protocol. Its pair is closed; nobody else notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// A record does not begin as records do.
    #[error("a record does not begin as records do")]
    Mark,
    /// A record is of no kind that exists, or that this side of the pair can get.
    #[error("a record of a kind that cannot come")]
    Kind,
    /// A record is longer than any writer may make it, or than what is left of the ring.
    #[error("a record longer than its ring allows")]
    Length,
    /// The reader of a ring says that it has read what was never written.
    #[error("a reader ahead of its writer")]
    Head,
    /// A part of a message does not follow the one before it, or is longer than the message.
    #[error("parts of a message that do not fit together")]
    Part,
}

/// Why a pair carries nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Disconnected {
    /// This side closed it.
    #[error("closed here")]
    Closed,
    /// The peer closed it, and said so.
    #[error("closed by the peer")]
    PeerClosed,
    /// The peer's process ended without a word: killed, crashed, or exited.
    #[error("the peer's process ended without closing the pair")]
    PeerDied,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol: {0}")]
    Violation(Violation),
    /// The peer says that this side broke the protocol.
    #[error("the peer says that this side broke the protocol")]
    Accused,
}

/// Why a message was not accepted. Nothing of it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no room. [`Pair::receive`](crate::Pair::receive) reports when there is.
    #[error("no room; wait until the peer has read earlier messages")]
    Full,
    /// A message has at least one byte.
    #[error("the message is empty")]
    Empty,
    /// The message is longer than `max_message`.
    #[error("the message has {length} bytes, max_message is {limit}")]
    TooLarge {
        /// Its length in bytes.
        length: u64,
        /// The limit.
        limit: u32,
    },
    /// The pair is closed.
    #[error(transparent)]
    Gone(#[from] Disconnected),
}

/// Why there is no pair. Calls can still go over UDP.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Nobody listens under that name: the peer is not on this host, or does not offer this path.
    #[error("nobody listens for local peers there")]
    NobodyListens,
    /// The peer's queue of newcomers is full: it is busy or hangs. Or another thread connects to it.
    #[error("the peer has too many newcomers waiting, or another thread connects to it")]
    Busy,
    /// The peer did not answer in time.
    #[error("the peer did not answer in time")]
    TimedOut,
    /// The peer runs as another user, which is not allowed here.
    #[error("the peer runs as user {uid}, which is not allowed here")]
    ForeignUser {
        /// Its effective user id.
        uid: u32,
    },
    /// The peer refused.
    #[error("the peer refused: {0}")]
    Refused(Rejection),
    /// The peer's answer is none, or it left without one.
    #[error("the peer's answer cannot be understood")]
    Garbled,
    /// There are as many pairs here as there may be.
    #[error("max_pairs is reached here")]
    TooManyPairs,
    /// This endpoint was closed.
    #[error("closed here")]
    Closed,
    /// The name is longer than names of sockets may be.
    #[error("the name is longer than names of sockets may be")]
    NameTooLong,
    /// The system refused something.
    #[error("{action}: {source}")]
    System {
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl ConnectError {
    /// Makes an error of the system's.
    pub(crate) fn system(action: &'static str) -> impl FnOnce(rustix::io::Errno) -> Self {
        move |errno| Self::System { action, source: errno.into() }
    }
}

/// Why a server does not take a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[repr(u32)]
pub enum Rejection {
    /// It speaks another version.
    #[error("it speaks another version")]
    Version = 1,
    /// The client runs as a user that it does not allow.
    #[error("it does not allow this user")]
    User = 2,
    /// The rings are larger or smaller than it allows.
    #[error("it does not allow rings of these sizes")]
    Sizes = 3,
    /// The memory is not what was announced: its length, its kind, or its seals.
    #[error("the memory is not what was announced")]
    Memory = 4,
    /// It has as many pairs as it may have.
    #[error("it has as many peers as it may have")]
    TooMany = 5,
    /// It is closing.
    #[error("it is closing")]
    Closing = 6,
    /// The greeting cannot be understood.
    #[error("the greeting cannot be understood")]
    Garbled = 7,
}

impl Rejection {
    /// The reason with this number. One that is not known reads as `Garbled`: whoever is told that does
    /// nothing but use another path.
    pub(crate) const fn from_number(number: u32) -> Self {
        match number {
            1 => Self::Version,
            2 => Self::User,
            3 => Self::Sizes,
            4 => Self::Memory,
            5 => Self::TooMany,
            6 => Self::Closing,
            _ => Self::Garbled,
        }
    }
}
