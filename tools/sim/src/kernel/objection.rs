//! What may be wrong with a packet, as the kernel's module sees it?

/// Why the module does not take a packet, or takes it although it breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Objection {
    /// No packet, or shorter than the header of its type (row P-22).
    NoPacket,
    /// For a port that is neither the server's nor the client's (row P-23).
    NoSuchPort,
    /// A message longer than the module takes (row P-8).
    TooLong,
    /// The message's length differs from that in its first packet (8.2 item 5).
    OtherLength,
    /// Some of its bytes are new and others are not: the module drops it whole, and asks for it again (row P-7,
    /// 8.2 item 14).
    Straddles,
    /// It begins past what is unscheduled and granted (8.2 item 7). Taken nevertheless.
    NotGranted,
    /// `incoming` is 0 or past the message's end (8.2 item 6). Taken nevertheless.
    Untruthful,
    /// A version of the cutoffs that was never announced (8.2 item 8). Taken nevertheless.
    OtherCutoffs,
    /// An ack of no RPC that this host could have served: an odd id, or another port (8.2 item 9).
    NotMine,
    /// The wrong end of the RPC speaks: GRANT to a receiver, NEED_ACK from a client.
    WrongEnd,
    /// All its bytes had come before. The network's doing, or the answer to a RESEND that came too soon.
    Duplicate,
    /// For an RPC that has ended, or never was. Packets that are late look like this.
    UnknownRpc,
    /// For a message that has ended already. The same.
    TooLate,
}

impl Objection {
    /// Whether a peer is to blame, whatever the network did: one that follows the protocol sends no such packet.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::Duplicate | Self::UnknownRpc | Self::TooLate)
    }
}
