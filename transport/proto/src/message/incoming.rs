//! An incoming message: what its sender may transmit, and how fast it arrives.
//!
//! Offsets are positions: an empty message has one, which its packet fills ([`extent`]).
//!
//! # Invariants
//!
//! - **INCOMING-1** `granted <= extent`: a GRANT never names a byte past the end.
//! - **INCOMING-2** `granted` never decreases: a stale announcement cannot take bytes back.
//! - **INCOMING-3** (BAD-11) `allowed` is at most the unscheduled window plus the bytes granted by
//!   this endpoint, whatever the sender announces; or the received bytes plus the last GRANT, if
//!   more have arrived.

use super::Reservation;
use super::assembly::{Assembly, Inserted};
use crate::allowed::Allowed;
use crate::extent::extent;
use crate::limits::{PROGRESS_BYTES, RESERVE_AT_ONCE};
use crate::quota::Progress;
use crate::time::Instant;
use bytes::Bytes;
use std::ops::Range;

/// An incoming message.
#[derive(Debug)]
pub(crate) struct MessageIn {
    /// Total payload bytes, from the first DATA packet. Constant afterwards (RPC-17).
    length: u32,
    /// Payload bytes that its sender announced to send without grants, as far as they were allowed.
    /// Constant.
    unscheduled: u32,
    /// The bytes that have arrived.
    assembly: Assembly,
    /// Offset just past the last byte that the sender may transmit, unscheduled bytes included.
    granted: u32,
    /// Number of bytes that this endpoint has allowed its sender: announced ones as far as the
    /// unscheduled window allows, and granted ones.
    allowed: u32,
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

impl MessageIn {
    /// A message of `length` bytes whose sender may transmit `incoming` bytes without grants. All
    /// its bytes are retained.
    pub(crate) fn new(length: u32, incoming: u32) -> Self {
        let unscheduled = incoming.min(length);
        Self {
            length,
            unscheduled,
            assembly: Assembly::retaining(length),
            // The packet of an empty message needs no GRANT.
            granted: if length == 0 { extent(0) } else { unscheduled },
            allowed: unscheduled,
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
        debug_assert_eq!(self.received(), 0, "ASSEMBLY-4");
        Self { assembly: Assembly::retaining(bytes.min(self.length)), ..self }
    }

    /// Assembles the message in `memory`, which is empty. Called before the first byte has arrived.
    pub(crate) fn in_memory(self, memory: Vec<u8>) -> Self {
        debug_assert!(self.received() == 0 && memory.is_empty(), "ASSEMBLY-4");
        Self { assembly: self.assembly.in_memory(memory), ..self }
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
        self.assembly.received()
    }

    /// Positions that have not arrived.
    pub(crate) const fn missing(&self) -> u32 {
        self.extent() - self.received()
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
        self.granted.saturating_sub(self.received())
    }

    /// Bytes in flight as far as this endpoint has allowed them, which count for other messages:
    /// [`MessageIn::outstanding`] may be any number that its sender has invented.
    pub(crate) const fn held(&self) -> Allowed {
        Allowed::at_most(self.outstanding(), self.allowed.saturating_sub(self.received()))
    }

    /// Whether all bytes have arrived.
    pub(crate) const fn is_complete(&self) -> bool {
        self.received() == self.extent()
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
        let is_progress = self.progress.note(now, self.received()) || self.outstanding() == 0;
        if is_progress {
            self.note_waiting(now);
        }
        is_progress
    }

    /// Records that its sender had nothing to send until `now`, because it waits for grants.
    pub(crate) const fn note_waiting(&mut self, now: Instant) {
        self.progress.restart(now, self.received());
        self.stalled = false;
    }

    /// Marks the message as stalled, and frees memory without received bytes. Returns whether
    /// anything changed.
    pub(crate) fn stall(&mut self) -> bool {
        self.assembly.shrink();
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
        self.usage = (now, self.received(), self.held());
        held.get() >= 2 * PROGRESS_BYTES && self.received() - received < held.get() / 2
    }

    /// When it last made progress.
    pub(crate) const fn progressed(&self) -> Instant {
        self.progress.at()
    }

    /// Payload of the longest packet that has arrived, in bytes.
    pub(crate) const fn longest_packet(&self) -> u32 {
        self.longest_packet
    }

    /// Raises the limit up to which the sender may transmit (INCOMING-1, INCOMING-2), at `now`. If
    /// it had nothing to transmit, it has made no progress since then only.
    pub(crate) fn grant(&mut self, offset: u32, now: Instant) {
        let begins = self.outstanding() == 0;
        let before = self.granted;
        self.granted = before.max(offset.min(self.extent()));
        // INCOMING-3
        let more = self.granted - before;
        if more > 0 {
            self.allowed = self.allowed.max(self.received()).saturating_add(more);
        }
        if begins {
            self.note_waiting(now);
            self.usage = (now, self.received(), self.held());
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
        let reserved = (self.reservation.positions as usize).min(RESERVE_AT_ONCE);
        self.assembly.insert(offset..end, data, reserved)
    }

    /// The ranges that are missing below `limit`, in order.
    pub(crate) fn gaps(&self, limit: u32) -> impl Iterator<Item = Range<u32>> {
        self.assembly.gaps(limit)
    }

    /// The gap that ends at `offset`, if there is one.
    pub(crate) fn gap_before(&self, offset: u32) -> Option<Range<u32>> {
        self.assembly.gap_before(offset)
    }

    /// Bytes of memory that the prefix occupies.
    pub(crate) const fn memory(&self) -> usize {
        self.assembly.memory()
    }

    /// The retained bytes of the complete message.
    ///
    /// # Panics
    ///
    /// If bytes are missing.
    pub(crate) fn into_bytes(self) -> Bytes {
        assert!(self.is_complete(), "ASSEMBLY-1: bytes are missing");
        self.assembly.into_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Claim;
    use super::*;

    fn message(length: u32) -> MessageIn {
        MessageIn::new(length, length)
    }

    fn gaps(message: &MessageIn, limit: u32) -> Vec<(u32, u32)> {
        message.gaps(limit).map(|gap| (gap.start, gap.end)).collect()
    }

    /// BAD-11, INCOMING-3.
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
}
