//! Assembly of a message from packets: which positions have arrived, and which are missing.
//!
//! ```text
//!   0          prefix          gap           island         gap            length
//!   |##########################|             |##############|               |
//! ```
//!
//! Bytes that continue the prefix are appended to it, which is all the work while packets are
//! neither lost nor reordered. Bytes that arrive early wait in islands until the gap before them
//! closes.
//!
//! All bytes are counted; only the first `kept` bytes are retained (CAP-15).
//!
//! # Invariants
//!
//! - **ASSEMBLY-1** `received` is the number of distinct positions in prefix and islands;
//!   duplicates do not count.
//! - **ASSEMBLY-2** Islands are disjoint and not empty, and start behind the prefix without
//!   touching it.
//! - **ASSEMBLY-3** (CAP-10) There are at most [`MAX_GAPS`] islands, and in proportion to the
//!   received bytes at most [`FREE_GAPS`] and one for each [`BYTES_PER_GAP`] of them: an island
//!   costs about a hundred bytes, whatever it holds.
//! - **ASSEMBLY-4** (CAP-15) Of the prefix and of each island, exactly the bytes below `kept` are
//!   retained. Only the retained bytes depend on `kept`.
//! - **ASSEMBLY-5** (CAP-13) Memory is allocated for bytes that are reserved or have arrived, and
//!   at most a quarter more.

use crate::limits::{BYTES_PER_GAP, FREE_GAPS, MAX_GAPS};
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// The bytes of a message that have arrived.
#[derive(Debug)]
pub(super) struct Assembly {
    /// Distinct positions that have arrived.
    received: u32,
    /// Offset of the first gap: all bytes before it have arrived.
    prefix: u32,
    /// Number of leading bytes that are retained.
    kept: u32,
    /// The retained bytes of the prefix.
    content: Vec<u8>,
    /// Pieces behind the first gap, by offset.
    islands: BTreeMap<u32, Island>,
}

/// Bytes that arrived early.
#[derive(Debug)]
struct Island {
    /// Offset just past the last one.
    end: u32,
    /// The retained part of the prefix.
    content: Vec<u8>,
}

/// The outcome of inserting the bytes of a DATA packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    /// Some bytes were new.
    New {
        /// Number of new positions.
        bytes: u32,
        /// Whether the packet arrived ahead of missing bytes and opened a gap.
        gap: bool,
    },
    /// All bytes had arrived before.
    Duplicate,
    /// The packet would open a gap too many (ASSEMBLY-3) and was ignored.
    TooManyGaps,
}

impl Assembly {
    /// No byte has arrived; the first `bytes` bytes will be retained.
    pub(super) const fn retaining(bytes: u32) -> Self {
        Self { received: 0, prefix: 0, kept: bytes, content: Vec::new(), islands: BTreeMap::new() }
    }

    /// Assembles in `memory`, which is empty.
    pub(super) fn in_memory(self, memory: Vec<u8>) -> Self {
        Self { content: memory, ..self }
    }

    /// Distinct positions that have arrived.
    pub(super) const fn received(&self) -> u32 {
        self.received
    }

    /// Inserts the new bytes of a packet with the positions `range` and the bytes `data`, which is
    /// empty for an empty message. Memory for `reserved` bytes may be allocated at once.
    pub(super) fn insert(&mut self, range: Range<u32>, data: &[u8], reserved: usize) -> Inserted {
        let before = self.received;
        let at = self.prefix;
        if range.start == at && self.islands.is_empty() {
            self.extend_prefix(range.end, self.retained(at, data), reserved);
        } else if range.end <= at {
            return Inserted::Duplicate;
        } else if range.start <= at {
            let rest = &data[(at - range.start) as usize..];
            self.extend_prefix(range.end, self.retained(at, rest), reserved);
            self.absorb_islands(reserved);
        } else if !self.insert_islands(range.start, data) {
            return Inserted::TooManyGaps;
        }
        let bytes = self.received - before;
        if bytes == 0 {
            Inserted::Duplicate
        } else {
            Inserted::New { bytes, gap: range.start > at }
        }
    }

    /// The ranges that are missing below `limit`, in order.
    pub(super) fn gaps(&self, limit: u32) -> impl Iterator<Item = Range<u32>> {
        let mut at = self.prefix;
        let islands = self.islands.iter().map(|(start, island)| (*start, island.end));
        islands.chain([(limit, limit)]).filter_map(move |(start, end)| {
            let gap = at..start.min(limit);
            at = at.max(end);
            (gap.start < gap.end).then_some(gap)
        })
    }

    /// The gap that ends at `offset`, if there is one.
    pub(super) fn gap_before(&self, offset: u32) -> Option<Range<u32>> {
        let before = self.islands.range(..offset).next_back();
        let start = before.map_or(self.prefix, |(_, island)| island.end);
        (start < offset).then_some(start..offset)
    }

    /// Most islands that it may have now (ASSEMBLY-3).
    const fn most_gaps(&self) -> usize {
        let paid = FREE_GAPS + self.received as usize / BYTES_PER_GAP;
        if paid < MAX_GAPS { paid } else { MAX_GAPS }
    }

    /// Bytes of memory that the prefix occupies.
    pub(super) const fn memory(&self) -> usize {
        self.content.capacity()
    }

    /// Frees memory without received bytes.
    pub(super) fn shrink(&mut self) {
        self.content.shrink_to_fit();
    }

    /// The retained bytes. None is missing.
    pub(super) fn into_bytes(self) -> Bytes {
        assert!(self.islands.is_empty(), "ASSEMBLY-2: bytes are missing");
        Bytes::from(self.content)
    }

    /// The retained part of `data`, whose first byte is at `offset` (ASSEMBLY-4).
    fn retained<'a>(&self, offset: u32, data: &'a [u8]) -> &'a [u8] {
        let retained = self.kept.saturating_sub(offset) as usize;
        &data[..retained.min(data.len())]
    }

    /// Extends the prefix to `end`; `retained` are the retained bytes of the extension. Islands
    /// that it covers are left alone.
    fn extend_prefix(&mut self, end: u32, retained: &[u8], reserved: usize) {
        let needed = self.content.len() + retained.len();
        if needed > self.content.capacity() {
            self.allocate(needed, reserved);
        }
        self.content.extend_from_slice(retained);
        self.received += end - self.prefix;
        self.prefix = end;
    }

    /// Makes room for the prefix to grow to `needed` retained bytes.
    fn allocate(&mut self, needed: usize, reserved: usize) {
        let capacity = needed.max(with_slack(self.content.capacity())).max(reserved);
        let capacity = capacity.min(self.kept as usize);
        self.content.reserve_exact(capacity - self.content.len());
    }

    /// Moves islands that the prefix has reached into it.
    fn absorb_islands(&mut self, reserved: usize) {
        while let Some(entry) = self.islands.first_entry() {
            let at = self.prefix;
            let start = *entry.key();
            if start > at {
                break;
            }
            let island = entry.remove();
            // Bytes that the prefix covers have been counted twice: once when they arrived as an
            // island.
            self.received -= island.end - start;
            let rest = island.content.get((at - start) as usize..).unwrap_or_default();
            self.extend_prefix(island.end.max(at), rest, reserved);
        }
    }

    /// Puts the new parts of `data` into islands; `false` if that needs more of them than allowed.
    fn insert_islands(&mut self, offset: u32, data: &[u8]) -> bool {
        let end = offset + data.len() as u32;
        let retained = self.retained(offset, data);
        if let Some(mut last) = self.islands.last_entry()
            && last.get().end == offset
        {
            // The usual case: packets continue to arrive behind one gap.
            let last = last.get_mut();
            let needed = last.content.len() + retained.len();
            if needed > last.content.capacity() {
                let capacity = needed.max(with_slack(last.content.len()));
                last.content.reserve_exact(capacity - last.content.len());
            }
            last.content.extend_from_slice(retained);
            last.end = end;
            self.received += data.len() as u32;
            return true;
        }
        // Only the islands that the packet meets are visited.
        let before = self.islands.range(..offset).next_back();
        let mut at = before.map_or(offset, |(_, island)| island.end.max(offset));
        let mut fresh: SmallVec<[Range<u32>; 2]> = SmallVec::new();
        for (start, island) in self.islands.range(offset..end) {
            if at < *start {
                fresh.push(at..*start);
            }
            at = at.max(island.end);
        }
        if at < end {
            fresh.push(at..end);
        }
        if self.islands.len() + fresh.len() > self.most_gaps() {
            return false;
        }
        for part in fresh {
            let piece = &data[(part.start - offset) as usize..(part.end - offset) as usize];
            let content = self.retained(part.start, piece).to_vec();
            self.islands.insert(part.start, Island { end: part.end, content });
            self.received += part.end - part.start;
        }
        true
    }
}

/// The capacity to which memory of this size grows (ASSEMBLY-5).
const fn with_slack(capacity: usize) -> usize {
    capacity + capacity / 4
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl Assembly {
        /// Inserts a packet without a reservation.
        fn add(&mut self, offset: u32, data: &[u8]) -> Inserted {
            self.insert(offset..offset + data.len() as u32, data, 0)
        }
    }

    fn gaps(message: &Assembly, limit: u32) -> Vec<(u32, u32)> {
        message.gaps(limit).map(|gap| (gap.start, gap.end)).collect()
    }

    #[test]
    fn packets_in_order_are_one_prefix() {
        let mut message = Assembly::retaining(5);
        assert_eq!(message.add(0, b"ab"), Inserted::New { bytes: 2, gap: false });
        assert_eq!(message.add(2, b"cde"), Inserted::New { bytes: 3, gap: false });
        assert_eq!(message.into_bytes(), "abcde");
    }

    #[test]
    fn a_first_packet_that_is_not_at_offset_0_waits_for_the_others() {
        let mut message = Assembly::retaining(6);
        assert_eq!(message.add(4, b"ef"), Inserted::New { bytes: 2, gap: true });
        assert_eq!(gaps(&message, 6), [(0, 4)]);
        assert_eq!(message.add(0, b"abcd"), Inserted::New { bytes: 4, gap: false });
        assert_eq!(message.into_bytes(), "abcdef");
    }

    #[test]
    fn a_duplicate_brings_nothing() {
        let mut message = Assembly::retaining(6);
        message.add(0, b"ab");
        message.add(4, b"ef");
        assert_eq!(message.add(0, b"ab"), Inserted::Duplicate);
        assert_eq!(message.add(4, b"ef"), Inserted::Duplicate);
        assert_eq!(message.add(5, b"f"), Inserted::Duplicate);
        assert_eq!(message.received(), 4);
    }

    #[test]
    fn overlapping_packets_are_trimmed() {
        let mut message = Assembly::retaining(8);
        message.add(4, b"ef");
        assert_eq!(message.add(3, b"defg"), Inserted::New { bytes: 2, gap: true });
        assert_eq!(message.add(0, b"abcdefgh"), Inserted::New { bytes: 4, gap: false });
        assert_eq!(message.into_bytes(), "abcdefgh");
    }

    #[test]
    fn gaps_stop_at_the_limit() {
        let mut message = Assembly::retaining(100);
        message.add(10, &[0; 10]);
        message.add(40, &[0; 10]);
        assert_eq!(gaps(&message, 100), [(0, 10), (20, 40), (50, 100)]);
        assert_eq!(gaps(&message, 30), [(0, 10), (20, 30)]);
        assert_eq!(gaps(&message, 15), [(0, 10)]);
        assert_eq!(gaps(&message, 5), [(0, 5)]);
        assert_eq!(message.gaps(0).count(), 0);
    }

    /// Requirement CAP-10.
    #[test]
    fn the_number_of_gaps_is_bounded() {
        for kept in [2_000_000, 0] {
            let mut message = Assembly::retaining(kept);
            for i in 0..MAX_GAPS as u32 {
                assert!(matches!(message.add(i * 1_200 + 600, &[b'x'; 600]), Inserted::New { .. }));
            }
            assert_eq!(message.add(1_900_000, &[b'x'; 600]), Inserted::TooManyGaps);
            // Closing gaps still works.
            assert!(matches!(message.add(0, &[b'x'; 601]), Inserted::New { bytes: 600, .. }));
            assert!(matches!(message.add(1_900_000, &[b'x'; 600]), Inserted::New { .. }));
        }
    }

    /// Requirement CAP-10: every second byte of 2,050 made 1,024 islands of a hundred bytes each.
    #[test]
    fn gaps_are_paid_for_with_bytes() {
        let mut message = Assembly::retaining(2_050);
        let islands =
            (0..1_024).filter(|i| message.add(2 * i + 1, b"x") != Inserted::TooManyGaps).count();
        assert_eq!(islands, FREE_GAPS);
        assert!(matches!(message.add(0, &[b'x'; 1_024]), Inserted::New { bytes: 1_020, .. }));
        let islands =
            (512..1_024).filter(|i| message.add(2 * i + 1, b"x") != Inserted::TooManyGaps).count();
        assert_eq!(islands, FREE_GAPS + 4, "one for each 256 bytes");
        let last = message.gap_before(1_035).map(|gap| (gap.start, gap.end));
        assert_eq!((last, message.gap_before(1_024)), (Some((1_034, 1_035)), None));
    }

    #[test]
    fn only_the_first_bytes_are_kept() {
        let mut message = Assembly::retaining(4);
        assert_eq!(message.add(3, b"def"), Inserted::New { bytes: 3, gap: true });
        assert_eq!(message.add(6, b"gh"), Inserted::New { bytes: 2, gap: true });
        assert_eq!(gaps(&message, 9), [(0, 3), (8, 9)]);
        assert_eq!(message.add(0, b"abcd"), Inserted::New { bytes: 3, gap: false });
        assert_eq!(
            message.add(5, b"fg"),
            Inserted::Duplicate,
            "it arrived before, and was not retained"
        );
        assert_eq!(message.add(7, b"hi"), Inserted::New { bytes: 1, gap: false });
        assert_eq!(message.received(), 9);
        assert_eq!(message.into_bytes(), "abcd");
    }

    #[test]
    fn more_than_there_is_keeps_all() {
        let mut message = Assembly::retaining(u32::MAX);
        message.add(0, b"abc");
        assert_eq!(message.into_bytes(), "abc");
    }

    /// Requirement CAP-15.
    #[test]
    fn what_is_not_kept_takes_no_memory() {
        const LENGTH: u32 = 4 << 20;
        for kept in [0, 100, 2_000] {
            let mut message = Assembly::retaining(kept);
            // Every second packet is early, and fills its island in two steps.
            for offset in (0..LENGTH).step_by(8_192) {
                message.add(offset + 4_096, &[0; 2_048]);
                message.add(offset + 6_144, &[0; 2_048]);
                let early = message.islands.values().map(|island| island.content.capacity());
                assert_eq!(early.sum::<usize>(), 0);
                message.add(offset, &[0; 4_096]);
                assert!(message.memory() <= kept as usize);
            }
            assert!(message.received() == LENGTH);
            assert_eq!(message.into_bytes().len(), kept as usize);
        }
    }

    proptest! {
        /// The model is an array of optional bytes, for any number of retained bytes.
        #[test]
        fn behaves_like_an_array_of_optional_bytes(
            packets in proptest::collection::vec((0u32..64, 1u32..20), 1..60),
            kept in 0u32..=64,
        ) {
            const LENGTH: u32 = 64;
            let content: Vec<u8> = (0..LENGTH as u8).collect();
            let mut message = Assembly::retaining(kept);
            let mut whole = Assembly::retaining(LENGTH);
            let mut model = [false; LENGTH as usize];
            for (offset, len) in packets {
                let end = (offset + len).min(LENGTH);
                let range = offset as usize..end as usize;
                let new = model[range.clone()].iter().filter(|here| !**here).count() as u32;
                let inserted = message.add(offset, &content[range.clone()]);
                prop_assert_eq!(whole.add(offset, &content[range.clone()]), inserted);
                match inserted {
                    Inserted::New { bytes, .. } => prop_assert_eq!(bytes, new),
                    Inserted::Duplicate => prop_assert_eq!(new, 0),
                    Inserted::TooManyGaps => {
                        prop_assert!(message.islands.len() + 3 > FREE_GAPS, "ASSEMBLY-3");
                        continue;
                    }
                }
                model[range].fill(true);
                let missing: Vec<u32> = message.gaps(LENGTH).flatten().collect();
                let expected: Vec<u32> = (0..LENGTH).filter(|i| !model[*i as usize]).collect();
                prop_assert_eq!((LENGTH - message.received()) as usize, expected.len());
                prop_assert_eq!(missing, expected);
                prop_assert_eq!(message.content.len() as u32, message.prefix.min(kept), "ASSEMBLY-4");
                for (start, island) in &message.islands {
                    let held = kept.clamp(*start, island.end) - start;
                    prop_assert_eq!(island.content.len() as u32, held, "ASSEMBLY-4");
                }
            }
            for gap in message.gaps(LENGTH).collect::<Vec<_>>() {
                let piece = &content[gap.start as usize..gap.end as usize];
                message.add(gap.start, piece);
                whole.add(gap.start, piece);
            }
            prop_assert_eq!(message.into_bytes(), &content[..kept as usize]);
            prop_assert_eq!(whole.into_bytes(), content);
        }
    }
}
