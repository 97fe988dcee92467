//! Why bytes are no envelope.

/// Why bytes are no envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvelopeError {
    /// The message ends within the envelope.
    #[error("the message ends within its envelope")]
    Short,
    /// The first byte is not [`MAGIC`](super::MAGIC): the peer speaks another protocol, or a later version.
    #[error("the message has no envelope of this version of apus-rpc")]
    Magic,
    /// The message is of an unknown kind, or of one that is out of place here.
    #[error("the message is of kind {0}, which is out of place")]
    Kind(u8),
    /// A flag is set that this version does not define.
    #[error("the envelope has flags {0:#04x} that this version does not know")]
    Flags(u8),
    /// The name of the method is empty, or no UTF-8.
    #[error("the method's name is empty or no UTF-8")]
    Method,
    /// The metadata breaks its own lengths or limits.
    #[error("the metadata is malformed")]
    Metadata,
    /// The text of a status is no UTF-8, or the code contradicts the flags.
    #[error("the status is malformed")]
    Status,
}
