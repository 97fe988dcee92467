//! The profiles of the header, and the flags of the udp profile.

use core::fmt;

/// The version of the udp profile that this crate implements (high nibble of byte 13).
///
/// A packet with another version is refused. Later additions are stated as [`crate::Features`].
pub const UDP_VERSION: u8 = 1;

/// How the header's bytes 8 to 10 and 13 to 19 are used, and what carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Profile {
    /// Raw IP, protocol 146: the format of the Linux kernel module.
    Kernel,
    /// UDP datagrams, with the additions of [`crate::UdpFields`].
    #[default]
    Udp,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kernel => "kernel",
            Self::Udp => "udp",
        })
    }
}

/// Flags of the udp profile (low nibble of byte 13).
///
/// Requirements `WIRE-20` to `WIRE-23`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Flags(u8);

impl Flags {
    /// No flag set.
    pub const NONE: Self = Self(0);
    /// The incarnation field holds a *session* that the server chose, not the client's own
    /// incarnation. Always set in packets of the server.
    pub const SESSION: Self = Self(0b0001);
    /// In NEED_ACK: the server cannot tell whether this request is fresh, keeps nothing of it, and
    /// offers a session for sending it again. In DATA: the client sends it again, and repeats the
    /// claim. (Versions without [`crate::Features::LONG_SESSIONS`] keep the request, and their
    /// clients answer with BUSY.)
    pub const CONFIRM: Self = Self(0b0010);
    /// In RPC_UNKNOWN: the server has finished this request and will not execute it (again). It was
    /// either refused, or possibly executed, with a response that no longer exists.
    pub const FINISHED: Self = Self(0b0100);
    /// In RPC_UNKNOWN: the request will not be served; `sequence` holds a [`crate::Refusal`].
    pub const REFUSED: Self = Self(0b1000);

    /// Returns the flags with these low four bits; higher bits are ignored.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0x0f)
    }

    /// Returns the four bits.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether every flag of `other` is set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the union of both sets.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
