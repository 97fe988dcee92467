//! An incoming message: which bytes have arrived, and which are missing.
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
//! Offsets are positions: an empty message has one, which its packet fills ([`extent`]).
//!
//! # Invariants
//!
//! - **INCOMING-1** `received` is the number of distinct positions in prefix and islands;
//!   duplicates do not count.
//! - **INCOMING-2** Islands are disjoint and not empty, and start behind the prefix without
//!   touching it.
//! - **INCOMING-3** `granted <= extent`: a GRANT never names a byte past the end.
//! - **INCOMING-4** `granted` never decreases: a stale announcement cannot take bytes back.
//! - **INCOMING-5** (CAP-10) There are at most [`MAX_GAPS`] islands, and in proportion to the received
//!   bytes at most [`FREE_GAPS`] and one for each [`BYTES_PER_GAP`] of them: an island costs about a
//!   hundred bytes, whatever it holds.
//! - **INCOMING-6** (CAP-15) Of the prefix and of each island, exactly the bytes below `kept` are
//!   retained. Only the retained bytes depend on `kept`.
//! - **INCOMING-7** (CAP-13) Memory is allocated for bytes that are reserved or have arrived, and
//!   at most a quarter more.
//! - **INCOMING-8** (BAD-11) `allowed` is at most the unscheduled window plus the bytes granted by
//!   this endpoint, whatever the sender announces; or the received bytes plus the last GRANT, if
//!   more have arrived.

use super::Reservation;
use crate::allowed::Allowed;
use crate::extent::extent;
use crate::limits::{BYTES_PER_GAP, FREE_GAPS, MAX_GAPS, PROGRESS_BYTES, RESERVE_AT_ONCE};
use crate::quota::Progress;
use crate::time::Instant;
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::ops::Range;

/// An incoming message.
#[derive(Debug)]
pub(crate) struct MessageIn {
    /// Total payload bytes, from the first DATA packet. Constant afterwards (RPC-17).
    length: u32,
    /// Payload bytes that its sender announced to send without grants, as far as they were allowed.
    /// Constant.
    unscheduled: u32,
    /// Distinct positions that have arrived.
    received: u32,
    /// Offset just past the last byte that the sender may transmit, unscheduled bytes included.
    granted: u32,
    /// Number of bytes that this endpoint has allowed its sender: announced ones as far as the
    /// unscheduled window allows, and granted ones.
    allowed: u32,
    /// Offset of the first gap: all bytes before it have arrived.
    prefix: u32,
    /// Number of leading bytes that are retained, at most `length`.
    kept: u32,
    /// The retained bytes of the prefix.
    content: Vec<u8>,
    /// Pieces behind the first gap, by offset.
    islands: BTreeMap<u32, Island>,
    /// Its room in the receive budget.
    reservation: Reservation,
    /// How fast it arrives.
    progress: Progress,
    /// Since when its sender's use of granted bytes is measured: the bytes that had arrived then, and
    /// those that it held.
    usage: (Instant, u32, Allowed),
    /// Whether it has returned the room for missing bytes, and has made no progress since.
    stalled: bool,
    /// Payload of the longest packet that has arrived, in bytes.
    longest_packet: u32,
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
    /// The packet would open a gap too many (INCOMING-5) and was ignored.
    TooManyGaps,
}

impl MessageIn {
    /// A message of `length` bytes whose sender may transmit `incoming` bytes without grants. All
    /// its bytes are retained.
    pub(crate) fn new(length: u32, incoming: u32) -> Self {
        let unscheduled = incoming.min(length);
        Self {
            length,
            unscheduled,
            received: 0,
            // The packet of an empty message needs no GRANT.
            granted: if length == 0 { extent(0) } else { unscheduled },
            allowed: unscheduled,
            prefix: 0,
            kept: length,
            content: Vec::new(),
            islands: BTreeMap::new(),
            reservation: Reservation::NONE,
            progress: Progress::starting(Instant::ZERO),
            usage: (Instant::ZERO, 0, Allowed::NONE),
            stalled: false,
            longest_packet: 0,
        }
    }

    /// Of the bytes that its sender has announced, only `announced` were allowed.
    pub(crate) fn allowing(self, announced: Allowed) -> Self {
        let unscheduled = self.unscheduled.min(announced.get());
        Self { unscheduled, allowed: unscheduled, ..self }
    }

    /// Sets the initial room, at `now`.
    pub(crate) fn with_room(self, reservation: Reservation, now: Instant) -> Self {
        let usage = (now, 0, self.held());
        Self { reservation, progress: Progress::starting(now), usage, ..self }
    }

    /// Retains only the first `bytes` bytes. Called before the first byte has arrived.
    pub(crate) fn keeping(self, bytes: u32) -> Self {
        debug_assert_eq!(self.received, 0, "INCOMING-6");
        Self { kept: bytes.min(self.length), ..self }
    }

    /// Assembles the message in `memory`, which is empty. Called before the first byte has arrived.
    pub(crate) fn in_memory(self, memory: Vec<u8>) -> Self {
        debug_assert!(self.received == 0 && memory.is_empty(), "INCOMING-6");
        Self { content: memory, ..self }
    }

    /// Total bytes.
    pub(crate) const fn length(&self) -> u32 {
        self.length
    }

    /// Positions that the message occupies.
    pub(crate) const fn extent(&self) -> u32 {
        extent(self.length)
    }

    /// Bytes that the sender transmits without grants, as far as they were allowed.
    pub(crate) const fn unscheduled(&self) -> u32 {
        self.unscheduled
    }

    /// Distinct positions that have arrived.
    pub(crate) const fn received(&self) -> u32 {
        self.received
    }

    /// Positions that have not arrived.
    pub(crate) const fn missing(&self) -> u32 {
        self.extent() - self.received
    }

    /// Offset just past the last byte that the sender may transmit.
    pub(crate) const fn granted(&self) -> u32 {
        self.granted
    }

    /// Bytes that the sender may transmit and that have not arrived.
    ///
    /// A packet that starts below the limit may go beyond it (HM `homa_outgoing.c`
    /// `homa_xmit_data`), hence the saturation.
    pub(crate) const fn outstanding(&self) -> u32 {
        self.granted.saturating_sub(self.received)
    }

    /// Bytes in flight as far as this endpoint has allowed them, which count for other messages:
    /// [`MessageIn::outstanding`] may be any number that its sender has invented.
    pub(crate) const fn held(&self) -> Allowed {
        Allowed::at_most(self.outstanding(), self.allowed.saturating_sub(self.received))
    }

    /// Whether all bytes have arrived.
    pub(crate) const fn is_complete(&self) -> bool {
        self.received == self.extent()
    }

    /// Its room in the receive budget, which the budget alone changes.
    pub(crate) const fn reservation(&self) -> Reservation {
        self.reservation
    }

    /// Sets its room in the receive budget.
    pub(crate) const fn reserve(&mut self, reservation: Reservation) {
        self.reservation = reservation;
    }

    /// Records that bytes arrived at `now`. Returns whether that is progress: they are enough, or
    /// all that its sender may transmit.
    pub(crate) const fn note_progress(&mut self, now: Instant) -> bool {
        let is_progress = self.progress.note(now, self.received) || self.outstanding() == 0;
        if is_progress {
            self.note_waiting(now);
        }
        is_progress
    }

    /// Records that its sender had nothing to send until `now`, because it waits for grants.
    pub(crate) const fn note_waiting(&mut self, now: Instant) {
        self.progress.restart(now, self.received);
        self.stalled = false;
    }

    /// Marks the message as stalled, and frees memory without received bytes. Returns whether
    /// anything changed.
    pub(crate) fn stall(&mut self) -> bool {
        self.content.shrink_to_fit();
        !std::mem::replace(&mut self.stalled, true)
    }

    /// Whether it makes no progress.
    pub(crate) const fn is_stalled(&self) -> bool {
        self.stalled
    }

    /// Whether less than half of the bytes that it held `interval` nanoseconds ago, or earlier, have
    /// arrived until `now`. Each interval is judged once.
    pub(crate) fn is_slow(&mut self, now: Instant, interval: u64) -> bool {
        let (since, received, held) = self.usage;
        if now.since(since) < interval {
            return false;
        }
        self.usage = (now, self.received, self.held());
        held.get() >= 2 * PROGRESS_BYTES && self.received - received < held.get() / 2
    }

    /// When it last made progress.
    pub(crate) const fn progressed(&self) -> Instant {
        self.progress.at()
    }

    /// Payload of the longest packet that has arrived, in bytes.
    pub(crate) const fn longest_packet(&self) -> u32 {
        self.longest_packet
    }

    /// Raises the limit up to which the sender may transmit (INCOMING-3, INCOMING-4), at `now`. If
    /// it had nothing to transmit, it has made no progress since then only.
    pub(crate) fn grant(&mut self, offset: u32, now: Instant) {
        let begins = self.outstanding() == 0;
        let before = self.granted;
        self.granted = before.max(offset.min(self.extent()));
        // INCOMING-8
        let more = self.granted - before;
        if more > 0 {
            self.allowed = self.allowed.max(self.received).saturating_add(more);
        }
        if begins {
            self.note_waiting(now);
            self.usage = (now, self.received, self.held());
        }
    }

    /// Inserts the new bytes of a packet that lies inside the message (CODEC-2, RPC-15).
    ///
    /// RPC-16: a packet that overlaps received bytes is trimmed, because retransmissions may have
    /// other boundaries than the first transmission. (The kernel drops it, HM `homa_incoming.c`
    /// `homa_add_packet`.)
    pub(crate) fn insert(&mut self, offset: u32, data: &[u8]) -> Inserted {
        let end = if self.length == 0 { self.extent() } else { offset + data.len() as u32 };
        debug_assert!(end <= self.extent(), "CODEC-2");
        self.longest_packet = self.longest_packet.max(data.len() as u32);
        let before = self.received;
        let at = self.prefix;
        if offset == at && self.islands.is_empty() {
            self.extend_prefix(end, self.retained(at, data));
        } else if end <= at {
            return Inserted::Duplicate;
        } else if offset <= at {
            self.extend_prefix(end, self.retained(at, &data[(at - offset) as usize..]));
            self.absorb_islands();
        } else if !self.insert_islands(offset, data) {
            return Inserted::TooManyGaps;
        }
        let bytes = self.received - before;
        if bytes == 0 { Inserted::Duplicate } else { Inserted::New { bytes, gap: offset > at } }
    }

    /// The ranges that are missing below `limit`, in order.
    pub(crate) fn gaps(&self, limit: u32) -> impl Iterator<Item = Range<u32>> {
        let mut at = self.prefix;
        let islands = self.islands.iter().map(|(start, island)| (*start, island.end));
        islands.chain([(limit, limit)]).filter_map(move |(start, end)| {
            let gap = at..start.min(limit);
            at = at.max(end);
            (gap.start < gap.end).then_some(gap)
        })
    }

    /// The gap that ends at `offset`, if there is one.
    pub(crate) fn gap_before(&self, offset: u32) -> Option<Range<u32>> {
        let before = self.islands.range(..offset).next_back();
        let start = before.map_or(self.prefix, |(_, island)| island.end);
        (start < offset).then_some(start..offset)
    }

    /// Most islands that it may have now (INCOMING-5).
    const fn most_gaps(&self) -> usize {
        let paid = FREE_GAPS + self.received as usize / BYTES_PER_GAP;
        if paid < MAX_GAPS { paid } else { MAX_GAPS }
    }

    /// Bytes of memory that the prefix occupies.
    pub(crate) const fn memory(&self) -> usize {
        self.content.capacity()
    }

    /// The retained bytes of the complete message.
    ///
    /// # Panics
    ///
    /// If bytes are missing.
    pub(crate) fn into_bytes(self) -> Bytes {
        assert!(
            self.is_complete() && self.islands.is_empty(),
            "INCOMING-1, INCOMING-2: bytes are missing"
        );
        Bytes::from(self.content)
    }

    /// The retained part of `data`, whose first byte is at `offset` (INCOMING-6).
    fn retained<'a>(&self, offset: u32, data: &'a [u8]) -> &'a [u8] {
        let retained = self.kept.saturating_sub(offset) as usize;
        &data[..retained.min(data.len())]
    }

    /// Extends the prefix to `end`; `retained` are the retained bytes of the extension. Islands
    /// that it covers are left alone.
    fn extend_prefix(&mut self, end: u32, retained: &[u8]) {
        let needed = self.content.len() + retained.len();
        if needed > self.content.capacity() {
            self.allocate(needed);
        }
        self.content.extend_from_slice(retained);
        self.received += end - self.prefix;
        self.prefix = end;
    }

    /// Makes room for the prefix to grow to `needed` retained bytes.
    fn allocate(&mut self, needed: usize) {
        let reserved = (self.reservation.positions as usize).min(RESERVE_AT_ONCE);
        let capacity = needed.max(with_slack(self.content.capacity())).max(reserved);
        let capacity = capacity.min(self.kept as usize);
        self.content.reserve_exact(capacity - self.content.len());
    }

    /// Moves islands that the prefix has reached into it.
    fn absorb_islands(&mut self) {
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
            self.extend_prefix(island.end.max(at), rest);
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

/// The capacity to which memory of this size grows (INCOMING-7).
const fn with_slack(capacity: usize) -> usize {
    capacity + capacity / 4
}

#[cfg(test)]
mod tests {
    use super::super::Claim;
    use super::*;
    use proptest::prelude::*;

    fn message(length: u32) -> MessageIn {
        MessageIn::new(length, length)
    }

    fn gaps(message: &MessageIn, limit: u32) -> Vec<(u32, u32)> {
        message.gaps(limit).map(|gap| (gap.start, gap.end)).collect()
    }

    /// BAD-11, INCOMING-8.
    #[test]
    fn a_message_holds_what_it_was_allowed_whatever_it_announces() {
        let window = Allowed::at_most(60_000, 60_000);
        let invented = MessageIn::new(64_000_000, 63_999_999).allowing(window);
        assert_eq!((invented.outstanding(), invented.held().get()), (63_999_999, 60_000));
        assert_eq!(invented.unscheduled(), 60_000, "in the cutoffs of all peers");
        let mut message = MessageIn::new(300_000, 100_000).allowing(window);
        message.insert(0, &[0; 70_000]);
        assert_eq!((message.outstanding(), message.held().get()), (30_000, 0));
        message.grant(150_000, Instant::ZERO);
        assert_eq!(message.held().get(), 50_000, "the GRANT");
        message.insert(70_000, &[0; 80_000]);
        assert_eq!(message.held().get(), 0);
        let mut honest = MessageIn::new(300_000, 50_000).allowing(window);
        honest.grant(90_000, Instant::ZERO);
        honest.insert(0, &[0; 10_000]);
        assert_eq!((honest.outstanding(), honest.held().get()), (80_000, 80_000));
    }

    /// GRANT-10, CAP-8: single bytes are no progress, nor is the time before a GRANT.
    #[test]
    fn progress_is_many_bytes_or_all_that_may_be_sent() {
        let at = Instant::from_nanos;
        let mut message = MessageIn::new(100_000, 1);
        message.insert(0, &[0; 1]);
        assert!(message.note_progress(at(1)), "its sender may send no more");
        message.grant(50_000, at(5));
        assert_eq!(message.progressed(), at(5));
        for byte in 1..1_000 {
            message.insert(byte, &[0]);
            assert!(!message.note_progress(at(6)));
        }
        message.insert(1_000, &[0]);
        assert!(message.note_progress(at(7)) && message.progressed() == at(7));
    }

    /// GRANT-21.
    #[test]
    fn a_sender_that_uses_less_than_half_of_its_grants_is_slow() {
        let at = Instant::from_nanos;
        let mut message = MessageIn::new(100_000, 1);
        message.insert(0, &[0; 1]);
        message.grant(10_001, at(5));
        assert!(!message.is_slow(at(104), 100), "too early");
        message.insert(1, &[0; 4_999]);
        assert!(message.is_slow(at(105), 100));
        assert!(!message.is_slow(at(204), 100), "once");
        message.insert(5_000, &[0; 2_501]);
        assert!(!message.is_slow(at(205), 100), "half of the rest");
        message.insert(7_501, &[0; 1_000]);
        assert!(message.is_slow(at(305), 100));
        assert!(!message.is_slow(at(405), 100), "it holds hardly anything");
    }

    #[test]
    fn packets_in_order_are_one_prefix() {
        let mut message = message(5);
        assert_eq!(message.insert(0, b"ab"), Inserted::New { bytes: 2, gap: false });
        assert_eq!(message.insert(2, b"cde"), Inserted::New { bytes: 3, gap: false });
        assert_eq!(message.into_bytes(), "abcde");
    }

    #[test]
    fn a_first_packet_that_is_not_at_offset_0_waits_for_the_others() {
        let mut message = message(6);
        assert_eq!(message.insert(4, b"ef"), Inserted::New { bytes: 2, gap: true });
        assert_eq!(gaps(&message, 6), [(0, 4)]);
        assert_eq!(message.insert(0, b"abcd"), Inserted::New { bytes: 4, gap: false });
        assert_eq!(message.into_bytes(), "abcdef");
    }

    /// WIRE-30: the packet of an empty message completes it, once.
    #[test]
    fn an_empty_message_is_complete_when_its_packet_has_arrived() {
        for (announced, kept) in [(0, 0), (0, u32::MAX), (u32::MAX, 7)] {
            let mut message = MessageIn::new(0, announced).keeping(kept);
            assert!(!message.is_complete());
            assert_eq!((message.missing(), message.outstanding(), message.granted()), (1, 1, 1));
            assert_eq!(gaps(&message, message.granted()), [(0, 1)], "what a RESEND would ask for");
            assert_eq!(message.insert(0, b""), Inserted::New { bytes: 1, gap: false });
            assert!(message.is_complete());
            assert_eq!(message.insert(0, b""), Inserted::Duplicate);
            assert_eq!((message.missing(), message.outstanding()), (0, 0));
            assert_eq!(message.gaps(message.granted()).count(), 0);
            message.grant(u32::MAX, Instant::ZERO);
            assert_eq!((message.length(), message.granted()), (0, 1));
            assert_eq!(message.into_bytes(), "");
        }
    }

    #[test]
    fn a_duplicate_brings_nothing() {
        let mut message = message(6);
        message.insert(0, b"ab");
        message.insert(4, b"ef");
        assert_eq!(message.insert(0, b"ab"), Inserted::Duplicate);
        assert_eq!(message.insert(4, b"ef"), Inserted::Duplicate);
        assert_eq!(message.insert(5, b"f"), Inserted::Duplicate);
        assert_eq!(message.received(), 4);
    }

    #[test]
    fn overlapping_packets_are_trimmed() {
        let mut message = message(8);
        message.insert(4, b"ef");
        assert_eq!(message.insert(3, b"defg"), Inserted::New { bytes: 2, gap: true });
        assert_eq!(message.insert(0, b"abcdefgh"), Inserted::New { bytes: 4, gap: false });
        assert_eq!(message.into_bytes(), "abcdefgh");
    }

    #[test]
    fn gaps_stop_at_the_limit() {
        let mut message = message(100);
        message.insert(10, &[0; 10]);
        message.insert(40, &[0; 10]);
        assert_eq!(gaps(&message, 100), [(0, 10), (20, 40), (50, 100)]);
        assert_eq!(gaps(&message, 30), [(0, 10), (20, 30)]);
        assert_eq!(gaps(&message, 15), [(0, 10)]);
        assert_eq!(gaps(&message, 5), [(0, 5)]);
        assert_eq!(message.gaps(0).count(), 0);
    }

    #[test]
    fn the_limit_only_rises_and_stays_inside() {
        let mut message = MessageIn::new(100, 1000);
        assert_eq!(message.granted(), 100);
        let mut message2 = MessageIn::new(100, 10);
        message2.grant(50, Instant::ZERO);
        message2.grant(20, Instant::ZERO);
        assert_eq!(message2.granted(), 50);
        message2.grant(1000, Instant::ZERO);
        message.grant(0, Instant::ZERO);
        assert_eq!((message2.granted(), message.granted()), (100, 100));
    }

    /// Requirement CAP-10.
    #[test]
    fn the_number_of_gaps_is_bounded() {
        for kept in [2_000_000, 0] {
            let mut message = message(2_000_000).keeping(kept);
            for i in 0..MAX_GAPS as u32 {
                assert!(matches!(
                    message.insert(i * 1_200 + 600, &[b'x'; 600]),
                    Inserted::New { .. }
                ));
            }
            assert_eq!(message.insert(1_900_000, &[b'x'; 600]), Inserted::TooManyGaps);
            // Closing gaps still works.
            assert!(matches!(message.insert(0, &[b'x'; 601]), Inserted::New { bytes: 600, .. }));
            assert!(matches!(message.insert(1_900_000, &[b'x'; 600]), Inserted::New { .. }));
        }
    }

    /// Requirement CAP-10: every second byte of 2,050 made 1,024 islands of a hundred bytes each.
    #[test]
    fn gaps_are_paid_for_with_bytes() {
        let mut message = message(2_050);
        let islands =
            (0..1_024).filter(|i| message.insert(2 * i + 1, b"x") != Inserted::TooManyGaps).count();
        assert_eq!(islands, FREE_GAPS);
        assert!(matches!(message.insert(0, &[b'x'; 1_024]), Inserted::New { bytes: 1_020, .. }));
        let islands = (512..1_024)
            .filter(|i| message.insert(2 * i + 1, b"x") != Inserted::TooManyGaps)
            .count();
        assert_eq!(islands, FREE_GAPS + 4, "one for each 256 bytes");
        let last = message.gap_before(1_035).map(|gap| (gap.start, gap.end));
        assert_eq!((last, message.gap_before(1_024)), (Some((1_034, 1_035)), None));
    }

    /// Requirement CAP-13.
    #[test]
    fn a_large_claim_takes_no_memory_before_the_bytes_come() {
        let mut message = message(64 << 20);
        message.insert(0, &[0; 1400]);
        assert!(message.memory() <= 1400);
        let whole = Reservation { positions: 64 << 20, claim: Claim::Assured };
        let mut message = MessageIn::new(64 << 20, 0).with_room(whole, Instant::ZERO);
        message.insert(0, &[0; 1400]);
        assert!(message.memory() <= RESERVE_AT_ONCE);
        assert!(message.stall() && !message.stall());
        assert!(message.memory() <= 1400);
    }

    #[test]
    fn only_the_first_bytes_are_kept() {
        let mut message = message(9).keeping(4);
        assert_eq!(message.insert(3, b"def"), Inserted::New { bytes: 3, gap: true });
        assert_eq!(message.insert(6, b"gh"), Inserted::New { bytes: 2, gap: true });
        assert_eq!(gaps(&message, 9), [(0, 3), (8, 9)]);
        assert_eq!(message.insert(0, b"abcd"), Inserted::New { bytes: 3, gap: false });
        assert_eq!(
            message.insert(5, b"fg"),
            Inserted::Duplicate,
            "it arrived before, and was not retained"
        );
        assert_eq!(message.insert(7, b"hi"), Inserted::New { bytes: 1, gap: false });
        assert_eq!((message.received(), message.missing()), (9, 0));
        assert_eq!(message.into_bytes(), "abcd");
    }

    #[test]
    fn more_than_there_is_keeps_all() {
        let mut message = message(3).keeping(u32::MAX);
        message.insert(0, b"abc");
        assert_eq!(message.into_bytes(), "abc");
    }

    /// Requirement CAP-15.
    #[test]
    fn what_is_not_kept_takes_no_memory() {
        const LENGTH: u32 = 4 << 20;
        for kept in [0, 100, 2_000] {
            let mut message = message(LENGTH).keeping(kept);
            // Every second packet is early, and fills its island in two steps.
            for offset in (0..LENGTH).step_by(8_192) {
                message.insert(offset + 4_096, &[0; 2_048]);
                message.insert(offset + 6_144, &[0; 2_048]);
                let early = message.islands.values().map(|island| island.content.capacity());
                assert_eq!(early.sum::<usize>(), 0);
                message.insert(offset, &[0; 4_096]);
                assert!(message.memory() <= kept as usize);
            }
            assert!(message.is_complete());
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
            let mut message = message(LENGTH).keeping(kept);
            let mut whole = self::message(LENGTH);
            let mut model = [false; LENGTH as usize];
            for (offset, len) in packets {
                let end = (offset + len).min(LENGTH);
                let range = offset as usize..end as usize;
                let new = model[range.clone()].iter().filter(|here| !**here).count() as u32;
                let inserted = message.insert(offset, &content[range.clone()]);
                prop_assert_eq!(whole.insert(offset, &content[range.clone()]), inserted);
                match inserted {
                    Inserted::New { bytes, .. } => prop_assert_eq!(bytes, new),
                    Inserted::Duplicate => prop_assert_eq!(new, 0),
                    Inserted::TooManyGaps => {
                        prop_assert!(message.islands.len() + 3 > FREE_GAPS, "INCOMING-5");
                        continue;
                    }
                }
                model[range].fill(true);
                let missing: Vec<u32> = message.gaps(LENGTH).flatten().collect();
                let expected: Vec<u32> = (0..LENGTH).filter(|i| !model[*i as usize]).collect();
                prop_assert_eq!(message.missing() as usize, expected.len());
                prop_assert_eq!(missing, expected);
                prop_assert_eq!(message.content.len() as u32, message.prefix.min(kept), "INCOMING-6");
                for (start, island) in &message.islands {
                    let held = kept.clamp(*start, island.end) - start;
                    prop_assert_eq!(island.content.len() as u32, held, "INCOMING-6");
                }
            }
            for gap in message.gaps(LENGTH).collect::<Vec<_>>() {
                let piece = &content[gap.start as usize..gap.end as usize];
                message.insert(gap.start, piece);
                whole.insert(gap.start, piece);
            }
            prop_assert_eq!(message.into_bytes(), &content[..kept as usize]);
            prop_assert_eq!(whole.into_bytes(), content);
        }
    }
}
