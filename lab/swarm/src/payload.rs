//! Message content.
//!
//! The content is a function of call, direction and offset: a section of one random sequence that
//! starts at a different position for each message. Two messages, or two offsets of one, are equal
//! only by chance. Messages need not be stored to be sent or checked.

use std::sync::LazyLock;

use apus_wire::Role;
use bytes::Bytes;
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use super::observation::CallId;

/// Number of positions where a message may start; a prime.
const POSITIONS: usize = 65_521;
/// Length of the longest message in bytes.
const MAX_MESSAGE: usize = 1 << 20;

static BYTES: LazyLock<Bytes> = LazyLock::new(|| {
    let mut row = vec![0; POSITIONS + MAX_MESSAGE];
    Pcg64::seed_from_u64(0x6170_7573).fill_bytes(&mut row);
    Bytes::from(row)
});

/// Returns the first `length` bytes of the message that `sender` sends in a call.
///
/// # Panics
///
/// `length` exceeds the length of the longest message.
pub(crate) fn payload(call: CallId, sender: Role, length: usize) -> Bytes {
    let begin = begin(call, sender);
    BYTES.slice(begin..begin + length)
}

/// Returns whether `bytes` are at `offset` in the message that `sender` sends in a call.
pub(crate) fn is_payload(call: CallId, sender: Role, offset: usize, bytes: &[u8]) -> bool {
    let begin = begin(call, sender) + offset;
    BYTES.get(begin..begin + bytes.len()) == Some(bytes)
}

const fn begin(call: CallId, sender: Role) -> usize {
    let message = 2 * call as u64 + matches!(sender, Role::Server) as u64;
    (message.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % POSITIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_at_a_wrong_offset_are_found() {
        let bytes = payload(7, Role::Client, 1_000);
        assert!(is_payload(7, Role::Client, 0, &bytes));
        assert!(is_payload(7, Role::Client, 10, &bytes[10..]));
        assert!(!is_payload(7, Role::Client, 9, &bytes[10..]), "another place");
        assert!(!is_payload(7, Role::Server, 0, &bytes), "the other direction");
        assert!(!is_payload(8, Role::Client, 0, &bytes), "another call");
    }
}
