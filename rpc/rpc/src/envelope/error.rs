//! Reasons why bytes are not a valid envelope.

/// Reasons why bytes are not a valid envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The message ends within the envelope.
    #[error("the message ends within its envelope")]
    Short,
    /// The first byte is not [`MAGIC`](super::MAGIC): the peer uses another protocol or a later
    /// version.
    #[error("the message has no envelope of this version of apus-rpc")]
    Magic,
    /// The message kind is unknown or not allowed here.
    #[error("the message is of kind {0}, which is out of place")]
    Kind(u8),
    /// A flag is set that this version does not define.
    #[error("the envelope has flags {0:#04x} that this version does not know")]
    Flags(u8),
    /// The name of the method is empty or not UTF-8.
    #[error("the method's name is empty or no UTF-8")]
    Method,
    /// The metadata violates its own lengths or limits.
    #[error("the metadata is malformed")]
    Metadata,
    /// The text of a status is not UTF-8, or the code contradicts the flags.
    #[error("the status is malformed")]
    Status,
}
