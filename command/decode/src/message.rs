//! Message reassembly bookkeeping: tracks the bytes of a message that a capture contains.

use std::ops::Range;

use rangemap::RangeSet;

/// One of the two messages of an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Response,
}

impl MessageKind {
    /// Returns `request` or `response`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }
}

/// A request or a response, as far as the capture contains it.
///
/// "Seen" bytes passed the point of capture. They may have been lost after it; bytes lost before it
/// are never seen.
#[derive(Clone, Debug, Default)]
pub struct CapturedMessage {
    /// Message length in bytes, from its first DATA packet.
    pub length: Option<u32>,
    /// Number and time of its first DATA packet.
    pub first: Option<(u64, i64)>,
    /// Number and time of the DATA packet that completed the message.
    pub complete: Option<(u64, i64)>,
    /// Number and time of the last RESEND for the message.
    pub last_resend: Option<(u64, i64)>,
    /// Transmission limit of the sender, as an offset: unscheduled, granted or requested by
    /// RESEND.
    pub limit: u64,
    /// Number of DATA packets, retransmissions included.
    pub packets: u64,
    /// Number of retransmitted DATA packets.
    pub retransmitted: u64,
    /// Number of GRANT packets for the message.
    pub grants: u64,
    /// Number of RESEND packets for the message.
    pub resends: u64,
    seen: RangeSet<u64>,
    seen_bytes: u64,
    highest: u64,
}

/// Effect of a range of bytes on its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeEffect {
    /// Number of bytes that earlier packets contained.
    pub repeated: u64,
    /// Number of bytes between the highest byte seen so far and this range.
    pub gap: u64,
    /// Distance from the limit to the start of the range, if it starts at or beyond the limit.
    pub beyond: Option<u64>,
    /// Whether this range completes the message for the first time.
    pub completes: bool,
}

impl CapturedMessage {
    /// Returns the number of bytes seen so far.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.seen_bytes
    }

    /// Records a range of bytes within the message.
    pub(crate) fn add(&mut self, range: Range<u64>, number: u64, time: i64) -> RangeEffect {
        if self.length == Some(0) {
            return self.add_empty(number, time);
        }
        let new: u64 = self.seen.gaps(&range).map(|gap| gap.end - gap.start).sum();
        let beyond = (range.start >= self.limit).then(|| range.start - self.limit);
        let gap = range.start.saturating_sub(self.highest);
        let repeated = range.end - range.start - new;
        self.highest = self.highest.max(range.end);
        self.seen_bytes += new;
        self.seen.insert(range);
        let whole = self.length.is_some_and(|length| u64::from(length) == self.seen_bytes);
        let completes = whole && self.complete.is_none();
        if completes {
            self.complete = Some((number, time));
        }
        RangeEffect { repeated, gap, beyond, completes }
    }

    /// Records the packet of an empty message, which completes the message and needs no grant.
    fn add_empty(&mut self, number: u64, time: i64) -> RangeEffect {
        let completes = self.complete.is_none();
        self.complete = self.complete.or(Some((number, time)));
        RangeEffect { completes, ..RangeEffect::default() }
    }

    /// Raises the sender's transmission limit to an offset. Returns the number of bytes added.
    pub(crate) fn raise_limit(&mut self, limit: u64) -> u64 {
        let limit = self.length.map_or(limit, |length| limit.min(length.into()));
        let new = limit.saturating_sub(self.limit);
        self.limit += new;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: u32) -> CapturedMessage {
        CapturedMessage { length: Some(length), limit: length.into(), ..CapturedMessage::default() }
    }

    #[test]
    fn in_order_there_are_no_gaps() {
        let mut message = message(30);
        assert_eq!(message.add(0..10, 1, 1), RangeEffect::default());
        assert_eq!(message.add(10..20, 2, 2), RangeEffect::default());
        assert_eq!(
            message.add(20..30, 3, 3),
            RangeEffect { completes: true, ..RangeEffect::default() }
        );
        assert_eq!((message.complete, message.seen()), (Some((3, 3)), 30));
    }

    #[test]
    fn gaps_and_repetitions_are_counted() {
        let mut message = message(40);
        assert_eq!(message.add(10..20, 1, 1).gap, 10);
        assert_eq!(message.add(30..40, 2, 2).gap, 10);
        let across = message.add(5..35, 3, 3);
        assert_eq!((across.repeated, across.gap, across.completes), (15, 0, false));
        assert!(message.add(0..5, 4, 4).completes);
        assert_eq!(
            message.add(0..40, 5, 5),
            RangeEffect { repeated: 40, ..RangeEffect::default() }
        );
    }

    #[test]
    fn an_empty_message_is_complete_with_its_first_packet() {
        let mut message = message(0);
        let completes = RangeEffect { completes: true, ..RangeEffect::default() };
        assert_eq!(message.add(0..0, 1, 1), completes);
        assert_eq!(message.add(0..0, 2, 2), RangeEffect::default());
        assert_eq!((message.complete, message.seen()), (Some((1, 1)), 0));
    }

    #[test]
    fn bytes_beyond_the_limit_are_flagged() {
        let mut message = CapturedMessage { length: Some(40), ..CapturedMessage::default() };
        assert_eq!(message.raise_limit(20), 20);
        assert_eq!(message.add(0..10, 1, 1).beyond, None);
        assert_eq!(message.add(20..30, 1, 1).beyond, Some(0));
        assert_eq!(message.raise_limit(99), 20, "the message's end is the limit");
        assert_eq!(message.raise_limit(30), 0);
    }
}
