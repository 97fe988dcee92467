//! Numbers that no peer can guess.
//!
//! At-most-once execution and the identity of peers rest on them: a host that knows the session of a call and its id may
//! speak for its other end (AMO-9).

use siphasher::sip::SipHasher24;
use std::fmt;
use std::hash::Hasher;
use std::net::SocketAddr;

/// The secret of an endpoint's life, from which all its random numbers follow.
///
/// A number is SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012) of what it is for, under the secret. A peer that has seen
/// any of them learns nothing about another one.
#[derive(Clone, Copy)]
pub(crate) struct Secret([u8; 16]);

/// What a number is for. Numbers for different purposes have nothing to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Purpose {
    /// The endpoint's incarnation.
    Incarnation,
    /// The seed of the tables' hash.
    Hash,
    /// The first id of a call, in the kernel profile.
    FirstKernelId,
    /// The first id of a call to a server.
    FirstId,
    /// A session of a client.
    Session,
}

impl Secret {
    /// The secret of an endpoint that was given `seed`.
    pub(crate) const fn new(seed: u128) -> Self {
        Self(seed.to_le_bytes())
    }

    /// The only number for `purpose`.
    pub(crate) fn number(self, purpose: Purpose) -> u64 {
        self.hash(purpose, |_| {})
    }

    /// The `n`th number for `purpose`.
    pub(crate) fn nth(self, purpose: Purpose, n: u64) -> u64 {
        self.hash(purpose, |hasher| hasher.write_u64(n))
    }

    /// The number for `purpose` that belongs to `address`.
    pub(crate) fn number_of(self, purpose: Purpose, address: SocketAddr) -> u64 {
        self.hash(purpose, |hasher| {
            match address {
                SocketAddr::V4(v4) => hasher.write(&v4.ip().octets()),
                SocketAddr::V6(v6) => {
                    hasher.write(&v6.ip().octets());
                    hasher.write_u32(v6.scope_id());
                }
            }
            hasher.write_u16(address.port());
        })
    }

    fn hash(self, purpose: Purpose, about: impl FnOnce(&mut SipHasher24)) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write_u8(purpose as u8);
        about(&mut hasher);
        hasher.finish()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Draws the numbers of sessions, each different from all before with all but certainty.
#[derive(Debug)]
pub(crate) struct SessionNumbers {
    secret: Secret,
    drawn: u64,
}

impl SessionNumbers {
    pub(crate) const fn new(secret: Secret) -> Self {
        Self { secret, drawn: 0 }
    }

    /// Draws a number.
    pub(crate) fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.secret.nth(Purpose::Session, self.drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], port))
    }

    /// AMO-9.
    #[test]
    fn numbers_differ_by_secret_purpose_count_and_address() {
        let secret = Secret::new(1);
        let mut sessions = SessionNumbers::new(secret);
        let mapped = SocketAddr::from((std::net::Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped(), 7));
        let numbers = [
            Secret::new(2).number(Purpose::Incarnation),
            Secret::new(1 << 64).number(Purpose::Incarnation),
            secret.number(Purpose::Incarnation),
            secret.number(Purpose::Hash),
            secret.number_of(Purpose::FirstId, address(1, 7)),
            secret.number_of(Purpose::FirstId, address(1, 8)),
            secret.number_of(Purpose::FirstId, address(2, 7)),
            secret.number_of(Purpose::FirstId, mapped),
            sessions.draw(),
            sessions.draw(),
        ];
        for (index, number) in numbers.iter().enumerate() {
            assert!(!numbers[..index].contains(number), "{numbers:x?}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        assert_eq!(format!("{:?}", Secret::new(0x5ec7e7)), "Secret(..)");
    }
}
