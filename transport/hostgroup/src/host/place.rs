//! Place of a transport on the page of its host.

use super::group::HostGroup;
use super::line::{self, LINES, Line, MAX_ACTIVE};
use apus_local::SharedPage;
use apus_process::Owner;
use apus_proto::{ArrivingLengths, Instant, Neighbours, Published, Transport};
use smallvec::SmallVec;
use std::io;
use std::sync::Arc;

/// Time between two checks of the page of a group and of the own line, in nanoseconds. Chosen by
/// us: a process joins and leaves rarely, and a line is taken away only by a process that does
/// harm.
const CHECK: u64 = 100_000_000;

/// Time between two readings of the lines of others, in nanoseconds. Chosen by us: a GRANT's way to
/// its sender takes as long, and a reading costs a cache miss for each transport that is busy.
const READ: u64 = 20_000;

/// Place of a transport. Times are read from CLOCK_MONOTONIC, which all processes share.
#[derive(Debug)]
pub struct HostPlace {
    group: Arc<HostGroup>,
    /// The line is this process's: a child of a fork does not give it back.
    process: Owner,
    /// Identity of the line's owner.
    owner: u64,
    /// The page, the index of the transport's line, and the page's version.
    line: Option<(Arc<SharedPage>, usize)>,
    version: u64,
    /// When the transport has published last, and when it has checked that the line is still its
    /// own.
    passed_at: u64,
    checked_at: u64,
    read_at: u64,
    /// Transports that share the link, as they were read last.
    sharers: usize,
}

impl HostPlace {
    /// Returns the place of a transport.
    ///
    /// # Errors
    ///
    /// The system grants no random number.
    pub fn new(group: Arc<HostGroup>) -> io::Result<Self> {
        let owner = getrandom::u64().map_err(io::Error::other)?.max(1);
        let (version, passed_at, checked_at, read_at) = (0, 0, 0, 0);
        let process = Owner::current();
        Ok(Self {
            group,
            process,
            owner,
            line: None,
            version,
            passed_at,
            checked_at,
            read_at,
            sharers: 1,
        })
    }

    /// Publishes the link use of the transport.
    pub fn publish(&mut self, now: Instant, published: &Published<'_>) {
        let now = now.as_nanos();
        if now >= self.checked_at + CHECK {
            self.checked_at = now;
            self.check(now);
        }
        let Some((page, index)) = &self.line else { return };
        Line::of(page, *index).publish(now, published.incoming, published.active);
        self.passed_at = now;
        if published.link_nanos > 0 {
            line::add_to_queue(page, now, published.link_nanos);
        }
    }

    /// Sees to it that the transport has a line, on the page that the group has now.
    fn check(&mut self, now: u64) {
        let version = self.group.version();
        let is_own = self.line.as_ref().is_some_and(|(page, index)| {
            let owner = Line::of(page, *index).owner;
            owner.load(std::sync::atomic::Ordering::Relaxed) == self.owner
        });
        if is_own && version == self.version {
            return;
        }
        self.give_back();
        self.version = version;
        self.line = self.group.page().and_then(|page| {
            let index = Line::take(&page, self.owner, now)?;
            Some((page, index))
        });
    }

    /// Calls `use_neighbours` with what all other transports of the host do, if it is time to read
    /// that again. Without a page the transport is alone.
    pub fn read(&mut self, now: Instant, use_neighbours: impl FnOnce(&Neighbours<'_>)) {
        let now = now.as_nanos();
        if now < self.read_at + READ {
            return;
        }
        self.read_at = now;
        let Some((page, own)) = &self.line else {
            if std::mem::replace(&mut self.sharers, 1) > 1 {
                use_neighbours(&alone());
            }
            return;
        };
        let mut active: SmallVec<[u32; 4 * MAX_ACTIVE]> = SmallVec::new();
        let (mut incoming, mut sharers) = (0_u64, 1);
        let others = Line::used(page).filter(|(index, line)| index != own && line.counts(now));
        for (_, line) in others {
            sharers += 1;
            incoming = incoming.saturating_add(line.incoming());
            active.extend(line.active());
        }
        debug_assert!(sharers <= LINES);
        let was_alone = std::mem::replace(&mut self.sharers, sharers) == 1;
        if sharers == 1 && was_alone {
            return;
        }
        active.sort_unstable();
        let link_idle_at = line::link_idle_at(page, now);
        use_neighbours(&Neighbours { sharers, incoming, active: &active, link_idle_at });
    }

    /// Exchanges arriving lengths, if it is time: publishes those of `transport`, and passes the
    /// lengths of the others to it.
    pub fn exchange_lengths(&self, now: Instant, transport: &mut Transport) {
        if let Some(own) = transport.poll_lengths(now) {
            transport.observe_lengths(&self.swap_lengths(now, &own));
        }
    }

    /// Publishes the lengths arriving at the transport. Returns the lengths arriving at each of the
    /// other transports of the host; empty without a page.
    fn swap_lengths(&self, now: Instant, own: &ArrivingLengths) -> SmallVec<[ArrivingLengths; 4]> {
        let now = now.as_nanos();
        let Some((page, own_index)) = &self.line else { return SmallVec::new() };
        Line::of(page, *own_index).publish_lengths(own);
        let others =
            Line::used(page).filter(|(index, line)| index != own_index && line.counts(now));
        others.map(|(_, line)| line.lengths()).collect()
    }

    /// Returns the number of transports that share the link, this one included.
    #[must_use]
    pub const fn sharers(&self) -> usize {
        self.sharers
    }

    /// Returns whether the transport has a line.
    #[must_use]
    pub const fn is_shared(&self) -> bool {
        self.line.is_some()
    }

    fn give_back(&mut self) {
        if let Some((page, index)) = self.line.take() {
            Line::of(&page, index).give_back(self.passed_at);
        }
    }
}

impl Drop for HostPlace {
    fn drop(&mut self) {
        if self.process.is_current() {
            self.give_back();
        }
    }
}

/// Neighbours observed by a transport that is alone.
const fn alone() -> Neighbours<'static> {
    Neighbours { sharers: 1, incoming: 0, active: &[], link_idle_at: Instant::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_local::PeerPolicy;
    use std::sync::atomic::Ordering;

    const SECOND: u64 = 1_000_000_000;

    fn group(test: &str) -> Arc<HostGroup> {
        let name = format!("test/{}/{test}", std::process::id());
        let group = HostGroup::join(&name, &PeerPolicy::SameUser).unwrap();
        while group.page().is_none() {
            std::thread::yield_now();
        }
        group
    }

    fn place(group: &Arc<HostGroup>) -> HostPlace {
        HostPlace::new(group.clone()).unwrap()
    }

    fn publish(place: &mut HostPlace, now: u64, incoming: u64, active: &[u32], link_nanos: u64) {
        place.publish(Instant::from_nanos(now), &Published { incoming, active, link_nanos });
    }

    /// Returns the values a place reads: sharers, granted bytes of the others, their active
    /// messages, the end of the queue.
    fn read(place: &mut HostPlace, now: u64) -> Option<(usize, u64, Vec<u32>, u64)> {
        let mut seen = None;
        place.read(Instant::from_nanos(now), |neighbours| {
            let Neighbours { sharers, incoming, active, link_idle_at } = *neighbours;
            seen = Some((sharers, incoming, active.to_vec(), link_idle_at.as_nanos()));
        });
        seen
    }

    #[test]
    fn a_transport_learns_what_the_others_do() {
        let group = group("learns");
        let [mut one, mut two, mut three] = [(); 3].map(|()| place(&group));
        let now = 5 * SECOND;
        publish(&mut one, now, 10, &[7, 30], 100);
        assert_eq!(read(&mut one, now), None, "alone");
        publish(&mut two, now, 20, &[5], 200);
        publish(&mut three, now, 40, &[1, 2, 3, 4, 5, 6, 7, 8, 9], 0);
        assert_eq!(
            read(&mut two, now),
            Some((3, 50, vec![1, 2, 3, 4, 5, 6, 7, 7, 8, 30], now + 300))
        );
        assert_eq!(read(&mut two, now + READ - 1), None, "it is not time yet");
        drop(three);
        assert_eq!(read(&mut two, now + READ), Some((2, 10, vec![7, 30], now + READ)));
    }

    #[test]
    fn a_transport_learns_which_lengths_arrive_at_those_that_live() {
        let group = group("lengths");
        let [mut one, mut two] = [(); 2].map(|()| place(&group));
        let now = Instant::from_nanos(5 * SECOND);
        let eighths = [1, 2, 3, 4, 5, 6, 7, u32::MAX];
        let own = ArrivingLengths { eighths, unscheduled: 10, total: 1 << 40, messages: 3 };
        assert!(one.swap_lengths(now, &own).is_empty(), "it has no line yet");
        for place in [&mut one, &mut two] {
            publish(place, now.as_nanos(), 0, &[], 0);
        }
        let none = ArrivingLengths::default();
        assert_eq!(one.swap_lengths(now, &own)[..], [none]);
        assert_eq!(two.swap_lengths(now, &none)[..], [own]);
        let later = Instant::from_nanos(now.as_nanos() + line::COUNTS_FOR + 1);
        assert!(two.swap_lengths(later, &none).is_empty(), "the other one is dead");
    }

    #[test]
    fn a_transport_that_has_ended_without_a_word_counts_for_half_a_second() {
        let group = group("ended");
        let [mut one, mut two] = [(); 2].map(|()| place(&group));
        let now = 5 * SECOND;
        publish(&mut one, now, 10, &[7], 0);
        publish(&mut two, now, 20, &[5], 0);
        let later = now + line::COUNTS_FOR;
        assert_eq!(read(&mut two, later), Some((2, 10, vec![7], later)));
        assert_eq!(read(&mut two, later + READ), Some((1, 0, vec![], later + READ)));
        assert_eq!(read(&mut two, later + 2 * READ), None, "known already");
        // It was only stopped.
        publish(&mut one, later + 3 * READ, 10, &[7], 0);
        assert_eq!(read(&mut two, later + 3 * READ).unwrap().0, 2);
    }

    #[test]
    fn a_line_whose_owner_has_ended_is_taken_by_another_transport() {
        let group = group("taken");
        let now = 100 * SECOND;
        let mut ended: Vec<_> = (0..LINES).map(|_| place(&group)).collect();
        for place in &mut ended {
            publish(place, now, 0, &[], 0);
            assert!(place.is_shared());
        }
        let mut late = place(&group);
        publish(&mut late, now, 1, &[], 0);
        assert!(!late.is_shared(), "no line is left");
        assert_eq!(read(&mut late, now), None);
        let later = now + line::OWNED_FOR + 1;
        publish(&mut late, later, 1, &[], 0);
        assert!(late.is_shared());
        // The former owner notices, and takes another one.
        publish(&mut ended[0], later, 2, &[], 0);
        assert_eq!(read(&mut late, later), Some((2, 2, vec![], later)));
    }

    /// A process of the group writes whatever it likes, again and again.
    #[test]
    fn a_spoiled_page_does_no_harm() {
        let group = group("spoiled");
        let mut honest = place(&group);
        let page = group.page().unwrap();
        let mut now = 100 * SECOND;
        for value in [u64::MAX, 1, now, 1 << 63, 0x0123_4567_89ab_cdef] {
            for word in 0..page.len() / 8 {
                page.word(8 * word).store(value, Ordering::Relaxed);
            }
            for _ in 0..3 {
                publish(&mut honest, now, 10, &[3], 50);
                let own = ArrivingLengths::default();
                let others = honest.swap_lengths(Instant::from_nanos(now), &own);
                assert!(others.len() <= LINES);
                if let Some((sharers, _, active, idle_at)) = read(&mut honest, now) {
                    assert!(sharers <= LINES && active.len() <= LINES * MAX_ACTIVE);
                    assert!(idle_at <= now + 2 * SECOND, "{idle_at}");
                }
                now += CHECK;
            }
        }
        // Corrupt values expire unless they are written again.
        now += line::OWNED_FOR + 1;
        let mut other = place(&group);
        publish(&mut honest, now, 10, &[3], 0);
        publish(&mut other, now, 20, &[4], 0);
        assert_eq!(read(&mut other, now), Some((2, 10, vec![3], now)));
    }

    #[test]
    fn a_process_has_one_membership() {
        let one = group("once");
        assert!(Arc::ptr_eq(&one, &group("once")));
        assert!(!Arc::ptr_eq(&one, &group("another")));
    }
}
