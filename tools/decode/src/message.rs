//! What has been seen of a message?

use std::ops::Range;

use rangemap::RangeSet;

/// Which message of an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// From the client to the server.
    Request,
    /// From the server to the client.
    Response,
}

impl Half {
    /// `request` or `response`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Response => "response",
        }
    }
}

/// A request or a response as the capture shows it. "Seen" is what passed the place of the capture: packets may
/// be lost behind it, and may have been lost before it.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// Its bytes, as its first packet says.
    pub length: Option<u32>,
    /// Number and time of the first packet.
    pub first: Option<(u64, i64)>,
    /// The same of the packet with which all bytes had been seen.
    pub complete: Option<(u64, i64)>,
    /// The same of the last RESEND that asks for bytes of it.
    pub asked: Option<(u64, i64)>,
    /// How far its sender may transmit: unscheduled, granted, or asked for.
    pub limit: u64,
    /// DATA packets of it, and how many of them were retransmissions.
    pub packets: u64,
    /// Retransmissions among them.
    pub retransmitted: u64,
    /// Grants to it.
    pub grants: u64,
    /// RESENDs that ask for bytes of it.
    pub resends: u64,
    seen: RangeSet<u64>,
    seen_bytes: u64,
    highest: u64,
}

/// What a stretch of bytes means for its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Bytes that had been seen before.
    pub repeated: u64,
    /// Bytes between the highest one seen so far and this stretch.
    pub gap: u64,
    /// How far behind the limit it begins, and one more; 0 if it may be sent.
    pub beyond: Option<u64>,
    /// Whether all bytes have been seen now, for the first time.
    pub completes: bool,
}

impl Message {
    /// Bytes that have been seen of it.
    #[must_use]
    pub const fn seen(&self) -> u64 {
        self.seen_bytes
    }

    /// Takes bytes into account that lie inside of the message.
    pub(crate) fn add(&mut self, stretch: Range<u64>, number: u64, time: i64) -> Stretch {
        let new: u64 = self.seen.gaps(&stretch).map(|gap| gap.end - gap.start).sum();
        let beyond = (stretch.start >= self.limit).then(|| stretch.start - self.limit);
        let gap = stretch.start.saturating_sub(self.highest);
        let repeated = stretch.end - stretch.start - new;
        self.highest = self.highest.max(stretch.end);
        self.seen_bytes += new;
        self.seen.insert(stretch);
        let whole = self.length.is_some_and(|length| u64::from(length) == self.seen_bytes);
        let completes = whole && self.complete.is_none();
        if completes {
            self.complete = Some((number, time));
        }
        Stretch { repeated, gap, beyond, completes }
    }

    /// Its sender may transmit so far; says how many bytes that adds.
    pub(crate) fn allow(&mut self, limit: u64) -> u64 {
        let limit = self.length.map_or(limit, |length| limit.min(length.into()));
        let new = limit.saturating_sub(self.limit);
        self.limit += new;
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(length: u32) -> Message {
        Message { length: Some(length), limit: length.into(), ..Message::default() }
    }

    #[test]
    fn in_order_there_are_no_gaps() {
        let mut message = message(30);
        assert_eq!(message.add(0..10, 1, 1), Stretch::default());
        assert_eq!(message.add(10..20, 2, 2), Stretch::default());
        assert_eq!(message.add(20..30, 3, 3), Stretch { completes: true, ..Stretch::default() });
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
        assert_eq!(message.add(0..40, 5, 5), Stretch { repeated: 40, ..Stretch::default() });
    }

    #[test]
    fn what_nothing_allows_is_seen() {
        let mut message = Message { length: Some(40), ..Message::default() };
        assert_eq!(message.allow(20), 20);
        assert_eq!(message.add(0..10, 1, 1).beyond, None);
        assert_eq!(message.add(20..30, 1, 1).beyond, Some(0));
        assert_eq!(message.allow(99), 20, "the message's end is the limit");
        assert_eq!(message.allow(30), 0);
    }
}
