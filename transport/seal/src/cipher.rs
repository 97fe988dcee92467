//! Packet ciphers: the key of one direction, and the schedule of later keys.

use std::fmt;

/// Bytes that sealing adds to a packet: the tag of the AEAD.
pub const TAG_LEN: usize = 16;

/// A key that seals packets, or opens the peer's packets. The nonce is derived from the packet's
/// number.
///
/// An implementation overwrites its key when it is dropped, as far as its library does, and never
/// prints it.
pub trait PacketCipher: Send + Sync {
    /// Encrypts `payload` in place. Returns the tag over `header` and `payload`, or `None` if the
    /// library refuses.
    fn seal(&self, number: u64, header: &[u8], payload: &mut [u8]) -> Option<[u8; TAG_LEN]>;

    /// Decrypts `sealed`, a payload and its tag, in place. Returns the length of the payload, or
    /// `None` if the tag is wrong: the content of `sealed` is undefined then.
    fn open(&self, number: u64, header: &[u8], sealed: &mut [u8]) -> Option<usize>;

    /// Returns the number of packets that may be sealed with the key. Source: RFC 9001 section 6.6.
    fn confidentiality_limit(&self) -> u64;

    /// Returns the number of forged packets after which the key must not be used. Source: RFC 9001
    /// section 6.6.
    fn integrity_limit(&self) -> u64;
}

impl fmt::Debug for dyn PacketCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PacketCipher(..)")
    }
}

/// Keys of both directions of one generation.
#[derive(Debug)]
pub struct KeyPair {
    /// Seals packets of this end.
    pub local: Box<dyn PacketCipher>,
    /// Opens packets of the peer.
    pub remote: Box<dyn PacketCipher>,
}

/// The source of later generations of keys.
pub trait KeySchedule: Send {
    /// Returns the next generation. Earlier generations cannot be computed from it.
    fn next_keys(&mut self) -> KeyPair;
}

impl fmt::Debug for dyn KeySchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeySchedule(..)")
    }
}
