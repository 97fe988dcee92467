//! Congestion marks: limits for senders whose packets meet congested links inside the fabric.
//!
//! A receiver sees its own link, and the backlogs that senders report. A congested link between
//! switches shows only by marks (ECN, RFC 3168) on scheduled packets. Each sender whose packets
//! were marked has a limit of granted bytes in flight, which follows the marked share as the window
//! of DCTCP does (SIGCOMM 2010, section 3.3). Without marks there is no limit. Source: SIRD (NSDI
//! 2025), whose credit per sender has this second loop; docs/networks.md.
//!
//! # Invariants
//!
//! - **MARKS-1** The bytes in flight of a sender are the sum of `on_way` of its incoming messages.
//! - **MARKS-2** A limit is never less than `marked_incoming`, nor than a step of a sixth of the
//!   most that a sender may have.

use super::in_flight::STEPS;
use crate::allowed::Allowed;
use crate::config::Config;
use crate::message::MessageIn;
use crate::peer::PeerId;
use slotmap::SecondaryMap;

/// The limits of all senders (GRANT-18).
#[derive(Debug)]
pub(super) struct Marks {
    /// `marked_incoming`; 0 if marks are ignored.
    least: u32,
    /// Most bytes in flight of a sender without marks.
    most: u32,
    senders: SecondaryMap<PeerId, Sender>,
}

/// The state of a sender.
#[derive(Clone, Copy, Debug, Default)]
struct Sender {
    on_way: u64,
    limit: Option<Limit>,
}

/// The limit of a sender whose packets were marked.
#[derive(Clone, Copy, Debug)]
struct Limit {
    bytes: u32,
    /// Estimate of the marked share, in parts of [`WHOLE`].
    share: u32,
    /// Scheduled bytes that have arrived since the last update, and the marked part of them.
    arrived: u32,
    marked: u32,
}

/// All packets marked. Chosen by us: fine enough for a gain of a sixteenth.
const WHOLE: u32 = 1 << 16;
/// Weight of the newest share: one part in this number (DCTCP, section 3.4).
const GAIN: u32 = 16;
/// Bytes by which a limit grows after a window without marks. Chosen by us: a packet of Ethernet,
/// as TCP's windows grow.
const GROWTH: u32 = 1_500;

impl Limit {
    /// The limit of a sender that may have `most` bytes in flight, when its first packet is marked.
    const fn first(most: u32) -> Self {
        Self { bytes: most, share: WHOLE, arrived: 0, marked: 0 }
    }

    /// Counts a packet of `bytes` scheduled bytes. The first marked one lowers the limit at once,
    /// to no less than `least`; a window without marks raises it.
    fn count(&mut self, bytes: u32, is_marked: bool, least: u32) {
        if is_marked {
            if self.marked == 0 {
                let cut = u64::from(self.bytes) * u64::from(self.share) / u64::from(2 * WHOLE);
                self.bytes = (self.bytes - cut as u32).max(least);
            }
            self.marked = self.marked.saturating_add(bytes);
        }
        self.arrived = self.arrived.saturating_add(bytes);
        if self.arrived < self.bytes {
            return;
        }
        let share = u64::from(self.marked) * u64::from(WHOLE) / u64::from(self.arrived.max(1));
        self.share = self.share - self.share / GAIN + share as u32 / GAIN;
        if self.marked == 0 {
            self.bytes = self.bytes.saturating_add(GROWTH);
        }
        (self.arrived, self.marked) = (0, 0);
    }
}

impl Marks {
    pub(super) fn new(config: &Config) -> Self {
        let least = u32::try_from(config.marked_incoming()).unwrap_or(u32::MAX);
        let senders = SecondaryMap::new();
        Self { least, most: 0, senders }
    }

    /// Sets the most bytes in flight of a sender without marks.
    pub(super) fn set_most(&mut self, bytes: u64) {
        self.most = u32::try_from(bytes).unwrap_or(u32::MAX);
    }

    /// Whether marks are used.
    pub(super) const fn is_on(&self) -> bool {
        self.least > 0
    }

    /// Smallest limit of a sender (MARKS-2).
    fn floor(&self) -> u32 {
        self.least.max(self.most.div_ceil(STEPS as u32)).max(1)
    }

    /// Counts a packet from `peer` with `bytes` scheduled bytes. Returns whether the limit of
    /// `peer` has risen.
    pub(super) fn arrived(&mut self, peer: PeerId, bytes: u32, is_marked: bool) -> bool {
        let (floor, most) = (self.floor(), self.most);
        // Without `marked_incoming` no senders are stored.
        let Some(sender) = self.senders.get_mut(peer) else { return false };
        if is_marked && sender.limit.is_none() {
            sender.limit = Some(Limit::first(most));
        }
        let Some(limit) = &mut sender.limit else { return false };
        let before = limit.bytes;
        limit.count(bytes, is_marked, floor);
        let is_higher = limit.bytes > before;
        // The marked share is dropped with the limit: it is out of date.
        if limit.bytes > most {
            sender.limit = None;
        }
        is_higher
    }

    /// Replaces the bytes in flight of a message of `peer`, `old`, by `new`. Returns whether room
    /// was freed.
    pub(super) fn change(&mut self, peer: PeerId, old: Allowed, new: Allowed) -> bool {
        if old == new || !self.is_on() {
            return false;
        }
        let Some(entry) = self.senders.entry(peer) else { return false };
        let sender = entry.or_default();
        debug_assert!(sender.on_way >= old.term(), "MARKS-1");
        sender.on_way = sender.on_way - old.term() + new.term();
        new < old && sender.limit.is_some()
    }

    /// The limit of `peer`, if it has one.
    pub(super) fn limit(&self, peer: PeerId) -> Option<u32> {
        self.senders.get(peer)?.limit.map(|limit| limit.bytes)
    }

    /// Bytes that may be granted to messages of `peer`; `None` without a limit.
    pub(super) fn room(&self, peer: PeerId) -> Option<u32> {
        let sender = self.senders.get(peer)?;
        let room = u64::from(sender.limit?.bytes).saturating_sub(sender.on_way);
        Some(u32::try_from(room).unwrap_or(u32::MAX))
    }

    /// The bytes in flight of a message: granted and not received, without those that wait at its
    /// sender.
    pub(super) fn on_way(&self, message: &MessageIn, waiting: Option<Allowed>) -> Allowed {
        let held = message.held();
        let waiting = waiting.map_or(0, Allowed::get);
        let bound = if self.is_on() { held.get() } else { 0 };
        Allowed::at_most(held.get().saturating_sub(waiting), bound)
    }
}

#[cfg(test)]
mod tests {
    use super::super::by_host::tests::bytes;
    use super::*;
    use slotmap::SlotMap;

    fn limits() -> (Marks, PeerId) {
        let config = Config::builder().marked_incoming(1_500).build().unwrap();
        let mut marks = Marks::new(&config);
        marks.set_most(18_000);
        (marks, SlotMap::with_key().insert(()))
    }

    /// Packets of 1,500 bytes arrive; returns the room for bytes in flight afterwards.
    fn arrive(marks: &mut Marks, peer: PeerId, packets: u32, are_marked: bool) -> Option<u32> {
        for _ in 0..packets {
            marks.arrived(peer, 1_500, are_marked);
        }
        marks.room(peer)
    }

    /// SIGCOMM 2010, section 3.3: once a window, by half of the estimated share.
    #[test]
    fn a_limit_follows_the_marked_share() {
        let (mut marks, peer) = limits();
        marks.change(peer, bytes(0), bytes(1_500));
        marks.change(peer, bytes(1_500), bytes(0));
        assert_eq!(arrive(&mut marks, peer, 100, false), None, "no limit without marks");
        assert_eq!(arrive(&mut marks, peer, 1, true), Some(9_000));
        assert_eq!(arrive(&mut marks, peer, 4, true), Some(9_000), "once a window");
        assert_eq!(arrive(&mut marks, peer, 1, true), Some(9_000), "the window's end");
        assert_eq!(arrive(&mut marks, peer, 1, true), Some(4_500));
        assert_eq!(arrive(&mut marks, peer, 100, true), Some(3_000), "MARKS-2");
        assert_eq!(arrive(&mut marks, peer, 4, false), Some(4_500), "a window without marks");
        assert_eq!(arrive(&mut marks, peer, 1_000, false), None, "the limit is over");
    }

    /// A few marks lower a limit by little, once they have been few for a while.
    #[test]
    fn few_marks_lower_a_limit_by_little() {
        let mut limit = Limit::first(18_000);
        for packet in 0..3_000 {
            limit.count(1_500, packet % 30 == 0, 3_000);
        }
        let before = limit.bytes;
        while limit.marked == 0 {
            limit.count(1_500, true, 3_000);
        }
        assert!(limit.bytes < before && limit.bytes > before - before / 8, "{before}, {limit:?}");
    }

    /// MARKS-1.
    #[test]
    fn what_is_on_the_way_takes_room() {
        let (mut marks, peer) = limits();
        assert!(!marks.change(peer, bytes(0), bytes(6_000)), "less room");
        assert_eq!(arrive(&mut marks, peer, 1, true), Some(3_000));
        assert!(!marks.change(peer, bytes(0), bytes(6_000)));
        assert_eq!(marks.room(peer), Some(0));
        assert!(marks.change(peer, bytes(6_000), bytes(1_000)), "more room");
        assert_eq!(marks.room(peer), Some(2_000));
    }

    #[test]
    fn without_the_setting_nothing_is_kept() {
        let mut marks = Marks::new(&Config::default());
        let peer = SlotMap::with_key().insert(());
        marks.change(peer, bytes(0), bytes(6_000));
        assert!(
            !marks.arrived(peer, 1_500, true)
                && marks.room(peer).is_none()
                && marks.senders.is_empty()
        );
    }
}
