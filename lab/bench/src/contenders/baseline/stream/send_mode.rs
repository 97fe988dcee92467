//! Number of messages in one call of `send`.

/// Number of messages that one `send` carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendMode {
    /// One: every message leaves in a call of its own, as in most RPC layers.
    One,
    /// All that are ready, as in a pipelining client and server.
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
