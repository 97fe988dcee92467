//! An outgoing message: which bytes have left, and which may leave.
//!
//! ```text
//!   0            unscheduled                sent            granted            length
//!   |---S---|---S---|-s-|---S---|---S---|---S---|···S···|···S···|               |
//!                       ^ a packet ends exactly at the unscheduled limit
//! ```
//!
//! A message is cut into packets of `segment` bytes (S). A boundary is forced at the unscheduled
//! limit; apart from that and the message's end all packets are equal, so that bursts can leave in
//! one system call and retransmissions have the boundaries of the first transmission
//! (HM `homa_outgoing.c` `homa_resend_data`; Rules for peers, item 14).
//!
//! Offsets are positions: an empty message has one ([`extent`]).
//!
//! # Invariants
//!
//! - **OUTGOING-1** `sent`, `granted` and `unscheduled` are at most the extent; none of them
//!   decreases, unless the message starts over.
//! - **OUTGOING-2** A packet of the first transmission starts below `granted` (HM `homa_outgoing.c`
//!   `homa_xmit_data`).
//! - **OUTGOING-3** Only bytes below `sent` are retransmitted (HM `homa_outgoing.c`
//!   `homa_resend_data`).
//! - **OUTGOING-4** An empty message is unscheduled: its one packet may leave at once.

use super::Payload;
use super::retransmission::Retransmission;
use crate::extent::extent;
use crate::quota::Progress;
use crate::time::Instant;
use std::ops::Range;

/// An outgoing message.
#[derive(Debug)]
pub(crate) struct MessageOut {
    payload: Payload,
    /// Bytes that may leave without a GRANT. Constant, because `incoming` announces it (PRIO-2).
    unscheduled: u32,
    /// Offset just past the last byte that may leave. A packet that starts below it leaves whole.
    granted: u32,
    /// Offset just past the last byte that has left for the first time.
    sent: u32,
    /// Payload bytes of a full packet.
    segment: u32,
    /// Whether `segment` has changed since the first packet left, so that retransmissions cannot
    /// keep the old boundaries.
    reshaped: bool,
    /// Level for scheduled packets, from the newest GRANT (PRIO-4).
    pub(crate) scheduled_priority: u8,
    /// Bytes to be sent again. Boxed, because few messages need it.
    retransmission: Option<Box<Retransmission>>,
    /// When bytes left for the first time, last.
    new_sent: Instant,
    /// How far its receiver has shown to be.
    progress: Progress,
    /// When the first packet left; only meaningful after one has.
    pub(crate) first_sent: Instant,
    /// When a packet left last.
    pub(crate) last_sent: Instant,
    /// Whether any packet left twice: round-trip times cannot be read from this message.
    pub(crate) resent: bool,
    /// Whether a GRANT has arrived.
    pub(crate) grant_seen: bool,
    /// Whether the newest GRANT states that the receiver accepts DATA from other ports (WIRE-36).
    pub(crate) is_sprayable: bool,
}

/// Packets of equal size (the last may be shorter) that leave together. The single packet of an
/// empty message has no bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    /// The message's bytes in them.
    pub(crate) range: Range<u32>,
    /// Payload bytes of each packet but the last.
    pub(crate) segment: u32,
}

impl Cut {
    /// Number of packets.
    pub(crate) const fn packets(&self) -> u32 {
        let bytes = self.bytes();
        if bytes <= self.segment { 1 } else { bytes.div_ceil(self.segment) }
    }

    /// Number of payload bytes.
    pub(crate) const fn bytes(&self) -> u32 {
        self.range.end - self.range.start
    }
}

impl MessageOut {
    /// A message to be sent in packets of `segment` bytes, the first `unscheduled` bytes at once.
    #[inline(always)]
    pub(crate) fn new(payload: Payload, unscheduled: u32, segment: u32) -> Self {
        debug_assert!(segment > 0);
        let unscheduled = if payload.is_empty() {
            extent(0) // OUTGOING-4
        } else {
            unscheduled.min(payload.len() as u32)
        };
        Self {
            payload,
            unscheduled,
            granted: unscheduled,
            sent: 0,
            segment,
            reshaped: false,
            scheduled_priority: 0,
            retransmission: None,
            new_sent: Instant::ZERO,
            progress: Progress::starting(Instant::ZERO),
            first_sent: Instant::ZERO,
            last_sent: Instant::ZERO,
            resent: false,
            grant_seen: false,
            is_sprayable: false,
        }
    }

    pub(crate) const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Total bytes.
    pub(crate) const fn length(&self) -> u32 {
        self.payload.len() as u32
    }

    /// Positions that the message occupies.
    pub(crate) const fn extent(&self) -> u32 {
        extent(self.length())
    }

    /// Positions that leave without a GRANT.
    pub(crate) const fn unscheduled(&self) -> u32 {
        self.unscheduled
    }

    /// Bytes that leave without a GRANT: what `incoming` announces.
    pub(crate) const fn announced(&self) -> u32 {
        if self.payload.is_empty() { 0 } else { self.unscheduled }
    }

    /// Unscheduled bytes that the peer may not have read: before its first GRANT, all of them.
    pub(crate) const fn unread(&self) -> u32 {
        if self.grant_seen { 0 } else { self.unscheduled }
    }

    /// Offset just past the last byte that may leave.
    pub(crate) const fn granted(&self) -> u32 {
        self.granted
    }

    /// Offset just past the last byte that has left.
    pub(crate) const fn sent(&self) -> u32 {
        self.sent
    }

    /// Bytes that have never left; the message's rank in SRPT order.
    pub(crate) const fn remaining(&self) -> u32 {
        self.extent() - self.sent
    }

    /// Positions that may leave and have not.
    pub(crate) const fn waiting(&self) -> u32 {
        self.granted.saturating_sub(self.sent)
    }

    /// Whether all bytes have left at least once.
    pub(crate) const fn is_sent(&self) -> bool {
        self.sent == self.extent()
    }

    /// Whether a packet may leave for the first time.
    pub(crate) const fn is_sendable(&self) -> bool {
        self.sent < self.granted
    }

    /// Whether bytes wait to be sent again.
    pub(crate) fn has_resend(&self) -> bool {
        self.retransmission.as_ref().is_some_and(|again| again.first().is_some())
    }

    /// The level that the last RESEND requested.
    pub(crate) fn resend_priority(&self) -> u8 {
        self.retransmission.as_ref().map_or(0, |again| again.priority)
    }

    /// Bytes that were never sent, and bytes waiting to be sent again.
    pub(crate) fn left(&self) -> u32 {
        let again = self.retransmission.as_ref().map_or(0, |again| again.bytes());
        self.remaining().saturating_add(again)
    }

    /// Raises the limit up to which bytes may leave (OUTGOING-1).
    pub(crate) fn grant(&mut self, offset: u32) {
        self.granted = self.granted.max(offset.min(self.extent()));
    }

    /// Records that its receiver has granted it bytes, or requested some, at `now`: those that it
    /// had neither granted nor requested before are progress.
    pub(crate) fn note_progress(&mut self, now: Instant) {
        let asked = self.retransmission.as_ref().map_or(0, |again| again.asked());
        let _ = self.progress.note(now, self.granted.saturating_add(asked));
    }

    /// Since when it has stood still, except for bytes that were sent again.
    pub(crate) fn standing_since(&self) -> Instant {
        self.progress.at().max(self.new_sent)
    }

    /// Changes the size of packets that have not left yet.
    #[inline(always)]
    pub(crate) fn set_segment(&mut self, segment: u32) {
        if segment != self.segment {
            self.reshape(segment);
        }
    }

    #[cold]
    fn reshape(&mut self, segment: u32) {
        self.segment = segment;
        self.reshaped |= self.sent > 0;
    }

    /// Sends the message again as if none of it had left: its receiver has kept nothing (AMO-1).
    pub(crate) fn start_over(&mut self) {
        self.sent = 0;
        self.granted = self.unscheduled;
        self.reshaped = false;
        self.retransmission = None;
        (self.new_sent, self.first_sent) = (Instant::ZERO, Instant::ZERO);
        self.resent = false;
    }

    /// Sends all of the message in one packet of up to `segment` bytes, if none of it has left and
    /// all of it may. Returns its length.
    #[inline(always)]
    pub(crate) fn send_whole(&mut self, segment: u32) -> Option<u32> {
        let extent = self.extent();
        if self.sent > 0 || self.granted < extent || self.unscheduled < extent || extent > segment {
            return None;
        }
        (self.segment, self.sent) = (segment, extent);
        Some(self.length())
    }

    /// SEND-6: the next packets of the first transmission: at least one, and only packets that
    /// start within `max_bytes`. `None` if no packet may leave.
    pub(crate) fn next_cut(&mut self, max_bytes: u32, max_packets: u32) -> Option<Cut> {
        if !self.is_sendable() {
            return None;
        }
        let start = self.sent;
        // All packets that start below `granted` (OUTGOING-2), as far as the caller has room. Most
        // messages fit into one packet: they need no division.
        let allowed = self.granted - start;
        let packets = if allowed <= self.segment {
            1
        } else {
            let room = (max_bytes / self.segment).max(1);
            allowed.div_ceil(self.segment).min(room).min(max_packets)
        };
        let end = start.saturating_add(packets * self.segment).min(self.zone_end(start));
        self.sent = end;
        Some(self.cut(start..end))
    }

    /// SEND-7: marks `range` to be sent again, in the packets of the first transmission that touch
    /// it. Excluded are bytes that were never sent (OUTGOING-3), bytes sent at an instant for which
    /// `on_its_way` holds, and all but the first packets of bytes that were sent again and do not
    /// arrive (TIME-17). Returns whether any wait to be sent again.
    ///
    /// A receiver asks when a message has been silent, so the time of the last new bytes applies to
    /// all of them.
    pub(crate) fn request_resend(
        &mut self,
        range: Range<u32>,
        priority: u8,
        on_its_way: impl Fn(Instant) -> bool,
    ) -> bool {
        let end = range.end.min(self.sent);
        if range.start >= end || on_its_way(self.new_sent) {
            return false;
        }
        let whole = if self.reshaped {
            range.start..end
        } else {
            self.packet_at(range.start).start..self.packet_at(end - 1).end
        };
        let mut again = self.retransmission.take().unwrap_or_default();
        // After a change of size, retransmissions have only the packets that they are cut into.
        let packet_end = |offset: u64| {
            if self.reshaped {
                offset + u64::from(self.segment)
            } else {
                u64::from(self.packet_at(offset as u32).end)
            }
        };
        let any_lost = again.add(whole, on_its_way, packet_end);
        if any_lost {
            again.priority = priority;
        }
        self.retransmission = Some(again);
        any_lost
    }

    /// Records that the packets of `cut` leave at `now`.
    #[inline(always)]
    pub(crate) fn note_sent(&mut self, cut: &Cut, now: Instant, retransmit: bool) {
        if self.first_sent == Instant::ZERO {
            self.first_sent = now;
        }
        self.last_sent = now;
        if !retransmit {
            self.new_sent = now;
        } else if let Some(again) = &mut self.retransmission {
            self.resent = true;
            let positions = if self.payload.is_empty() { 0..extent(0) } else { cut.range.clone() };
            again.note_sent(&positions, now);
        }
    }

    /// The next packets to be sent again, bounded like [`MessageOut::next_cut`].
    pub(crate) fn next_resend(&mut self, max_bytes: u32, max_packets: u32) -> Option<Cut> {
        let range = self.retransmission.as_ref()?.first()?;
        let start = range.start;
        let packets = (max_bytes / self.segment).clamp(1, max_packets);
        let end =
            start.saturating_add(packets * self.segment).min(range.end).min(self.zone_end(start));
        if let Some(again) = &mut self.retransmission {
            again.take_below(end);
        }
        Some(self.cut(start..end))
    }

    /// The packets that hold these positions.
    fn cut(&self, positions: Range<u32>) -> Cut {
        let end = positions.end.min(self.length());
        Cut { range: positions.start..end, segment: self.segment }
    }

    /// End of the sequence of equal packets that contains `offset`.
    const fn zone_end(&self, offset: u32) -> u32 {
        if offset < self.unscheduled { self.unscheduled } else { self.extent() }
    }

    /// Payload bytes of the packet that holds byte `offset`; `None` if it has not left, or packets
    /// of several sizes may hold it. A byte that was requested is in the packet of its
    /// retransmission.
    pub(crate) fn packet_bytes(&self, offset: u32) -> Option<u32> {
        if offset >= self.sent {
            return None;
        }
        if self.reshaped {
            let again = self.retransmission.as_ref()?;
            return again.was_asked(offset).then_some(self.segment);
        }
        let packet = self.packet_at(offset);
        Some(packet.end - packet.start)
    }

    /// Payload bytes of the longest packet of the message; all have left.
    #[inline(always)]
    pub(crate) const fn longest_packet(&self) -> u32 {
        let (first, second) = (self.unscheduled, self.extent() - self.unscheduled);
        let zone = if first > second { first } else { second };
        if zone < self.segment { zone } else { self.segment }
    }

    /// The packet of the first transmission that held byte `offset`.
    fn packet_at(&self, offset: u32) -> Range<u32> {
        let zone_start = if offset < self.unscheduled { 0 } else { self.unscheduled };
        let start = offset - (offset - zone_start) % self.segment;
        start..(start.saturating_add(self.segment)).min(self.zone_end(offset)).min(self.sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(length: usize, unscheduled: u32, segment: u32) -> MessageOut {
        MessageOut::new(vec![0; length].into(), unscheduled, segment)
    }

    fn cut(range: Range<u32>, segment: u32) -> Option<Cut> {
        Some(Cut { range, segment })
    }

    /// HM `homa_outgoing.c` `homa_message_out_fill`: a boundary at the unscheduled limit, so that
    /// it is not overrun.
    #[test]
    fn a_packet_ends_exactly_at_the_unscheduled_limit() {
        let mut message = message(10_000, 2_500, 1_000);
        assert_eq!(message.next_cut(60_000, 64), cut(0..2_500, 1_000));
        assert_eq!(message.next_cut(60_000, 64), None);
        message.grant(4_000);
        assert_eq!(message.next_cut(60_000, 64), cut(2_500..4_500, 1_000));
    }

    #[test]
    fn a_message_that_starts_over_leaves_like_a_new_one() {
        let mut message = message(10_000, 2_500, 1_000);
        let first = message.next_cut(60_000, 64);
        message.grant(4_000);
        message.next_cut(60_000, 64);
        message.request_resend(0..1, 7, |_| false);
        message.start_over();
        assert!(!message.has_resend() && message.remaining() == 10_000);
        assert_eq!(message.next_cut(60_000, 64), first);
        assert_eq!(message.next_cut(60_000, 64), None, "its GRANTs come again");
    }

    /// HM `homa_outgoing.c` `homa_xmit_data`: a packet that starts below the grant limit is sent
    /// whole.
    #[test]
    fn a_packet_that_starts_below_the_limit_leaves_whole() {
        let mut message = message(10_000, 1_000, 1_000);
        message.next_cut(60_000, 64);
        message.grant(1_001);
        assert_eq!(message.next_cut(60_000, 64), cut(1_000..2_000, 1_000));
        assert!(!message.is_sendable());
    }

    /// OUTGOING-4, WIRE-30.
    #[test]
    fn an_empty_message_is_one_packet_that_leaves_once() {
        let mut message = message(0, 0, 1_000);
        assert_eq!((message.length(), message.extent(), message.announced()), (0, 1, 0));
        assert!(!message.is_sent() && message.is_sendable());
        assert_eq!((message.remaining(), message.left(), message.unread()), (1, 1, 1));
        let first = message.next_cut(60_000, 64);
        assert_eq!(first, cut(0..0, 1_000));
        assert_eq!(first.map(|cut| (cut.packets(), cut.bytes())), Some((1, 0)));
        assert!(message.is_sent() && !message.is_sendable());
        assert_eq!((message.remaining(), message.left()), (0, 0));
        assert_eq!(message.next_cut(60_000, 64), None);
        message.grant(u32::MAX);
        assert_eq!((message.granted(), message.next_cut(60_000, 64)), (1, None));
    }

    /// TIME-7: the packet of an empty message is lost and sent again like any other.
    #[test]
    fn an_empty_message_is_sent_again() {
        let at = Instant::from_nanos;
        let mut message = message(0, 0, 1_000);
        assert!(!message.request_resend(0..1, 7, |_| false), "it has never left");
        let first = message.next_cut(60_000, 64).unwrap();
        message.note_sent(&first, at(100), false);
        assert!(!message.request_resend(0..1, 7, |sent| sent >= at(100)), "just sent");
        for (now, since) in [(200, 150), (300, 250)] {
            let since = |sent| sent >= at(since);
            assert!(message.request_resend(0..1, 7, since));
            assert_eq!((message.left(), message.resend_priority()), (1, 7));
            let again = message.next_resend(60_000, 64).unwrap();
            assert_eq!(again, first);
            message.note_sent(&again, at(now), true);
            assert!(!message.has_resend());
            assert!(!message.request_resend(0..1, 7, since), "sent again a moment ago");
        }
        assert!(message.resent);
    }

    #[test]
    fn bursts_are_bounded_but_never_empty() {
        let mut message = message(10_000, 10_000, 1_000);
        assert_eq!(message.next_cut(2_999, 64), cut(0..2_000, 1_000));
        assert_eq!(message.next_cut(1, 64), cut(2_000..3_000, 1_000));
        assert_eq!(message.next_cut(60_000, 2), cut(3_000..5_000, 1_000));
        assert_eq!(message.next_cut(60_000, 64), cut(5_000..10_000, 1_000));
        assert!(message.is_sent());
    }

    /// HM `homa_outgoing.c` `homa_resend_data`: whole original packets, and never bytes that have
    /// not left.
    #[test]
    fn whole_packets_are_sent_again() {
        let mut message = message(10_000, 2_500, 1_000);
        message.grant(4_500);
        while message.next_cut(60_000, 64).is_some() {}
        assert_eq!(message.sent(), 4_500);
        assert!(message.request_resend(2_400..2_600, 7, |_| false));
        assert_eq!(message.next_resend(60_000, 64), cut(2_000..2_500, 1_000));
        assert_eq!(message.next_resend(60_000, 64), cut(2_500..3_500, 1_000));
        assert_eq!(message.next_resend(60_000, 64), None);
        assert!(!message.request_resend(4_600..9_000, 7, |_| false));
        assert!(!message.has_resend(), "never left");
    }

    #[test]
    fn after_a_change_of_size_exactly_the_range_is_sent_again() {
        let mut message = message(10_000, 10_000, 1_000);
        message.next_cut(3_000, 64);
        message.set_segment(700);
        assert_eq!(message.next_cut(1_400, 64), cut(3_000..4_400, 700));
        message.request_resend(900..1_900, 7, |_| false);
        assert_eq!(message.next_resend(60_000, 64), cut(900..1_900, 700));
    }

    #[test]
    fn the_same_range_asked_for_twice_is_sent_once() {
        let mut message = message(10_000, 10_000, 1_000);
        message.next_cut(60_000, 64);
        for _ in 0..5 {
            message.request_resend(0..1_000, 7, |_| false);
        }
        assert_eq!(message.next_resend(60_000, 64), cut(0..1_000, 1_000));
        assert!(!message.has_resend());
    }

    /// TIME-7: RESENDs of one burst for several gaps arrive one by one, and each gap is sent again
    /// once.
    #[test]
    fn what_was_sent_again_is_on_its_way_and_the_rest_is_not() {
        let at = Instant::from_nanos;
        let mut message = message(10_000, 10_000, 1_000);
        let first = message.next_cut(60_000, 64).unwrap();
        message.note_sent(&first, at(100), false);
        assert!(!message.request_resend(0..1_000, 7, |sent| sent >= at(100)), "just sent");
        let since = |sent| sent >= at(150);
        assert!(message.request_resend(3_000..4_000, 7, since));
        let resent = message.next_resend(60_000, 64).unwrap();
        message.note_sent(&resent, at(200), true);
        assert!(!message.request_resend(3_000..4_000, 7, since), "sent again a moment ago");
        assert!(message.request_resend(2_500..4_500, 7, since), "the packets around it");
        assert_eq!(message.next_resend(60_000, 64), cut(2_000..3_000, 1_000));
        assert_eq!(message.next_resend(60_000, 64), cut(4_000..5_000, 1_000));
        assert_eq!(message.next_resend(60_000, 64), None);
        assert!(message.request_resend(3_000..4_000, 7, |_| false), "long ago");
    }

    proptest! {
        /// For any grants in any steps: every byte leaves once, in order, and each packet
        /// starts below the limit in force.
        #[test]
        fn every_byte_leaves_once(
            length in prop_oneof![1 => Just(0usize), 9 => 1usize..20_000],
            unscheduled in 0u32..20_000,
            segment in 1u32..3_000,
            grants in proptest::collection::vec((0u32..25_000, 1u32..9_000), 0..20),
        ) {
            let mut message = message(length, unscheduled, segment);
            let (mut at, mut packets) = (0, 0);
            for (offset, max_bytes) in grants.into_iter().chain([(u32::MAX, u32::MAX)]) {
                message.grant(offset);
                while let Some(cut) = message.next_cut(max_bytes, 64) {
                    prop_assert_eq!(cut.range.start, at);
                    let last_start = cut.range.start + (cut.packets() - 1) * cut.segment;
                    prop_assert!(last_start < message.granted(), "OUTGOING-2");
                    prop_assert!(cut.packets() == 1 || cut.bytes() <= max_bytes);
                    let crosses = cut.range.start < message.unscheduled()
                        && cut.range.end > message.unscheduled();
                    prop_assert!(!crosses, "a packet overruns the unscheduled limit");
                    at = cut.range.end;
                    packets += cut.packets();
                }
            }
            prop_assert_eq!(at as usize, length);
            prop_assert!(message.is_sent() && packets > 0);
        }

        /// The packets of retransmissions are packets of the first transmission.
        #[test]
        fn boundaries_are_those_of_the_first_transmission(
            length in prop_oneof![1 => Just(0usize), 9 => 1usize..9_000],
            unscheduled in 0u32..9_000,
            segment in 1u32..1_500,
            ranges in proptest::collection::vec((0u32..9_000, 1u32..3_000), 1..8),
        ) {
            let mut message = message(length, unscheduled, segment);
            message.grant(u32::MAX);
            let mut starts = std::collections::BTreeMap::new();
            while let Some(cut) = message.next_cut(segment, 1) {
                starts.insert(cut.range.start, cut.range.end);
            }
            for (start, len) in ranges {
                message.request_resend(start..start + len, 7, |_| false);
            }
            while let Some(cut) = message.next_resend(segment, 1) {
                prop_assert_eq!(starts.get(&cut.range.start), Some(&cut.range.end));
            }
        }
    }
}
