//! What may a pair hold at most?

use crate::layout::SLOT;
use crate::record::HEAD;

/// Limits of one side of a pair. The other side may have others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalLimits {
    /// Bytes of the longest message, in either direction.
    pub max_message: u32,
    /// Bytes of long messages that may wait to be sent. One message may wait whatever its length.
    pub max_send_bytes: usize,
    /// Bytes that messages which have come in part may come to have. One message may come whatever its length,
    /// if `max_message` allows it.
    pub max_receive_bytes: usize,
}

impl Default for LocalLimits {
    /// 64 MiB each: `max_message` and what a peer may have, as over UDP (`docs/spec/parameters.md`).
    fn default() -> Self {
        Self { max_message: 64 << 20, max_send_bytes: 64 << 20, max_receive_bytes: 64 << 20 }
    }
}

/// Messages that may come in part at a time. Ours: as many as calls of 500 kB anybody has under way, and few
/// enough to look through.
pub(crate) const MAX_PARTIAL: usize = 64;

/// Long messages that may wait to be sent, whatever their length. Ours.
pub(crate) const MAX_QUEUED: usize = 1024;

/// Words about messages (cancelled, refused) that may wait for room before nothing more is taken from the peer.
/// Ours: a peer that does not read what it is told has no claim to be read.
pub(crate) const MAX_HELD: usize = 4096;

/// Bytes of the longest message that travels in the short lane: a page, which is copied in less time than a
/// wake-up takes. A smaller ring has room for eight such messages still.
pub(crate) const fn max_short(capacity: usize) -> usize {
    smaller(4096, capacity / 8 - HEAD)
}

/// Bytes of a chunk of a longer one. 32 KiB with its head, or an eighth of the ring: reader and writer work at
/// the same time, chunks begin at pages, and none needs padding.
pub(crate) const fn chunk(capacity: usize) -> usize {
    smaller(32 << 10, capacity / 8) - HEAD
}

const fn smaller(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

const _: () = {
    assert!(max_short(4096) >= 8 * SLOT - HEAD && chunk(4096) >= 8 * SLOT - HEAD);
    // R5
    assert!(max_short(4096) <= 4096 / 2 - HEAD && chunk(4096) <= 4096 / 2 - HEAD);
};
