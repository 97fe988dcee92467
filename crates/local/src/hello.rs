//! What do two sides say to each other before they share memory?
//!
//! The client says once what it wants, and hands over the memory; the server answers once. All numbers are
//! of fixed width, little-endian, and everything is checked by whoever reads it.

use crate::error::Rejection;
use crate::layout::RingSizes;

const MAGIC: [u8; 8] = *b"apuslocl";

/// The version of greeting, layout and records. Two sides that differ use UDP.
pub(crate) const VERSION: u32 = 1;

/// Bytes of a greeting, and of an answer.
pub(crate) const LEN: usize = 32;

/// What a client says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) sizes: RingSizes,
    /// Which endpoint this is.
    pub(crate) identity: u64,
}

impl Greeting {
    pub(crate) fn emit(&self) -> [u8; LEN] {
        let (short, bulk) = (self.sizes.short, self.sizes.bulk);
        put(VERSION, [short, bulk], self.identity)
    }

    /// # Errors
    ///
    /// [`Rejection`]: it is none, of another version, or asks for what is never allowed.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Rejection> {
        let (version, [short, bulk], identity) = take(bytes).ok_or(Rejection::Garbled)?;
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

/// What a server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: Result<(), Rejection>,
    /// Which endpoint this is.
    pub(crate) identity: u64,
}

impl Answer {
    pub(crate) fn emit(&self) -> [u8; LEN] {
        let code = self.verdict.map_or_else(|rejection| rejection as u32, |()| 0);
        put(VERSION, [code, 0], self.identity)
    }

    /// `None` if it cannot be understood.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (version, [code, _], identity) = take(bytes)?;
        let verdict = match (version, code) {
            (VERSION, 0) => Ok(()),
            (VERSION, code) => Err(Rejection::from_number(code)),
            _ => Err(Rejection::Version),
        };
        Some(Self { verdict, identity })
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
    fn what_is_said_is_understood() {
        let greeting = Greeting { sizes: RingSizes::default(), identity: 0x0123_4567_89ab_cdef };
        assert_eq!(Greeting::parse(&greeting.emit()), Ok(greeting));
        for code in 0..8 {
            let verdict = if code == 0 { Ok(()) } else { Err(Rejection::from_number(code)) };
            let answer = Answer { verdict, identity: 7 };
            assert_eq!(Answer::parse(&answer.emit()), Some(answer));
        }
    }

    #[test]
    fn other_bytes_are_rejected() {
        let sound = Greeting { sizes: RingSizes::default(), identity: 1 }.emit();
        assert_eq!(Greeting::parse(&sound[1..]), Err(Rejection::Garbled));
        assert_eq!(Greeting::parse(&[]), Err(Rejection::Garbled));
        let with = |at: usize, value: u8| {
            let mut bytes = sound;
            bytes[at] = value;
            Greeting::parse(&bytes)
        };
        assert_eq!(with(0, 0), Err(Rejection::Garbled));
        assert_eq!(with(8, 2), Err(Rejection::Version));
        assert_eq!(with(12, 1), Err(Rejection::Sizes));
        assert_eq!(with(19, 0x80), Err(Rejection::Sizes));
        assert_eq!(Answer::parse(&[0; LEN]), None);
    }
}
