//! Messages of the handshake.
//!
//! The client sends one [`Hello`] and hands over the memory; the server sends one [`HelloReply`].
//! All numbers have fixed width and are little-endian. The reader of a message checks every field.

use crate::error::Rejection;
use crate::memory::layout::RingSizes;

const MAGIC: [u8; 8] = *b"apuslocl";

/// Version of hello, layout and records. Two sides that differ use UDP. Since version 2, a message
/// may be empty; version 1 takes the record of one for a violation.
pub(crate) const VERSION: u32 = 2;

/// Bytes of a hello, and of its reply.
pub(crate) const LEN: usize = 32;

/// The client's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) sizes: RingSizes,
    /// The client's `LocalConfig::identity`.
    pub(crate) identity: u64,
}

impl Hello {
    pub(crate) fn emit(&self) -> [u8; LEN] {
        let (short, bulk) = (self.sizes.short, self.sizes.bulk);
        put(VERSION, [short, bulk], self.identity)
    }

    /// Parses a hello.
    ///
    /// # Errors
    ///
    /// [`Rejection`] if the bytes are not a hello, or the hello has another version or invalid ring
    /// sizes.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Rejection> {
        let (version, [short, bulk], identity) = take(bytes).ok_or(Rejection::Malformed)?;
        if version != VERSION {
            return Err(Rejection::Version);
        }
        let sizes = RingSizes { short, bulk };
        if !sizes.is_valid() {
            return Err(Rejection::Sizes);
        }
        Ok(Self { sizes, identity })
    }
}

/// The server's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HelloReply {
    /// The server's `LocalConfig::identity` if it accepts. A rejection does not contain it: any
    /// process can provoke one.
    pub(crate) verdict: Result<u64, Rejection>,
}

impl HelloReply {
    pub(crate) fn emit(&self) -> [u8; LEN] {
        match self.verdict {
            Ok(identity) => put(VERSION, [0, 0], identity),
            Err(rejection) => put(VERSION, [rejection as u32, 0], 0),
        }
    }

    /// Parses a reply; `None` if it is malformed.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (version, [code, _], identity) = take(bytes)?;
        let verdict = match (version, code) {
            (VERSION, 0) => Ok(identity),
            (VERSION, code) => Err(Rejection::from_number(code)),
            _ => Err(Rejection::Version),
        };
        Some(Self { verdict })
    }
}

fn put(version: u32, numbers: [u32; 2], identity: u64) -> [u8; LEN] {
    let mut bytes = [0; LEN];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&version.to_le_bytes());
    bytes[12..16].copy_from_slice(&numbers[0].to_le_bytes());
    bytes[16..20].copy_from_slice(&numbers[1].to_le_bytes());
    bytes[24..32].copy_from_slice(&identity.to_le_bytes());
    bytes
}

fn take(bytes: &[u8]) -> Option<(u32, [u32; 2], u64)> {
    let bytes: &[u8; LEN] = bytes.try_into().ok()?;
    let (magic, rest) = bytes.split_first_chunk::<8>()?;
    let (version, rest) = rest.split_first_chunk()?;
    let (first, rest) = rest.split_first_chunk()?;
    let (second, rest) = rest.split_first_chunk()?;
    let (_, identity) = rest.split_first_chunk::<4>()?;
    let identity = u64::from_le_bytes(identity.try_into().ok()?);
    let numbers = [u32::from_le_bytes(*first), u32::from_le_bytes(*second)];
    (magic == &MAGIC).then(|| (u32::from_le_bytes(*version), numbers, identity))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsing_inverts_emitting() {
        let hello = Hello { sizes: RingSizes::default(), identity: 0x0123_4567_89ab_cdef };
        assert_eq!(Hello::parse(&hello.emit()), Ok(hello));
        for code in 0..8 {
            let verdict = if code == 0 { Ok(7) } else { Err(Rejection::from_number(code)) };
            let reply = HelloReply { verdict };
            assert_eq!(HelloReply::parse(&reply.emit()), Some(reply));
        }
    }

    #[test]
    fn other_bytes_are_rejected() {
        let sound = Hello { sizes: RingSizes::default(), identity: 1 }.emit();
        assert_eq!(Hello::parse(&sound[1..]), Err(Rejection::Malformed));
        assert_eq!(Hello::parse(&[]), Err(Rejection::Malformed));
        let with = |at: usize, value: u8| {
            let mut bytes = sound;
            bytes[at] = value;
            Hello::parse(&bytes)
        };
        assert_eq!(with(0, 0), Err(Rejection::Malformed));
        for version in [1, 3] {
            assert_eq!(with(8, version), Err(Rejection::Version));
        }
        assert_eq!(with(12, 1), Err(Rejection::Sizes));
        assert_eq!(with(19, 0x80), Err(Rejection::Sizes));
        assert_eq!(HelloReply::parse(&[0; LEN]), None);
    }

    /// Version 1 has no empty messages. Its hello and its reply to ours, as they were recorded,
    /// lead to UDP.
    #[test]
    fn version_1_is_recognised_and_rejected() {
        let hello = *b"apuslocl\x01\0\0\0\0\0\x01\0\0\0\x10\0\0\0\0\0\x07\0\0\0\0\0\0\0";
        assert_eq!(Hello::parse(&hello), Err(Rejection::Version));
        let reply = *b"apuslocl\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0";
        let verdict = Err(Rejection::Version);
        assert_eq!(HelloReply::parse(&reply), Some(HelloReply { verdict }));
    }
}
