//! Which bytes does a message have?
//!
//! A function of its call, its direction and the offset: a piece of one row of random bytes, begun at another
//! place for each message. Two messages, or two places of one, are alike by accident only; and no bytes
//! need to be made or kept to send a message, nor to check one.

use std::sync::LazyLock;

use apus_wire::Role;
use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::seen::CallId;

/// Places at which a message may begin; a prime.
const PLACES: usize = 65_521;
/// Longest message.
const LONGEST: usize = 1 << 20;

static ROW: LazyLock<Bytes> = LazyLock::new(|| {
    let mut row = vec![0; PLACES + LONGEST];
    Pcg64::seed_from_u64(0x6170_7573).fill_bytes(&mut row);
    Bytes::from(row)
});

/// The first `length` bytes of what `sender` says in a call.
///
/// # Panics
///
/// If that is longer than any message of a run.
pub(crate) fn payload(call: CallId, sender: Role, length: usize) -> Bytes {
    let begin = begin(call, sender);
    ROW.slice(begin..begin + length)
}

/// Whether `bytes` are those at `offset` of what `sender` says in a call.
pub(crate) fn is_payload(call: CallId, sender: Role, offset: usize, bytes: &[u8]) -> bool {
    let begin = begin(call, sender) + offset;
    ROW.get(begin..begin + bytes.len()) == Some(bytes)
}

const fn begin(call: CallId, sender: Role) -> usize {
    let message = 2 * call as u64 + matches!(sender, Role::Server) as u64;
    (message.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_out_of_place_is_noticed() {
        let bytes = payload(7, Role::Client, 1_000);
        assert!(is_payload(7, Role::Client, 0, &bytes));
        assert!(is_payload(7, Role::Client, 10, &bytes[10..]));
        assert!(!is_payload(7, Role::Client, 9, &bytes[10..]), "another place");
        assert!(!is_payload(7, Role::Server, 0, &bytes), "the other direction");
        assert!(!is_payload(8, Role::Client, 0, &bytes), "another call");
    }
}
