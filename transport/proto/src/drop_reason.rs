//! Reasons why a packet is dropped.

use apus_wire::ParseError;

/// Declares the enum, its list and its names in one place.
macro_rules! drop_reasons {
    ($($(#[$doc:meta])* $variant:ident => $name:literal,)*) => {
        /// Why an arriving packet was not used, or not as its sender wished. Always caused by a
        /// peer or the network, never an error of the caller: it is counted (see
        /// [`crate::Metrics::dropped`]).
        ///
        /// Requirement `BAD-1`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DropReason {
            $($(#[$doc])* $variant,)*
        }

        impl DropReason {
            /// All reasons, in the order of their declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the reason's name in counters.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

drop_reasons! {
    /// Shorter than the header of its kind (HM `homa_plumbing.c` `homa_softirq`; the kernel's
    /// `short_packets`).
    Short => "short_packets",
    /// A type that does not exist (HM `homa_plumbing.c` `homa_softirq`; `unknown_packet_types`).
    UnknownKind => "unknown_packet_types",
    /// Another version of the udp profile.
    UnknownVersion => "unknown_versions",
    /// A packet of a kernel module that is too old to be understood (WIRE-27).
    OlderLayout => "older_layouts",
    /// Data past the end of its message, a message or a packet without bytes, a priority or a count
    /// out of range.
    Malformed => "malformed",
    /// Sent to another Homa port.
    WrongPort => "wrong_port",
    /// For an RPC that does not exist here (HM `homa_incoming.c` `homa_dispatch_pkts`;
    /// `unknown_rpcs`).
    UnknownRpc => "unknown_rpcs",
    /// For an RPC that exists, but in a session or incarnation that is not the present one.
    StaleSession => "stale_sessions",
    /// A request that was finished already: late duplicate. Not executed again (requirement AMO-2).
    Finished => "finished",
    /// All bytes of a DATA packet had arrived before (HM `homa_incoming.c` `homa_add_packet`;
    /// `packet_discards`).
    Duplicate => "duplicate_packets",
    /// A DATA packet disagrees with earlier ones about the message's length (HM `homa_incoming.c`
    /// `homa_message_in_init`).
    LengthMismatch => "length_mismatches",
    /// A DATA packet would open more gaps than a message may have.
    TooManyGaps => "too_many_gaps",
    /// No room in the receive budget (HM `homa_incoming.c` `homa_data_pkt`;
    /// `dropped_data_no_bufs`). The bytes are requested again later.
    NoBuffers => "no_buffers",
    /// A message longer than `max_message` (CAP-7); the request was refused, the call has failed.
    TooLarge => "too_large",
    /// A request to an endpoint that does not serve; it was refused.
    NotServing => "not_serving",
    /// A request while all server RPCs are in use; it was refused (CAP-3).
    TooManyRpcs => "too_many_rpcs",
    /// A request while its host has as many as a host may have; it was refused (CAP-18).
    HostRpcs => "host_rpcs",
    /// A request from a host that already has as many bytes in flight as a host may have; it was
    /// refused (CAP-18).
    HostBytes => "host_bytes",
    /// A request from a host that takes so few of its responses that it has as many bytes of them as
    /// a host may have; it was refused (CAP-21).
    HostResponses => "host_responses",
    /// A request that needs a new peer while its host has as many as a host may have, all of them
    /// busy; it was refused (CAP-18).
    HostPeers => "host_peers",
    /// A request while more of them wait for the application than it serves in good time; it was
    /// refused (CAP-16).
    Overloaded => "overloaded",
    /// A request that needs a new peer while `max_peers` are in use, and none is idle; it was
    /// refused.
    TooManyPeers => "too_many_peers",
    /// A request of a client whose version does not support 48-bit sessions (WIRE-33); it was
    /// refused.
    ClientTooOld => "client_too_old",
    /// A packet that makes no sense in the RPC's state, such as a GRANT for a message that is
    /// complete.
    WrongState => "wrong_state",
    /// An ACK from the server, an unrequested CONFIRM, or the like: sent by the wrong end (BAD-3).
    WrongRole => "wrong_role",
    /// Of a sender that has shown no session, while this endpoint is behind with reading and has
    /// answered as many of those as it may (BAD-10).
    Unanswered => "unanswered",
    /// The queue of control packets was full, and the answer was not sent.
    ControlQueueFull => "control_queue_full",
}

impl DropReason {
    /// Whether a limit per host is the reason.
    pub(crate) const fn is_of_host(self) -> bool {
        matches!(self, Self::HostRpcs | Self::HostBytes | Self::HostResponses | Self::HostPeers)
    }
}

impl From<ParseError> for DropReason {
    fn from(error: ParseError) -> Self {
        match error {
            ParseError::TooShort { .. } => Self::Short,
            ParseError::UnknownKind(_) => Self::UnknownKind,
            ParseError::UnknownVersion(_) => Self::UnknownVersion,
            ParseError::OlderLayout(_) => Self::OlderLayout,
            _ => Self::Malformed,
        }
    }
}
