//! The size of DATA packets to a peer, and the detection of a path that drops the long ones.
//!
//! The driver reports the longest packet of a path, as far as the system knows it. A router whose
//! next link carries less must report that, but the report may be filtered: long packets then
//! vanish, and short ones arrive (a black hole, RFC 2923 section 2.1). Losses of long packets are
//! therefore counted per round of retransmission, and after [`ROUNDS`] rounds without any long
//! packet that arrived, the peer gets packets of the smallest size that every path carries
//! (SEND-16).
//!
//! # Invariants
//!
//! - **SIZE-1** `segment` is the reported size, or the smallest one while the path is narrow.
//! - **SIZE-2** A path becomes narrow only after [`ROUNDS`] losses of long packets, each of a
//!   packet that left after the loss before it was noticed; one long packet that arrives clears the
//!   count.
//! - **SIZE-3** A narrow path is tried with long packets again: after [`RAISE_AFTER`], when the
//!   driver reports another size, and at once if short packets are lost like long ones.

use crate::limits::{DEFAULT_PACKET_BYTES, MIN_PACKET_BYTES};
use crate::time::{Instant, SEC};
use apus_wire::DATA_HEADER_LEN;

/// Payload bytes of the smallest full packet.
const SMALLEST: u32 = (MIN_PACKET_BYTES - DATA_HEADER_LEN) as u32;

/// Rounds of lost packets that decide. Chosen by us: fewer than a receiver requests before it gives
/// a message up (TIME-4), and at one loss in a hundred packets one wrong decision in a million.
const ROUNDS: u8 = 3;

/// Time after which long packets are tried again. Source: RFC 8899 section 5.1.1
/// (PMTU_RAISE_TIMER).
const RAISE_AFTER: u64 = 600 * SEC;

/// The size of packets to one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketSize {
    /// Payload bytes of a full packet.
    segment: u32,
    /// Payload bytes of a full packet according to the driver.
    reported: u32,
    /// Rounds of losses since a packet was known to have arrived.
    lost: u8,
    /// When the last of them was noticed.
    noticed: Instant,
    narrow: Option<Narrow>,
}

/// A path that carries no long packets.
#[derive(Clone, Copy, Debug)]
struct Narrow {
    since: Instant,
    /// Whether a short packet has arrived since.
    is_proved: bool,
}

/// Conclusion from a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeChange {
    /// The size is as before.
    None,
    /// Packets are short from now on.
    Narrowed,
    /// Short packets are lost as well: packets are as long as before.
    Widened,
}

impl PacketSize {
    /// The size before the driver has reported one.
    pub(crate) const fn unknown() -> Self {
        let segment = (DEFAULT_PACKET_BYTES - DATA_HEADER_LEN) as u32;
        Self { segment, reported: segment, lost: 0, noticed: Instant::ZERO, narrow: None }
    }

    /// Payload bytes of a full packet.
    #[inline(always)]
    pub(crate) const fn segment(&self) -> u32 {
        self.segment
    }

    /// Whether the path is known to carry no long packets.
    #[cfg(test)]
    pub(crate) const fn is_narrow(&self) -> bool {
        self.narrow.is_some()
    }

    /// Takes the driver's report that packets of up to `bytes` reach the peer. A change describes
    /// the path better than earlier losses do.
    pub(crate) fn report(&mut self, bytes: usize) {
        let segment = bytes.max(MIN_PACKET_BYTES) - DATA_HEADER_LEN;
        let segment = u32::try_from(segment).unwrap_or(u32::MAX);
        if segment != self.reported {
            let size = Self::unknown();
            *self = Self { segment, reported: segment, ..size };
        }
    }

    /// Records at `now` that a packet of `payload` bytes is lost, which left at `sent`.
    pub(crate) fn note_lost(&mut self, payload: u32, sent: Instant, now: Instant) -> SizeChange {
        let is_long = payload > SMALLEST;
        let counts = match self.narrow {
            None => is_long,
            Some(narrow) => !is_long && !narrow.is_proved && sent > narrow.since,
        };
        if !counts || sent < self.noticed {
            return SizeChange::None;
        }
        (self.lost, self.noticed) = (self.lost + 1, now);
        if self.lost < ROUNDS {
            return SizeChange::None;
        }
        self.lost = 0;
        if self.narrow.take().is_some() {
            self.segment = self.reported;
            return SizeChange::Widened;
        }
        self.narrow = Some(Narrow { since: now, is_proved: false });
        self.segment = SMALLEST;
        SizeChange::Narrowed
    }

    /// Records that a packet of `payload` bytes has arrived at the peer.
    #[inline(always)]
    pub(crate) fn note_arrived(&mut self, payload: u32) {
        if self.lost > 0 || self.narrow.is_some() {
            self.note_arrived_after_loss(payload);
        }
    }

    #[cold]
    fn note_arrived_after_loss(&mut self, payload: u32) {
        match &mut self.narrow {
            None if payload <= SMALLEST => {}
            None => self.lost = 0,
            Some(narrow) => {
                self.lost = 0;
                narrow.is_proved = true;
            }
        }
    }

    /// Tries long packets again if the path has been narrow for long. One lost round then suffices.
    pub(crate) fn raise_if_due(&mut self, now: Instant) {
        if self.narrow.is_some_and(|narrow| now.since(narrow.since) >= RAISE_AFTER) {
            self.narrow = None;
            self.segment = self.reported;
            self.lost = ROUNDS - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: u32 = 1_396;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    /// A packet that leaves at `millis` and is noticed to be lost a millisecond later.
    fn lose(size: &mut PacketSize, payload: u32, millis: u64) -> SizeChange {
        size.note_lost(payload, at(millis), at(millis + 1))
    }

    fn narrow() -> PacketSize {
        let mut size = PacketSize::unknown();
        for millis in [0, 10, 20] {
            lose(&mut size, LONG, millis);
        }
        assert!(size.is_narrow());
        size
    }

    /// SIZE-2.
    #[test]
    fn three_rounds_of_lost_long_packets_make_packets_short() {
        let mut size = PacketSize::unknown();
        assert_eq!(size.segment(), LONG);
        assert_eq!(lose(&mut size, LONG, 0), SizeChange::None);
        assert_eq!(lose(&mut size, LONG, 0), SizeChange::None, "left before that was noticed");
        assert_eq!(lose(&mut size, LONG, 10), SizeChange::None);
        assert_eq!(lose(&mut size, SMALLEST, 15), SizeChange::None, "short packets do not count");
        assert_eq!(lose(&mut size, LONG, 20), SizeChange::Narrowed);
        assert_eq!(size.segment(), SMALLEST, "SIZE-1");
    }

    /// SIZE-2.
    #[test]
    fn a_long_packet_that_arrives_clears_the_count() {
        let mut size = PacketSize::unknown();
        for millis in 0..10 {
            assert_eq!(lose(&mut size, LONG, 10 * millis), SizeChange::None);
            size.note_arrived(SMALLEST);
            if millis % 2 == 1 {
                size.note_arrived(LONG);
            }
        }
    }

    /// SIZE-3.
    #[test]
    fn where_short_packets_are_lost_as_well_their_length_is_not_the_cause() {
        let mut size = narrow();
        assert_eq!(lose(&mut size, SMALLEST, 0), SizeChange::None, "sent before");
        assert_eq!(lose(&mut size, SMALLEST, 30), SizeChange::None);
        assert_eq!(lose(&mut size, SMALLEST, 40), SizeChange::None);
        assert_eq!(lose(&mut size, SMALLEST, 50), SizeChange::Widened);
        assert_eq!(size.segment(), LONG);
        let mut size = narrow();
        size.note_arrived(SMALLEST);
        for millis in 3..20 {
            assert_eq!(lose(&mut size, SMALLEST, 10 * millis), SizeChange::None, "proved");
        }
    }

    /// SIZE-3.
    #[test]
    fn long_packets_are_tried_again_later_and_after_another_report() {
        let mut size = narrow();
        size.raise_if_due(at(599_000));
        assert_eq!(size.segment(), SMALLEST);
        size.raise_if_due(at(600_021));
        assert_eq!(size.segment(), LONG);
        assert_eq!(lose(&mut size, LONG, 700_000), SizeChange::Narrowed, "one round suffices");
        size.report(DEFAULT_PACKET_BYTES);
        assert!(size.is_narrow(), "nothing new");
        size.report(1_300);
        assert_eq!((size.segment(), size.is_narrow()), (1_300 - 56, false));
        size.report(100);
        assert_eq!(size.segment(), SMALLEST);
    }
}
