//! Where does what lie in the memory that two processes share?
//!
//! ```text
//! 0      the client's words   sleep, farewell        each on lines of its own
//! 128    the server's words   sleep, farewell
//! 256    heads of the four rings, 128 bytes each
//! 4096   client to server: short ring, bulk ring
//!        server to client: short ring, bulk ring
//! ```
//!
//! Both sides compute all of this from two sizes that the handshake has checked; no offset is ever read from
//! the memory itself.

use apus_wire::Role;

/// Bytes between words that different sides write: two cache lines, since processors fetch them in pairs.
const APART: usize = 128;

/// Where the rings begin.
const CONTROL: usize = 4096;

/// Records begin at multiples of this: a cache line, so that writer and reader of neighbouring records do not
/// meet in one.
pub(crate) const SLOT: usize = 64;

/// Which of the two rings of a direction.
///
/// Long messages have a ring of their own, so that a short one never waits behind their bytes.
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
    /// Bytes of the ring through which longer messages go in chunks.
    pub bulk: u32,
}

/// What a ring may have at least. A page: no less can be had.
const MIN_RING: u32 = 4096;
/// What a ring may have at most: 64 MiB. Ours, because positions, lengths and four rings must fit into 32
/// bits with room to spare.
const MAX_RING: u32 = 64 << 20;

impl Default for RingSizes {
    /// 128 KiB and 256 KiB: both directions together stay in the second-level caches of today. What a call of
    /// 500 kB gains by more is to be measured.
    fn default() -> Self {
        Self { short: 128 << 10, bulk: 256 << 10 }
    }
}

impl RingSizes {
    /// Whether both lie within bounds.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        Self::fits(self.short) && Self::fits(self.bulk)
    }

    const fn fits(bytes: u32) -> bool {
        bytes.is_power_of_two() && bytes >= MIN_RING && bytes <= MAX_RING
    }

    /// Bytes of the whole mapping.
    #[must_use]
    pub const fn mapped(self) -> usize {
        CONTROL + 2 * (self.short as usize + self.bulk as usize)
    }
}

/// Where a ring lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The word in which the consumer says how far it is.
    pub(crate) head: usize,
    /// The first byte.
    pub(crate) data: usize,
    /// Bytes; a power of two, and multiple of [`SLOT`].
    pub(crate) capacity: usize,
}

/// Where the words of one side lie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    /// Whether, and how, it sleeps ([`super::wake`]).
    pub(crate) sleep: usize,
    /// Why it left, if it could still say so ([`super::close`]).
    pub(crate) farewell: usize,
}

/// The ring that `writer` writes in `lane`.
pub(crate) const fn place(sizes: RingSizes, writer: Role, lane: Lane) -> Place {
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
    Place { head: (2 + 2 * direction + index) * APART, data, capacity }
}

/// The words of `role`.
pub(crate) const fn words(role: Role) -> Words {
    let begin = match role {
        Role::Client => 0,
        Role::Server => APART,
    };
    Words { sleep: begin, farewell: begin + 4 }
}

const _: () = {
    assert!(6 * APART <= CONTROL, "all words lie before the rings");
    assert!(MIN_RING as usize >= 16 * SLOT, "records of several slots fit into the smallest ring");
    let largest = RingSizes { short: MAX_RING, bulk: MAX_RING };
    assert!(largest.mapped() < u32::MAX as usize, "the mapping's length fits into the greeting");
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        let sizes = RingSizes { short: 4096, bulk: 8192 };
        let mut spans = Vec::new();
        for role in [Role::Client, Role::Server] {
            let words = words(role);
            spans.push((words.sleep, 4));
            spans.push((words.farewell, 4));
            for lane in [Lane::Short, Lane::Bulk] {
                let place = place(sizes, role, lane);
                spans.push((place.head, 8));
                spans.push((place.data, place.capacity));
            }
        }
        spans.sort_unstable();
        for pair in spans.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
        let (begin, len) = spans[spans.len() - 1];
        assert_eq!(begin + len, sizes.mapped(), "and nothing is left over");
    }

    #[test]
    fn odd_sizes_are_refused() {
        for bytes in [0, 1, 4095, 4097, 2048, 1 << 27, u32::MAX] {
            assert!(!RingSizes { short: bytes, bulk: 4096 }.is_valid(), "{bytes}");
            assert!(!RingSizes { short: 4096, bulk: bytes }.is_valid(), "{bytes}");
        }
        assert!(RingSizes::default().is_valid());
    }
}
