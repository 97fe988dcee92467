//! Packets of SIRD.

/// Kind of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Requests credit for a message that may not start without it.
    #[default]
    Request,
    /// Credit for one packet of a message.
    Credit,
    /// Payload of a message.
    Data,
    /// Reports that a message is complete: the response to a one-way message.
    Response,
}

/// Contents of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Kind of the packet.
    pub kind: Kind,
    /// Number of the message.
    pub message: u32,
    /// Length of the message in payload bytes; 0 in credit and responses.
    pub length: u32,
    /// Payload bytes of this packet, or of the credited packet; 0 in requests and responses.
    pub bytes: u32,
    /// Whether the sender of the data has unused credit (`sird.csn` in the paper).
    pub is_busy: bool,
}
