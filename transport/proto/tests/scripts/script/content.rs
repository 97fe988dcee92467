//! The content of messages, which reveals a byte in the wrong place.

use apus_proto::{Kind, Payload};
use bytes::Bytes;

/// Payload of our messages and of the peers': byte `i` is a function of `i`, so that a byte in the
/// wrong place is seen.
pub(super) fn bytes_of(start: u32, length: u32) -> Vec<u8> {
    (start..start.saturating_add(length)).map(|i| (i % 251) as u8).collect()
}

pub(super) fn content(length: u64) -> Payload {
    // Two slices, so that packets start in one and end in the other.
    let bytes = Bytes::from(bytes_of(0, length as u32));
    let half = bytes.len() / 3;
    Payload::from([bytes.slice(..half), bytes.slice(half..)])
}

pub(super) fn assert_content(bytes: &[u8], offset: usize) {
    for (i, byte) in bytes.iter().enumerate() {
        assert_eq!(usize::from(*byte), (offset + i) % 251, "byte {}", offset + i);
    }
}

/// Checks that the payload of a sent DATA packet is the content at its offset.
pub(super) fn check_content(first: &[u8], payload: &[u8]) {
    if first.len() > apus_wire::DATA_HEADER_LEN && first[11] == Kind::Data as u8 {
        let offset = u32::from_be_bytes(first[52..56].try_into().unwrap());
        assert_content(payload, offset as usize);
    }
}
