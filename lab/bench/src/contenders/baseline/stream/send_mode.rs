//! Number of messages per `send` call.

/// Number of messages per `send` call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// One: a separate call for every message, as in most RPC layers.
    One,
    /// All ready messages, as in a pipelining client and server.
    Ready,
}

impl SendMode {
    /// Returns the mode in words.
    pub(in crate::contenders::baseline) const fn settings(self) -> &'static str {
        match self {
            Self::One => "one send per message",
            Self::Ready => "one send for all messages that are ready",
        }
    }
}
