//! Features that the sender of a packet of the udp profile supports beyond the first version.

/// A set of features (bytes 18 and 19 of the udp profile; in a session of 48 bits the low nibble of
/// byte 12).
///
/// Each endpoint states its features in every packet, so that its peer sends no packet that it
/// would drop. Versions before this field wrote 0, and ignore it. Requirements `WIRE-31`,
/// `WIRE-33`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Features(u16);

impl Features {
    /// No feature: what versions before this field state.
    pub const NONE: Self = Self(0);
    /// The sender takes messages of 0 bytes.
    pub const EMPTY_MESSAGES: Self = Self(1);
    /// The sender supports 48-bit sessions, and answers the question about a request by sending its
    /// DATA again.
    pub const LONG_SESSIONS: Self = Self(2);
    /// The sender takes DATA of its peer that left from another port than the peer's. Stated in
    /// GRANTs alone, by endpoints that are set up for it. Requirement `WIRE-36`.
    pub const SPRAYABLE: Self = Self(4);
    /// No feature of the sender, but a mark of DATA in a session: the packet left from another port
    /// than its sender's, which is `sport`. Requirement `WIRE-36`.
    pub const SPRAYED: Self = Self(8);
    /// The features of this implementation.
    pub const OURS: Self = Self::EMPTY_MESSAGES.with(Self::LONG_SESSIONS);

    /// Returns the features with these bits. Bits of later versions are kept.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Returns the 16 bits.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns the features of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the features of this set that `other` has not.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns whether every feature of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
