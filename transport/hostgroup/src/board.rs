//! A board in the memory of one process.
//!
//! Each transport writes its own line, and only if it has changed. Lines are read without order: a
//! transport may read some values from the current pass and some from the previous one. They are
//! estimates, and the protocol treats them as such (GRANT-14).

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use apus_proto::{ArrivingLengths, Instant, Neighbours, Published, Transport};
use smallvec::SmallVec;

/// Active messages that a transport publishes, the shortest ones. Chosen by us: as many as are
/// active with the default `max_overcommit`.
const MAX_ACTIVE: usize = 8;

/// Values that one transport publishes. Aligned to two cache lines, which processors fetch
/// together.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    /// Granted bytes that have not arrived.
    incoming: AtomicU64,
    /// Bytes that its active messages lack, ascending; 0 where there is none.
    active: [AtomicU32; MAX_ACTIVE],
    lengths: Lengths,
}

/// The lengths of the messages that arrive at it.
#[derive(Debug, Default)]
struct Lengths {
    eighths: [AtomicU32; 8],
    unscheduled: AtomicU64,
    total: AtomicU64,
    messages: AtomicU64,
}

/// When the interface will have sent all that the transports gave it, in nanoseconds of their
/// clock.
#[derive(Debug, Default)]
#[repr(align(128))]
struct LinkIdleAt(AtomicU64);

/// The lines of transports that share a link and a clock.
#[derive(Debug)]
pub struct Board {
    lines: Box<[Line]>,
    link_idle_at: LinkIdleAt,
}

impl Board {
    /// Returns `count` lines in their initial state, without published values.
    #[must_use]
    pub fn new(count: usize) -> Self {
        let lines = std::iter::repeat_with(Line::default).take(count).collect();
        Self { lines, link_idle_at: LinkIdleAt::default() }
    }

    /// Publishes the link use of the transport with this index.
    ///
    /// # Panics
    ///
    /// There is no such line.
    pub fn publish(&self, index: usize, now: Instant, published: &Published<'_>) {
        let line = &self.lines[index];
        if line.incoming.load(Ordering::Relaxed) != published.incoming {
            line.incoming.store(published.incoming, Ordering::Relaxed);
        }
        let active = published.active.iter().copied().chain(std::iter::repeat(0));
        for (slot, missing) in line.active.iter().zip(active) {
            if slot.load(Ordering::Relaxed) != missing {
                slot.store(missing, Ordering::Relaxed);
            }
        }
        if published.link_nanos > 0 {
            let later = |idle_at: u64| {
                Some(idle_at.max(now.as_nanos()).saturating_add(published.link_nanos))
            };
            // The closure always has a value.
            let _ = self.link_idle_at.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later);
        }
    }

    /// Exchanges arriving lengths, if it is time: publishes those of `transport`, which has this
    /// index, and passes the lengths of the others to it.
    ///
    /// # Panics
    ///
    /// There is no such line.
    pub fn exchange_lengths(&self, index: usize, now: Instant, transport: &mut Transport) {
        if let Some(own) = transport.poll_lengths(now) {
            transport.observe_lengths(&self.swap_lengths(index, &own));
        }
    }

    /// Publishes the lengths arriving at the transport with this index. Returns the lengths
    /// arriving at each of the others.
    fn swap_lengths(&self, index: usize, own: &ArrivingLengths) -> SmallVec<[ArrivingLengths; 4]> {
        self.lines[index].lengths.store(own);
        let others = self.lines.iter().enumerate().filter(|(other, _)| *other != index);
        others.map(|(_, line)| line.lengths.load()).collect()
    }

    /// Calls `use_neighbours` with what all transports but the one with this index do.
    pub fn read(&self, index: usize, use_neighbours: impl FnOnce(&Neighbours<'_>)) {
        let mut active: SmallVec<[u32; 4 * MAX_ACTIVE]> = SmallVec::new();
        let mut incoming = 0_u64;
        let others = self.lines.iter().enumerate().filter(|(other, _)| *other != index);
        for (_, line) in others {
            incoming = incoming.saturating_add(line.incoming.load(Ordering::Relaxed));
            let missing = line.active.iter().map(|slot| slot.load(Ordering::Relaxed));
            active.extend(missing.take_while(|missing| *missing > 0));
        }
        active.sort_unstable();
        use_neighbours(&Neighbours {
            sharers: self.lines.len(),
            incoming,
            active: &active,
            link_idle_at: Instant::from_nanos(self.link_idle_at.0.load(Ordering::Relaxed)),
        });
    }
}

impl Lengths {
    fn store(&self, lengths: &ArrivingLengths) {
        for (slot, length) in self.eighths.iter().zip(lengths.eighths) {
            slot.store(length, Ordering::Relaxed);
        }
        self.unscheduled.store(lengths.unscheduled, Ordering::Relaxed);
        self.total.store(lengths.total, Ordering::Relaxed);
        self.messages.store(lengths.messages, Ordering::Relaxed);
    }

    fn load(&self) -> ArrivingLengths {
        ArrivingLengths {
            eighths: self.eighths.each_ref().map(|slot| slot.load(Ordering::Relaxed)),
            unscheduled: self.unscheduled.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(incoming: u64, active: &[u32], link_nanos: u64) -> Published<'_> {
        Published { incoming, active, link_nanos }
    }

    #[test]
    fn a_transport_learns_what_all_others_do() {
        let board = Board::new(3);
        let now = Instant::from_nanos(1_000);
        board.publish(0, now, &published(10, &[7, 30], 100));
        board.publish(1, now, &published(20, &[5], 200));
        board.publish(2, now, &published(40, &[1, 2, 3], 0));
        board.read(2, |neighbours| {
            assert_eq!((neighbours.sharers, neighbours.incoming), (3, 30));
            assert_eq!(neighbours.active, [5, 7, 30]);
            assert_eq!(neighbours.link_idle_at.as_nanos(), 1_300);
        });
        board.publish(0, now, &published(0, &[], 0));
        board.read(2, |neighbours| {
            assert_eq!((neighbours.incoming, neighbours.active), (20, &[5][..]));
        });
    }

    #[test]
    fn the_shortest_of_many_active_messages_are_published() {
        let board = Board::new(2);
        let many: Vec<u32> = (1..=12).collect();
        board.publish(0, Instant::ZERO, &published(0, &many, 0));
        board.read(1, |neighbours| assert_eq!(neighbours.active, &many[..MAX_ACTIVE]));
    }

    #[test]
    fn a_transport_learns_which_lengths_arrive_at_each_of_the_others() {
        let board = Board::new(3);
        let arriving = |length| ArrivingLengths {
            eighths: [length; 8],
            unscheduled: 1,
            total: 2,
            messages: 3,
        };
        let none = ArrivingLengths::default();
        assert_eq!(board.swap_lengths(0, &arriving(10))[..], [none, none]);
        assert_eq!(board.swap_lengths(1, &arriving(20))[..], [arriving(10), none]);
        assert_eq!(board.swap_lengths(2, &none)[..], [arriving(10), arriving(20)]);
    }
}
