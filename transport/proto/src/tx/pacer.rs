//! The pacer: whether a long message may transmit now.
//!
//! Packets in the network interface's queue can no longer be reordered. The pacer estimates when
//! the link will be idle, and holds messages back while the queue is longer than a few
//! microseconds, so that SRPT decisions are made here (HM `homa_qdisc.c` `homa_qdisc_enqueue`,
//! `homa_pacer.c` `homa_pacer_check_nic_q`, SEND-4).

use super::reservation::Reservation;
use crate::config::Config;
use crate::time::{Instant, USEC};
use apus_wire::{DATA_HEADER_LEN, WIRE_OVERHEAD};

/// Fraction of the bound on the interface's queue that is not reported as backlog. Chosen by us: if
/// all is reported, receivers grant more than fills their links, and queues before them are 10 %
/// longer; beyond a half, links idle (lab/log, 2026-11-28).
const USUAL_PART: u64 = 4;

/// An estimate of the backlog of the network interface.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Time that a byte takes on the link, in picoseconds; 0 switches pacing off.
    picos_per_byte: u64,
    /// Bound on the backlog in nanoseconds.
    max_backlog: u64,
    /// When the interface will have sent all that this transport gave it.
    idle_at: Instant,
    max_link_usage: u64,
    /// When it will have sent all that it was given, as far as other transports of the host publish
    /// (SEND-12).
    host_idle_at: Instant,
    /// When the interface would have sent this transport's packets at an equal part of the link.
    part_idle_at: Instant,
    /// Transports that share the link, this one included.
    sharers: u64,
    /// Link time of bytes given to the interface, or reserved, and not published to others yet.
    unpublished: u64,
    /// A piece of the link's time after the bytes that others gave to the interface (SEND-14).
    reserved: Option<Reservation>,
}

impl Pacer {
    pub(crate) fn new(config: &Config) -> Self {
        let mut pacer = Self {
            picos_per_byte: 0,
            max_backlog: config.max_nic_est_backlog_usecs() * USEC,
            idle_at: Instant::ZERO,
            max_link_usage: config.max_link_usage(),
            host_idle_at: Instant::ZERO,
            part_idle_at: Instant::ZERO,
            sharers: 1,
            unpublished: 0,
            reserved: None,
        };
        pacer.set_rate(config.link_mbps());
        pacer
    }

    /// Sets the rate of the link in Mbit/s; 0 switches pacing off.
    pub(crate) const fn set_rate(&mut self, mbps: u64) {
        let usable = mbps * self.max_link_usage;
        // 8 bits take 8,000,000 ps at 1 Mbit/s; usage is in per cent.
        self.picos_per_byte = match 800_000_000_u64.checked_div(usable) {
            Some(picos) => picos,
            None => 0,
        };
    }

    /// Bytes that may be given to the interface now; `None` if its queue is long enough.
    pub(crate) const fn room(&self, now: Instant) -> Option<u32> {
        if self.picos_per_byte == 0 {
            return Some(u32::MAX);
        }
        if let Some(reserved) = self.due(now) {
            return Some(self.bytes_within(reserved.left()));
        }
        match self.max_backlog.checked_sub(self.all_idle_at().since(now)) {
            None | Some(0) => {
                // whatever others publish, a part of the link is free (SEND-12).
                let left = self.max_backlog.saturating_sub(self.part_idle_at.since(now));
                if self.sharers == 1 || left == 0 {
                    return None;
                }
                Some(self.bytes_within(left / self.sharers))
            }
            Some(left) => Some(self.bytes_within(left)),
        }
    }

    /// Bytes that the link carries in `nanos` nanoseconds. It has a rate.
    const fn bytes_within(&self, nanos: u64) -> u32 {
        let bytes = nanos.saturating_mul(1_000) / self.picos_per_byte;
        if bytes > u32::MAX as u64 { u32::MAX } else { bytes as u32 }
    }

    /// Bytes that wait in the interface beyond one part in [`USUAL_PART`] of the bound on its
    /// queue: bytes given to it now leave after them (SEND-13).
    pub(crate) const fn waiting(&self, now: Instant) -> u32 {
        if self.picos_per_byte == 0 {
            return 0;
        }
        let before = match self.due(now) {
            Some(reserved) => reserved.begins,
            None => self.all_idle_at(),
        };
        self.bytes_within(before.since(now).saturating_sub(self.max_backlog / USUAL_PART))
    }

    /// When it is worth trying again: when half of the queue has left, so that a thread that wakes
    /// up for it sends more than a packet, and the queue does not run dry in the meantime.
    pub(crate) const fn next_room(&self) -> Instant {
        let all = match &self.reserved {
            Some(reserved) if reserved.is_usable() => reserved.begins.as_nanos(),
            _ => self.all_idle_at().as_nanos(),
        };
        let part = self.part_idle_at.as_nanos();
        let first = if self.sharers > 1 && part < all { part } else { all };
        Instant::from_nanos(first.saturating_sub(self.max_backlog / 2))
    }

    /// Records that `packets` packets with `bytes` bytes in total were given to the interface.
    pub(crate) fn sent(&mut self, now: Instant, packets: u64, bytes: u64) {
        if self.picos_per_byte > 0 {
            let nanos = (bytes + packets * WIRE_OVERHEAD) * self.picos_per_byte / 1_000;
            self.idle_at = self.idle_at.max(now).plus(nanos);
            if self.sharers > 1 {
                let reserved = self.reserved.as_mut().map_or(0, |piece| piece.take(nanos));
                self.part_idle_at = self.part_idle_at.max(now).plus(nanos * self.sharers);
                self.append(now, nanos - reserved);
            }
        }
    }

    /// Reserves a piece of the link's time, after all that transports of the host gave to the
    /// interface, for a message that is held back: `bytes` bytes may leave, in packets of `segment`
    /// bytes (SEND-14). Half of the bound on the queue at most, as long as that is a packet.
    pub(crate) fn reserve(&mut self, now: Instant, bytes: u32, segment: u32) {
        let is_alone = self.picos_per_byte == 0 || self.sharers == 1;
        if is_alone || self.reserved.is_some_and(|reserved| reserved.is_usable()) {
            return;
        }
        let header = DATA_HEADER_LEN as u64 + WIRE_OVERHEAD;
        let time = |bytes: u64| bytes * self.picos_per_byte / 1_000;
        let packet = time(u64::from(bytes.min(segment)) + header);
        let most = (self.max_backlog / 2 / packet.max(1)).max(1);
        let packets = u64::from(bytes.div_ceil(segment.max(1))).min(most);
        let nanos = time(u64::from(bytes) + packets * header).min(packets * packet);
        let left = self.reserved.map_or(0, |reserved| reserved.left());
        let begins = self.all_idle_at().max(now);
        self.append(now, nanos.saturating_sub(left));
        self.reserved = Some(Reservation::new(begins, nanos, packet, self.host_idle_at));
    }

    /// The interface has, or will have, `nanos` more nanoseconds to send.
    fn append(&mut self, now: Instant, nanos: u64) {
        if nanos > 0 {
            self.host_idle_at = self.host_idle_at.max(now).plus(nanos);
            self.unpublished += nanos;
        }
    }

    /// Returns the reservation, if it can be used now.
    const fn due(&self, now: Instant) -> Option<Reservation> {
        match self.reserved {
            Some(reserved) if reserved.is_due(now, self.max_backlog) => Some(reserved),
            _ => None,
        }
    }

    /// `sharers` transports share the link, this one included, and the interface will have sent all
    /// that they gave it at `idle_at` (SEND-12).
    pub(crate) fn share(&mut self, sharers: u64, idle_at: Instant) {
        self.sharers = sharers;
        self.host_idle_at = idle_at;
        self.reserved = self.reserved.filter(|piece| sharers > 1 && piece.holds(idle_at));
    }

    /// Returns the link time of the bytes given to the interface since the last call, in
    /// nanoseconds.
    pub(crate) const fn take_unpublished(&mut self) -> u64 {
        std::mem::replace(&mut self.unpublished, 0)
    }

    /// When the interface will have sent all that it was given, as far as is known.
    const fn all_idle_at(&self) -> Instant {
        if self.sharers > 1 && self.host_idle_at.as_nanos() > self.idle_at.as_nanos() {
            self.host_idle_at
        } else {
            self.idle_at
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pacer(mbps: u64) -> Pacer {
        let builder = Config::builder().link_mbps(mbps).max_nic_est_backlog_usecs(10);
        Pacer::new(&builder.max_link_usage(100).build().unwrap())
    }

    #[test]
    fn the_backlog_is_bounded_by_time_on_the_link() {
        let mut pacer = pacer(8_000); // 1 byte per nanosecond
        let now = Instant::from_nanos(1_000_000);
        assert_eq!(pacer.room(now), Some(10_000));
        pacer.sent(now, 1, 9_000 - WIRE_OVERHEAD);
        assert_eq!(pacer.room(now), Some(1_000));
        pacer.sent(now, 1, 3_000 - WIRE_OVERHEAD);
        assert_eq!(pacer.room(now), None);
        assert_eq!(pacer.room(now.plus(2_001)), Some(1));
        assert_eq!(pacer.next_room(), now.plus(7_000));
        assert_eq!(pacer.room(now.plus(7_000)), Some(5_000));
        assert_eq!(pacer.room(now.plus(50_000)), Some(10_000), "an idle link saves nothing");
    }

    #[test]
    fn without_a_rate_there_is_no_pacing() {
        let mut pacer = pacer(0);
        pacer.sent(Instant::ZERO, 1_000, 1 << 40);
        assert_eq!(pacer.room(Instant::ZERO), Some(u32::MAX));
    }

    /// SEND-13.
    #[test]
    fn what_waits_beyond_a_quarter_of_the_bound_is_said() {
        let mut pacer = pacer(8_000); // 1 byte per nanosecond
        let now = Instant::from_nanos(1_000_000);
        pacer.sent(now, 1, 2_500 - WIRE_OVERHEAD);
        assert_eq!(pacer.waiting(now), 0);
        pacer.sent(now, 1, 6_000 - WIRE_OVERHEAD);
        assert_eq!(pacer.waiting(now), 6_000);
        assert_eq!(pacer.waiting(now.plus(4_000)), 2_000);
        pacer.share(4, now.plus(9_500));
        assert_eq!(pacer.waiting(now), 7_000, "what others of the host gave it, too");
        pacer.share(4, Instant::from_nanos(u64::MAX - 1));
        assert!(pacer.waiting(now) > 7_000, "whatever others publish");
        pacer.set_rate(0);
        assert_eq!(pacer.waiting(now), 0, "nothing is known");
    }

    #[test]
    fn only_a_share_of_the_link_is_used() {
        let config = Config::builder().link_mbps(8_000).max_link_usage(50).build().unwrap();
        let mut pacer = Pacer::new(&config);
        pacer.sent(Instant::ZERO, 1, 10_000 - WIRE_OVERHEAD);
        assert_eq!(pacer.idle_at, Instant::from_nanos(20_000));
    }

    /// SEND-12.
    #[test]
    fn what_others_gave_the_interface_counts_but_a_part_of_the_link_is_always_free() {
        let mut pacer = pacer(8_000); // 1 byte per nanosecond
        let now = Instant::from_nanos(1_000_000);
        pacer.share(4, now.plus(6_000));
        assert_eq!(pacer.room(now), Some(4_000));
        pacer.sent(now, 1, 1_000 - WIRE_OVERHEAD);
        assert_eq!((pacer.room(now), pacer.take_unpublished()), (Some(3_000), 1_000));
        pacer.share(4, now.plus(1_000_000_000));
        assert_eq!(pacer.room(now), Some(1_500), "of 10,000 ns for 4, 4,000 are used");
        assert_eq!(pacer.next_room(), Instant::from_nanos(1_000_000 - 1_000));
        pacer.sent(now, 1, 1_500 - WIRE_OVERHEAD);
        assert_eq!(pacer.room(now), None);
        assert_eq!(pacer.room(now.plus(4_000)), Some(1_000), "a quarter of the link");
        pacer.share(1, Instant::ZERO);
        assert_eq!(pacer.room(now.plus(4_000)), Some(10_000), "alone");
    }

    /// SEND-14.
    #[test]
    fn a_message_that_is_held_back_has_a_piece_of_the_link_after_what_others_gave_it() {
        let mut pacer = pacer(8_000); // 1 byte per nanosecond
        let now = Instant::from_nanos(1_000_000);
        let packet = 1_000 + DATA_HEADER_LEN as u64 + WIRE_OVERHEAD;
        pacer.sent(now, 1, 20_000 - WIRE_OVERHEAD);
        pacer.reserve(now, 9_000, 1_000);
        assert_eq!(pacer.take_unpublished(), 0, "it is alone");
        pacer.share(4, now.plus(30_000));
        pacer.sent(now, 1, 20_000 - WIRE_OVERHEAD);
        assert_eq!(pacer.take_unpublished(), 20_000);
        pacer.reserve(now, 9_000, 1_000);
        let (begins, piece) = (now.plus(50_000), 4 * packet);
        assert_eq!(pacer.take_unpublished(), piece, "four packets in half of 10,000 ns");
        pacer.reserve(now, 9_000, 1_000);
        assert_eq!(pacer.take_unpublished(), 0, "one piece at a time");

        let host_idle_at = begins.plus(piece + 20_000);
        pacer.share(4, host_idle_at);
        let wake = now.plus(45_000);
        assert_eq!((pacer.room(now), pacer.next_room()), (None, wake));
        assert_eq!(pacer.room(wake), Some(piece as u32));
        assert_eq!(pacer.waiting(wake), 2_500, "others come after it");
        pacer.sent(wake, 4, piece - 4 * WIRE_OVERHEAD);
        assert_eq!((pacer.room(wake), pacer.take_unpublished()), (None, 0));

        pacer.reserve(wake, 500, 1_000);
        pacer.share(4, host_idle_at.plus(pacer.unpublished));
        assert_eq!(pacer.next_room().plus(5_000), host_idle_at);
        pacer.share(4, wake.plus(1));
        assert!(pacer.reserved.is_none(), "what is published was spoiled");
    }
}
