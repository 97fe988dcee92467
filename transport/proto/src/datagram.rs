//! Received datagrams.

use crate::peer::Address;

/// A datagram as the network delivered it.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Its source.
    pub from: Address,
    /// Its content, without IP and UDP headers.
    pub bytes: &'a [u8],
    /// Whether a switch has marked it: congestion experienced, RFC 3168 (GRANT-18).
    pub is_marked: bool,
}

impl<'a> Datagram<'a> {
    /// Returns a datagram that no switch has marked.
    #[must_use]
    pub const fn new(from: Address, bytes: &'a [u8]) -> Self {
        Self { from, bytes, is_marked: false }
    }
}
