//! Objections of the module to packets.

/// Reason why the module drops a packet, or accepts it although it breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Objection {
    /// Not a packet, or shorter than the header of its type (HM `homa_plumbing.c` `homa_softirq`).
    NoPacket,
    /// The port is neither the server's nor the client's
    /// (HM `homa_incoming.c` `homa_dispatch_pkts`).
    NoSuchPort,
    /// The message is longer than the module accepts (HM `homa_incoming.c` `homa_message_in_init`).
    TooLong,
    /// The message length differs from the length in its first packet (Rules for peers, item 5).
    OtherLength,
    /// It contains both new and old bytes: the module drops it as a whole, and requests the bytes
    /// again (HM `homa_incoming.c` `homa_add_packet`; Rules for peers, item 14).
    Straddles,
    /// It starts beyond the unscheduled and granted bytes (Rules for peers, item 7). Accepted
    /// nevertheless.
    NotGranted,
    /// `incoming` is 0 or beyond the message's end (Rules for peers, item 6). Accepted
    /// nevertheless.
    Untruthful,
    /// The version of the cutoffs was never announced (Rules for peers, item 8). Accepted
    /// nevertheless.
    OtherCutoffs,
    /// It acknowledges an RPC that this host cannot have served: an odd id, or another port (Rules
    /// for peers, item 9).
    NotMine,
    /// It was sent by the wrong end of the RPC: GRANT to a receiver, NEED_ACK from a client.
    WrongEnd,
    /// All its bytes were received before: duplicated by the network, or sent again after an early
    /// RESEND.
    Duplicate,
    /// The RPC has ended or never existed. Late packets cause this.
    UnknownRpc,
    /// The message has ended. Late packets cause this.
    TooLate,
}

impl Objection {
    /// Returns whether the peer is at fault: a peer that follows the protocol causes no such
    /// objection, regardless of the network's behaviour.
    #[must_use]
    pub const fn is_fault(self) -> bool {
        !matches!(self, Self::Duplicate | Self::UnknownRpc | Self::TooLate)
    }
}
