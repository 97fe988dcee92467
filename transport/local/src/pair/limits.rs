//! Limits of one side of a pair, and the sizes derived from the rings.

use crate::memory::layout::SLOT;
use crate::ring::record::HEAD;

/// Limits of one side of a pair. The other side may have different ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalLimits {
    /// Longest message in bytes, in either direction.
    pub max_message: u32,
    /// Maximum bytes of long messages that wait to be sent. One message is accepted whatever its
    /// length.
    pub max_send_bytes: usize,
    /// Maximum total length in bytes of incoming messages that have arrived in part. One message is
    /// accepted whatever its length, if `max_message` allows it.
    pub max_receive_bytes: usize,
}

impl Default for LocalLimits {
    /// 64 MiB each, as for `max_message` and for the memory of a peer over UDP
    /// (`docs/spec/parameters.md`).
    fn default() -> Self {
        Self { max_message: 64 << 20, max_send_bytes: 64 << 20, max_receive_bytes: 64 << 20 }
    }
}

/// Maximum number of incoming messages that have arrived in part. Chosen by us: more than the
/// concurrent calls of 500 kB in any workload, and few enough for a linear search.
pub(crate) const MAX_PARTIAL: usize = 64;

/// Maximum number of long messages that wait to be sent, whatever their length. Chosen by us.
pub(crate) const MAX_QUEUED: usize = 1024;

/// Maximum number of control records (cancellations, refusals) that wait for room before reception
/// from the peer stops. Chosen by us: a peer that does not read cannot demand to be read.
pub(crate) const MAX_CONTROL: usize = 4096;

/// Returns the length in bytes of the longest message that travels in the short lane: a page, which
/// is copied in less time than a wake-up takes. A smaller ring still has room for eight such
/// messages.
pub(crate) const fn max_short(capacity: usize) -> usize {
    smaller(4096, capacity / 8 - HEAD)
}

/// Returns the payload bytes of a chunk of a longer message: 32 KiB with its head, or an eighth of
/// the ring. Reader and writer work at the same time, chunks start at pages, and none needs
/// padding.
pub(crate) const fn chunk(capacity: usize) -> usize {
    smaller(32 << 10, capacity / 8) - HEAD
}

const fn smaller(a: usize, b: usize) -> usize {
    if a < b { a } else { b }
}

const _: () = {
    assert!(max_short(4096) >= 8 * SLOT - HEAD && chunk(4096) >= 8 * SLOT - HEAD);
    // RING-5
    assert!(max_short(4096) <= 4096 / 2 - HEAD && chunk(4096) <= 4096 / 2 - HEAD);
};
