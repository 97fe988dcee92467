//! Numbers that no peer can guess.
//!
//! At-most-once execution and the identity of peers depend on them: a host that has the session of
//! a call and its id can forge packets of its other end (AMO-9).

use siphasher::sip::SipHasher24;
use std::fmt;
use std::hash::Hasher;
use std::net::SocketAddr;

/// The secret of an endpoint's life, from which all its random numbers are derived.
///
/// A number is SipHash-2-4 (Aumasson and Bernstein, INDOCRYPT 2012) of its purpose, under the
/// secret. A peer that has seen any of them can derive no other.
#[derive(Clone, Copy)]
pub(crate) struct Secret([u8; 16]);

/// The purpose of a number. Numbers for different purposes are independent.
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
    /// Which generation of sessions holds for a client.
    Generation,
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

    /// The number for `purpose` that belongs to `address`.
    pub(crate) fn number_of(self, purpose: Purpose, address: SocketAddr) -> u64 {
        self.number_about(purpose, address, [])
    }

    /// The number for `purpose` that belongs to `address` and to these numbers.
    pub(crate) fn number_about<const N: usize>(
        self,
        purpose: Purpose,
        address: SocketAddr,
        numbers: [u64; N],
    ) -> u64 {
        self.hash(purpose, |hasher| {
            match address {
                SocketAddr::V4(v4) => hasher.write(&v4.ip().octets()),
                SocketAddr::V6(v6) => {
                    hasher.write(&v6.ip().octets());
                    hasher.write_u32(v6.scope_id());
                }
            }
            hasher.write_u16(address.port());
            for number in numbers {
                hasher.write_u64(number);
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8, port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], port))
    }

    /// AMO-9.
    #[test]
    fn numbers_differ_by_secret_purpose_address_and_what_they_are_about() {
        let secret = Secret::new(1);
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
            secret.number_of(Purpose::Generation, address(1, 7)),
            secret.number_about(Purpose::FirstId, address(1, 7), [0]),
            secret.number_about(Purpose::FirstId, address(1, 7), [1]),
            secret.number_about(Purpose::FirstId, address(1, 7), [1, 0]),
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
