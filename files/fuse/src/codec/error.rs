//! Errors of the codec.

/// Reason why bytes are not a request.
///
/// The kernel never sends such bytes: an error means that the protocol has changed, or that the
/// bytes did not come from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// Fewer bytes than the header of every request.
    #[error("{length} bytes, fewer than the header of a request")]
    Header {
        /// Number of bytes.
        length: usize,
    },
    /// The header states another length.
    #[error("the header states {stated} bytes, but there are {length}")]
    Length {
        /// Length in bytes in the header.
        stated: u32,
        /// Number of bytes.
        length: usize,
    },
    /// The request ends before its fields do.
    #[error("the request ends within its fields")]
    Truncated,
    /// A name or target has no NUL at its end.
    #[error("a name has no end")]
    Unterminated,
    /// A name is no single component of a path.
    #[error("a name is empty, has a slash, or is \".\" or \"..\"")]
    Name,
    /// The target of a symbolic link, or the name of an extended attribute, is empty.
    #[error("a text is empty")]
    Empty,
}

/// Why something cannot be written to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The name is no single component of a path, or longer than 255 bytes: the kernel would refuse
    /// the whole message.
    #[error("the name is empty, longer than 255 bytes, has a slash or NUL, or is \".\" or \"..\"")]
    Name,
    /// The message would be longer than its 32-bit length field can express.
    #[error("the message would have 4 GiB or more")]
    Length,
    /// No room is left in the buffer.
    #[error("no room is left in the buffer")]
    Full,
}
