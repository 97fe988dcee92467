//! What the sender of a packet of the udp profile understands beyond the first version.

/// A set of features (bytes 18 and 19 of the udp profile).
///
/// Each endpoint states in every packet what it understands, so that its peer sends it nothing that it would drop.
/// Versions before this field wrote 0, and ignore it. Requirement `WIRE-31`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Features(u16);

impl Features {
    /// No feature: what versions before this field state.
    pub const NONE: Self = Self(0);
    /// The sender takes messages of 0 bytes.
    pub const EMPTY_MESSAGES: Self = Self(1);
    /// The features of this implementation.
    pub const OURS: Self = Self::EMPTY_MESSAGES;

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

    /// Returns whether every feature of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
