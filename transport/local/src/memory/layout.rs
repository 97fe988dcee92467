//! Layout of the memory that two processes share.
//!
//! ```text
//! 0      the client's words   sleep, close        each on cache lines of its own
//! 128    the server's words   sleep, close
//! 256    heads of the four rings, 128 bytes each
//! 4096   client to server: short ring, bulk ring
//!        server to client: short ring, bulk ring
//! ```
//!
//! Both sides compute all offsets from the two sizes that the handshake has checked; no offset is
//! ever read from the shared memory.

use apus_wire::Role;

/// Distance in bytes between words that different sides write: two cache lines, since processors
/// fetch them in pairs.
const APART: usize = 128;

/// Offset of the first ring.
const CONTROL: usize = 4096;

/// Alignment of records: a cache line, so that the writer and the reader of neighbouring records do
/// not share one.
pub(crate) const SLOT: usize = 64;

/// The two rings of a direction.
///
/// Long messages have a separate ring, so that a short message never waits behind their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    Short,
    Bulk,
}

/// Sizes of the rings of a pair. Each must be a power of two from 4 KiB to 64 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// Bytes of the ring for messages that fit into one record.
    pub short: u32,
    /// Bytes of the ring that carries longer messages in chunks.
    pub bulk: u32,
}

/// Smallest ring: one page.
const MIN_RING: u32 = 4096;
/// Largest ring: 64 MiB. Chosen by us: positions, lengths and four rings must fit into 32 bits with
/// room to spare.
const MAX_RING: u32 = 64 << 20;

impl Default for RingSizes {
    /// 128 KiB and 256 KiB: both directions together fit into current second-level caches. The gain
    /// of larger rings for messages of 500 kB has not been measured.
    fn default() -> Self {
        Self { short: 128 << 10, bulk: 256 << 10 }
    }
}

impl RingSizes {
    /// Returns whether both sizes are powers of two within the bounds.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        Self::fits(self.short) && Self::fits(self.bulk)
    }

    const fn fits(bytes: u32) -> bool {
        bytes.is_power_of_two() && bytes >= MIN_RING && bytes <= MAX_RING
    }

    /// Returns the length of the whole mapping in bytes.
    #[must_use]
    pub const fn mapped(self) -> usize {
        CONTROL + 2 * (self.short as usize + self.bulk as usize)
    }
}

/// Offsets of a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingLayout {
    /// The word that publishes the consumer's position.
    pub(crate) head: usize,
    /// The first byte of the records.
    pub(crate) data: usize,
    /// Bytes; a power of two, and a multiple of [`SLOT`].
    pub(crate) capacity: usize,
}

/// Offsets of the words of one side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SideWords {
    /// Whether and how the side sleeps (`pair::sleep`).
    pub(crate) sleep: usize,
    /// Why the side closed the pair (`pair::close`); 0 if it died.
    pub(crate) close: usize,
}

/// Returns the layout of the ring that `writer` writes in `lane`.
pub(crate) const fn ring_layout(sizes: RingSizes, writer: Role, lane: Lane) -> RingLayout {
    let (short, bulk) = (sizes.short as usize, sizes.bulk as usize);
    let direction = match writer {
        Role::Client => 0,
        Role::Server => 1,
    };
    let begin = CONTROL + direction * (short + bulk);
    let (index, data, capacity) = match lane {
        Lane::Short => (0, begin, short),
        Lane::Bulk => (1, begin + short, bulk),
    };
    RingLayout { head: (2 + 2 * direction + index) * APART, data, capacity }
}

/// Returns the offsets of the words of `role`.
pub(crate) const fn side_words(role: Role) -> SideWords {
    let begin = match role {
        Role::Client => 0,
        Role::Server => APART,
    };
    SideWords { sleep: begin, close: begin + 4 }
}

const _: () = {
    assert!(6 * APART <= CONTROL, "all words are before the rings");
    assert!(MIN_RING as usize >= 16 * SLOT, "records of several slots fit into the smallest ring");
    let largest = RingSizes { short: MAX_RING, bulk: MAX_RING };
    assert!(largest.mapped() < u32::MAX as usize, "the mapping's length fits into 32 bits");
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_do_not_overlap() {
        let sizes = RingSizes { short: 4096, bulk: 8192 };
        let mut spans = Vec::new();
        for role in [Role::Client, Role::Server] {
            let words = side_words(role);
            spans.push((words.sleep, 4));
            spans.push((words.close, 4));
            for lane in [Lane::Short, Lane::Bulk] {
                let ring = ring_layout(sizes, role, lane);
                spans.push((ring.head, 8));
                spans.push((ring.data, ring.capacity));
            }
        }
        spans.sort_unstable();
        for pair in spans.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
        let (begin, len) = spans[spans.len() - 1];
        assert_eq!(begin + len, sizes.mapped(), "no byte is unused at the end");
    }

    #[test]
    fn invalid_sizes_are_rejected() {
        for bytes in [0, 1, 4095, 4097, 2048, 1 << 27, u32::MAX] {
            assert!(!RingSizes { short: bytes, bulk: 4096 }.is_valid(), "{bytes}");
            assert!(!RingSizes { short: 4096, bulk: bytes }.is_valid(), "{bytes}");
        }
        assert!(RingSizes::default().is_valid());
    }
}
