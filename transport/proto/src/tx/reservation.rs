//! A piece of the link's time that a transport takes before it can use it.
//!
//! If transports of one host are all held back, all would wake up when the link is free, one would
//! send, and the others would have woken needlessly. A transport with a reserved piece sleeps until
//! that starts (SEND-14). It keeps the piece if it wakes up late: otherwise link time would be lost
//! whenever threads wait for a core.

use crate::time::Instant;

/// A piece of the link's time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reservation {
    /// When the interface will have sent all that was given to it before.
    pub(super) begins: Instant,
    /// Nanoseconds of it that have not been used.
    left: u64,
    /// Nanoseconds that a packet needs.
    packet: u64,
    /// When the interface will have sent everything, as transports of the host must publish from
    /// then on.
    published: Instant,
}

impl Reservation {
    /// A piece of `nanos` nanoseconds, in packets of `packet` nanoseconds. `host_idle_at` is when
    /// the interface will have sent all that it was given, as it is published, with this piece.
    pub(super) const fn new(
        begins: Instant,
        nanos: u64,
        packet: u64,
        host_idle_at: Instant,
    ) -> Self {
        Self { begins, left: nanos, packet, published: host_idle_at }
    }

    /// Whether a packet may leave in it, now or later.
    pub(super) const fn is_usable(&self) -> bool {
        2 * self.left >= self.packet
    }

    /// Whether a packet may leave in it now: it starts within `ahead` nanoseconds.
    pub(super) const fn is_due(&self, now: Instant, ahead: u64) -> bool {
        self.is_usable() && self.begins.since(now) < ahead
    }

    /// Nanoseconds that have not been used.
    pub(super) const fn left(&self) -> u64 {
        self.left
    }

    /// Uses up to `nanos` nanoseconds, and returns how many.
    pub(super) fn take(&mut self, nanos: u64) -> u64 {
        let taken = nanos.min(self.left);
        self.left -= taken;
        taken
    }

    /// Whether it is valid if the interface will have sent everything at `host_idle_at`: a process
    /// may have published a wrong value.
    pub(super) const fn holds(&self, host_idle_at: Instant) -> bool {
        host_idle_at.as_nanos() >= self.published.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::USEC;

    const fn at(micros: u64) -> Instant {
        Instant::from_nanos(micros * USEC)
    }

    /// SEND-14.
    #[test]
    fn a_piece_is_used_when_it_begins_or_later() {
        let mut piece = Reservation::new(at(100), 20 * USEC, 10 * USEC, at(120));
        assert!(piece.is_usable() && !piece.is_due(at(0), 20 * USEC));
        assert!(piece.is_due(at(81), 20 * USEC) && !piece.is_due(at(80), 20 * USEC));
        assert!(piece.is_due(at(1_000_000), 20 * USEC), "a thread may wait for a core");
        assert_eq!(piece.take(16 * USEC), 16 * USEC);
        assert!(!piece.is_usable(), "less than half a packet");
        assert_eq!(piece.take(16 * USEC), 4 * USEC);
        assert_eq!(piece.left(), 0);
    }

    #[test]
    fn a_piece_that_is_published_no_more_does_not_hold() {
        let piece = Reservation::new(at(900_000), USEC, USEC, at(900_001));
        assert!(piece.holds(at(900_001)) && !piece.holds(at(5)));
    }
}

/// Transports of one host that compete for the link: how often they wake up, and the backlog of the
/// interface.
#[cfg(test)]
mod contention {
    use crate::config::Config;
    use crate::time::{Instant, MSEC, USEC};
    use crate::tx::pacer::Pacer;

    /// Payload, header and everything else that a full packet has on the link, and what of it the
    /// driver is given.
    const SEGMENT: u32 = 1_400;
    const GIVEN: u64 = 1_460;
    const ON_THE_LINK: u64 = GIVEN + 66;

    /// Time for which the transports contend.
    const TIME: u64 = 200 * MSEC;

    /// The counts of a run.
    #[derive(Debug)]
    struct Contention {
        wakes: u64,
        packets: Vec<u64>,
        /// Nanoseconds for which the link was busy.
        busy: u64,
        /// The longest queue of the interface, in nanoseconds of the link.
        queue: u64,
    }

    /// Runs transports with endless messages: each sleeps until there is room, and then sends until
    /// there is none. Each wakes `late` nanoseconds late, times its number.
    fn contend(transports: u64, mbps: u64, late: u64) -> Contention {
        let config = Config::builder().link_mbps(mbps).max_link_usage(100).build().unwrap();
        let mut pacers: Vec<Pacer> = (0..transports).map(|_| Pacer::new(&config)).collect();
        let mut wakes: Vec<u64> = (0..transports).map(|number| number * USEC).collect();
        let packet = ON_THE_LINK * 8_000 / mbps;
        let mut published = Instant::ZERO;
        let mut queue_end = 0_u64;
        let packets = vec![0; transports as usize];
        let mut found = Contention { wakes: 0, packets, busy: 0, queue: 0 };
        loop {
            let (number, at) = wakes.iter().copied().enumerate().min_by_key(|(_, at)| *at).unwrap();
            if at >= TIME {
                return found;
            }
            let (now, pacer) = (Instant::from_nanos(at), &mut pacers[number]);
            found.wakes += 1;
            pacer.share(transports, published.max(now));
            while let Some(room) = pacer.room(now) {
                for _ in 0..(room / SEGMENT).max(1) {
                    pacer.sent(now, 1, GIVEN);
                    queue_end = queue_end.max(at) + packet;
                    found.packets[number] += 1;
                    found.busy += packet;
                    found.queue = found.queue.max(queue_end - at);
                }
            }
            pacer.reserve(now, 1 << 20, SEGMENT);
            let nanos = pacer.take_unpublished();
            if nanos > 0 {
                published = published.max(now).plus(nanos);
            }
            wakes[number] = pacer.next_room().as_nanos().max(at) + late * (number as u64 + 1);
        }
    }

    /// SEND-14: without it, each of them wakes up for each packet of any of them.
    #[test]
    fn a_transport_wakes_up_to_send_and_the_link_is_busy() {
        for (transports, mbps, late) in
            [(2, 40, 5_000), (4, 40, 5_000), (8, 40, 2_000), (4, 1_000, 1_000), (4, 10_000, 500)]
        {
            let found = contend(transports, mbps, late);
            let what = format!("{transports} at {mbps} Mbit/s: {found:?}");
            let packets: u64 = found.packets.iter().sum();
            assert!(10 * found.wakes <= 11 * packets + 10 * transports, "{what}");
            assert!(found.busy >= TIME / 100 * 93, "{what}");
            // Each has a packet that it may always send, and a piece.
            let each = ON_THE_LINK * 8_000 / mbps + 20 * USEC;
            assert!(found.queue <= (transports + 1) * each, "{what}");
            let least = found.packets.iter().min().unwrap();
            assert!(least * transports * 10 >= packets * 8, "{what}");
        }
    }

    /// Threads that wait for a core wake up after their piece has passed: the link's time is not
    /// lost for all of that.
    #[test]
    fn transports_that_wake_up_late_lose_no_piece() {
        let found = contend(8, 40, 500_000);
        assert!(found.busy >= TIME / 100 * 90, "{found:?}");
        assert!(found.queue <= 9 * (ON_THE_LINK * 200 + 20 * USEC), "{found:?}");
    }

    /// A queue with pieces larger than a packet is worth waking up for.
    #[test]
    fn a_transport_of_a_fast_link_sends_several_packets_when_it_wakes_up() {
        let found = contend(4, 25_000, 200);
        let packets: u64 = found.packets.iter().sum();
        assert!(packets >= 7 * found.wakes, "{found:?}");
    }
}
