//! Message contents that reveal a wrong byte.

use bytes::Bytes;
use rand::RngExt;
use rand_pcg::Pcg64;

/// Returns the request of the call `id`: bytes that follow from the id.
pub(crate) fn request(id: u64, len: usize) -> Bytes {
    fill(id, 1, len)
}

/// Returns the response of the call `id`, of the same length.
pub(crate) fn response(id: u64, len: usize) -> Bytes {
    fill(id, 2, len)
}

fn fill(id: u64, kind: u64, len: usize) -> Bytes {
    let mut word = (id + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ kind;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(len);
    bytes.into()
}

/// Draws a length: mostly short, some of several chunks, so that messages of both kinds are always
/// outstanding, and some of 0 bytes.
pub(crate) fn length(random: &mut Pcg64) -> usize {
    match random.random_range(0..20) {
        0 => random.random_range(10_000..200_000),
        1..5 => random.random_range(300..6_000),
        5..8 => 0,
        _ => random.random_range(1..300),
    }
}
