//! The bytes of a message that are sent again.
//!
//! A sender cannot distinguish a lost packet from one in a queue that is longer than all timeouts.
//! It therefore sends the bytes that a RESEND requests again in full [`FULL_REPEATS`] times, and
//! then no faster than its receiver shows that bytes arrive (TIME-17, [ADR
//! 50](../../../../docs/adr/0050-send-again-no-faster-than-bytes-arrive.md)).
//!
//! # Invariants
//!
//! - **RETRANSMISSION-1** No two ranges of [`Repeat`]s overlap, and there are at most
//!   [`MAX_REPEATS`].
//! - **RETRANSMISSION-3** A byte that its receiver has shown to have counts once: a receiver that
//!   requests it once more, and shows it again, gains nothing. So a message is sent again at most
//!   [`FULL_REPEATS`] times, and twice, and with one packet for each further RESEND; and each
//!   packet at most once while it may be in flight.
//! - **RETRANSMISSION-2** Bytes that wait to be sent again are in the range of a [`Repeat`], unless
//!   that was forgotten.

use crate::limits::MAX_RESEND_BURST;
use crate::ranges::Ranges;
use crate::time::Instant;
use std::ops::Range;

/// Ranges that a message remembers. Chosen by us: the size of one burst of RESENDs. A forgotten
/// range can be requested again at once.
const MAX_REPEATS: usize = MAX_RESEND_BURST as usize;

/// Ranges that wait to be sent again, beyond which requests for others are not heard. Chosen by us:
/// two bursts of RESENDs. A receiver asks again.
const MAX_WANTED: usize = 2 * MAX_REPEATS;

/// How often all bytes of a range are sent again. Chosen by us: where packets are lost at random,
/// the second copies of few are lost as well, and the third copies of a range that fills a queue
/// only make the queue longer.
const FULL_REPEATS: u8 = 2;

/// Bytes waiting to be sent again, and recently requested ranges.
#[derive(Debug, Default)]
pub(super) struct Retransmission {
    /// Bytes to be sent again.
    wanted: Ranges,
    /// Requested ranges, the oldest first.
    repeats: Vec<Repeat>,
    /// Bytes that were requested at any time.
    asked: Ranges,
    /// Bytes that have arrived, as requests for the bytes behind them show (RETRANSMISSION-3).
    arrived: Ranges,
    /// The level that the last RESEND requested.
    pub(super) priority: u8,
}

/// A range that a RESEND has requested.
#[derive(Clone, Debug)]
struct Repeat {
    range: Range<u64>,
    /// How often bytes from its start on were queued to be sent again, all of them the first
    /// [`FULL_REPEATS`] times.
    times: u8,
    /// When bytes of it were sent again last.
    sent: Instant,
}

impl Retransmission {
    /// Adds bytes of `range`, except for ranges that wait to be sent again, or were sent at an
    /// instant for which `on_its_way` holds. `packet_end` returns the end of the packet that holds
    /// a byte. Returns whether bytes of `range` wait now.
    ///
    /// All bytes are added that were requested at most once before. Otherwise the receiver still
    /// lacks bytes that were sent again twice: the packets added hold twice the bytes that were
    /// requested just before `range` and are not any more, since those have arrived, unless they
    /// had arrived before; at least one packet is added.
    pub(super) fn add(
        &mut self,
        range: Range<u32>,
        on_its_way: impl Fn(Instant) -> bool,
        packet_end: impl Fn(u64) -> u64,
    ) -> bool {
        let range = u64::from(range.start)..u64::from(range.end);
        if self.wanted.count() > MAX_WANTED {
            return self.wanted.overlaps(&range);
        }
        insert_few(&mut self.asked, range.clone());
        let mut lost = Ranges::default();
        lost.insert(range.clone());
        for repeat in &self.repeats {
            if self.wanted.overlaps(&repeat.range) || on_its_way(repeat.sent) {
                lost.remove(repeat.range.clone());
            }
        }
        let (Some(first), Some(last)) = (lost.first(), lost.last()) else {
            return self.wanted.overlaps(&range);
        };
        let asked = first.start..last.end;
        let before = self.repeats.iter().find(|repeat| repeat.range.contains(&asked.start));
        let times = before.map_or(0, |repeat| repeat.times);
        if let Some(before) = before.filter(|_| times >= FULL_REPEATS) {
            let arrived = before.range.start..asked.start;
            let known = self.arrived.sum();
            insert_few(&mut self.arrived, arrived);
            let arrived = self.arrived.sum() - known;
            let last = asked.start + (2 * arrived).saturating_sub(1);
            lost.remove(packet_end(last)..asked.end);
        }
        let times = times.saturating_add(1);
        self.remember(Repeat { range: asked, times, sent: Instant::ZERO });
        for range in lost.iter() {
            self.wanted.insert(range);
        }
        true
    }

    /// Remembers `new` in place of earlier requests of its range (RETRANSMISSION-1).
    fn remember(&mut self, mut new: Repeat) {
        let old = std::mem::take(&mut self.repeats);
        for repeat in old {
            if repeat.range.start < new.range.end && new.range.start < repeat.range.end {
                // Parts of it may be in flight still.
                new.sent = new.sent.max(repeat.sent);
            }
            let below = repeat.range.start..repeat.range.end.min(new.range.start);
            let above = repeat.range.start.max(new.range.end)..repeat.range.end;
            let rest = [below, above].into_iter().filter(|range| !range.is_empty());
            self.repeats.extend(rest.map(|range| Repeat { range, ..repeat.clone() }));
        }
        self.repeats.push(new);
        let excess = self.repeats.len().saturating_sub(MAX_REPEATS);
        self.repeats.drain(..excess);
    }

    /// Whether byte `offset` was requested at any time.
    pub(super) fn was_asked(&self, offset: u32) -> bool {
        let offset = u64::from(offset);
        self.asked.overlaps(&(offset..offset + 1))
    }

    /// Number of bytes that were requested, and of bytes that have arrived since: each counts once.
    pub(super) fn asked(&self) -> u32 {
        (self.asked.sum() + self.arrived.sum()) as u32
    }

    /// The first range that waits.
    pub(super) fn first(&self) -> Option<Range<u32>> {
        self.wanted.first().map(|range| range.start as u32..range.end as u32)
    }

    /// Takes the bytes below `end`, which leave now.
    pub(super) fn take_below(&mut self, end: u32) {
        self.wanted.remove_below(u64::from(end));
    }

    /// Records that `range` was sent again at `now`.
    pub(super) fn note_sent(&mut self, range: &Range<u32>, now: Instant) {
        let (start, end) = (u64::from(range.start), u64::from(range.end));
        let sent = |repeat: &&mut Repeat| repeat.range.start < end && start < repeat.range.end;
        self.repeats.iter_mut().filter(sent).for_each(|repeat| repeat.sent = now);
    }

    /// Number of bytes that wait.
    pub(super) fn bytes(&self) -> u32 {
        self.wanted.sum() as u32
    }
}

/// Adds a range to a set that stays small: the lowest gap is filled if there are too many.
fn insert_few(set: &mut Ranges, range: Range<u64>) {
    set.insert(range);
    if set.count() > MAX_REPEATS {
        set.fill_lowest_gap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes of a packet.
    const PACKET: u64 = 10;
    /// Packets of a message. So few have no more gaps than are remembered.
    const PACKETS: usize = 2 * MAX_REPEATS - 1;

    /// A message of [`PACKETS`] packets, all of which were sent once, and its receiver.
    struct Line {
        again: Retransmission,
        /// Which packets the receiver lacks.
        lacks: Vec<bool>,
        now: Instant,
        /// RESENDs and packets that were sent again.
        resends: usize,
        packets: usize,
    }

    impl Line {
        fn new(lacks: Vec<bool>) -> Self {
            let (now, again) = (Instant::from_nanos(1), Retransmission::default());
            Self { again, lacks, now, resends: 0, packets: 0 }
        }

        /// Packets that the receiver lacks.
        fn lacking(&self) -> usize {
            self.lacks.iter().filter(|lacks| **lacks).count()
        }

        /// A RESEND requests these packets while none is in flight. Returns the packets sent again.
        fn ask(&mut self, packets: Range<usize>) -> Vec<usize> {
            self.now = self.now.plus(1);
            let bytes = |packet: usize| packet as u32 * PACKET as u32;
            let packet_end = |offset: u64| offset - offset % PACKET + PACKET;
            let asked = bytes(packets.start)..bytes(packets.end);
            assert!(self.again.add(asked, |sent| sent > self.now, packet_end));
            let mut sent = Vec::new();
            while let Some(range) = self.again.first() {
                let end = range.end.min(range.start + PACKET as u32);
                assert_eq!((range.start % PACKET as u32, end % PACKET as u32), (0, 0), "whole");
                self.again.take_below(end);
                self.again.note_sent(&(range.start..end), self.now);
                sent.push(range.start as usize / PACKET as usize);
            }
            self.resends += 1;
            self.packets += sent.len();
            sent
        }

        /// The receiver requests each of its gaps, and receives the packets that arrive.
        fn round(&mut self, mut arrives: impl FnMut() -> bool) {
            let numbers: Vec<usize> = (0..self.lacks.len()).filter(|n| self.lacks[*n]).collect();
            let gaps: Vec<&[usize]> = numbers.chunk_by(|one, next| one + 1 == *next).collect();
            for gap in gaps {
                for packet in self.ask(gap[0]..gap[gap.len() - 1] + 1) {
                    self.lacks[packet] &= !arrives();
                }
            }
            self.check();
        }

        /// RETRANSMISSION-1.
        fn check(&self) {
            let repeats = &self.again.repeats;
            assert!(repeats.len() <= MAX_REPEATS);
            let disjoint = |a: &Repeat, b: &Repeat| {
                a.range.end <= b.range.start || b.range.end <= a.range.start
            };
            let pairs = repeats
                .iter()
                .enumerate()
                .flat_map(|(i, a)| repeats[..i].iter().map(move |b| (a, b)));
            pairs.for_each(|(a, b)| assert!(disjoint(a, b), "{a:?} {b:?}"));
        }
    }

    /// TIME-17.
    #[test]
    fn bytes_that_do_not_arrive_are_sent_twice_and_then_packet_by_packet() {
        let mut line = Line::new(vec![true; PACKETS]);
        let all: Vec<usize> = (0..100).collect();
        let answers: Vec<_> = (0..5).map(|_| line.ask(0..100)).collect();
        assert_eq!(answers, [all.clone(), all, vec![0], vec![0], vec![0]]);
    }

    #[test]
    fn each_packet_that_arrives_brings_two() {
        let mut line = Line::new(vec![true; PACKETS]);
        (0..3).for_each(|_| drop(line.ask(0..100)));
        assert_eq!(line.ask(1..100), [1, 2]);
        assert_eq!(line.ask(3..100), [3, 4, 5, 6]);
        assert_eq!(line.ask(5..100), [5, 6, 7, 8], "two have arrived");
        assert_eq!(line.ask(5..100), [5], "none has");
        assert_eq!(line.ask(6..100), [6, 7]);
        assert_eq!(line.ask(60..100).len(), 40, "most have");
    }

    #[test]
    fn gaps_are_judged_each_by_itself() {
        let mut line = Line::new(vec![true; PACKETS]);
        (0..3).for_each(|_| drop(line.ask(0..50)));
        assert_eq!(line.ask(0..10), [0]);
        assert_eq!(line.ask(12..50), [12, 13, 14, 15], "10 and 11 have arrived");
        assert_eq!(line.ask(70..80).len(), 10, "not asked for before");
        assert_eq!(line.ask(72..80).len(), 8, "once");
        assert_eq!(line.ask(1..10), [1, 2]);
        assert_eq!(line.ask(74..80), [74, 75, 76, 77], "twice");
    }

    /// Bytes waiting for the link are requested again: they are sent once, and count once.
    #[test]
    fn bytes_that_wait_are_not_asked_for_again() {
        let mut again = Retransmission::default();
        for _ in 0..9 {
            assert!(again.add(0..1_000, |_| false, |offset| offset + 10));
            assert!(again.add(500..600, |_| false, |offset| offset + 10));
        }
        assert_eq!((again.bytes(), again.repeats[0].times), (1_000, 1));
    }

    /// Two RESENDs of 37 bytes brought 40,000 bytes, again and again: the second one showed that
    /// bytes had arrived, and the first one requested them once more.
    #[test]
    fn bytes_arrive_once() {
        let mut line = Line::new(vec![true; PACKETS]);
        (0..2).for_each(|_| drop(line.ask(0..40)));
        let sent: usize = (0..100).map(|_| line.ask(0..40).len() + line.ask(10..40).len()).sum();
        assert!(sent <= 200 + 2 * 10, "RETRANSMISSION-3: {sent} packets for 200 RESENDs");
        let shown: Vec<usize> = (11..20).map(|start| line.ask(start..40).len()).collect();
        assert_eq!(shown, [2; 9], "what arrives later counts");
    }

    /// A receiver that asks for many separate bytes does not make the next request expensive.
    #[test]
    fn few_ranges_wait() {
        let mut again = Retransmission::default();
        for start in (0..1_000_000).step_by(100) {
            let _ = again.add(start..start + 10, |_| false, |offset| offset + 10);
            let sizes = [again.wanted.count(), again.asked.count(), again.arrived.count()];
            assert!(sizes.iter().all(|size| *size <= 2 * MAX_WANTED), "{sizes:?}");
        }
        assert!(!again.add(999_900..999_910, |_| false, |offset| offset + 10));
    }

    /// Bytes in the middle of a request are in flight: a request around them does not make them
    /// lost.
    #[test]
    fn bytes_in_flight_stay_in_flight_when_those_around_them_are_requested() {
        let mut again = Retransmission::default();
        let at = |nanos| Instant::from_nanos(nanos);
        let packet_end = |offset: u64| offset - offset % 10 + 10;
        let mut send = |asked: Range<u32>, now: u64| {
            let _ = again.add(asked, |sent| sent > at(now.saturating_sub(100)), packet_end);
            let mut bytes = 0;
            while let Some(range) = again.first() {
                again.take_below(range.end);
                again.note_sent(&range, at(now));
                bytes += range.len();
            }
            bytes
        };
        assert_eq!(send(40..60, 1_000), 20);
        assert_eq!(send(0..100, 1_050), 80, "around them");
        assert_eq!((send(40..60, 1_060), send(0..100, 1_070)), (0, 0));
        assert_eq!(send(40..60, 1_200), 20);
    }

    proptest! {
        /// TIME-17: whatever is lost, a message is sent again twice, once per RESEND for a packet
        /// of it, and twice as fast as it arrives. After the losses end, the packets sent double
        /// with each RESEND.
        #[test]
        fn a_message_is_sent_again_as_its_bytes_arrive(
            lacks in proptest::collection::vec(any::<bool>(), PACKETS),
            all_are_lost in any::<bool>(),
            mut losses in proptest::collection::vec(0u8..10, 0..2_000),
            share in 0u8..=10,
        ) {
            let mut line = Line::new(if all_are_lost { vec![true; PACKETS] } else { lacks });
            let before = line.lacking();
            while !losses.is_empty() && line.lacking() > 0 {
                line.round(|| losses.pop().is_some_and(|number| number >= share));
                let arrived = before - line.lacking();
                let most = usize::from(FULL_REPEATS) * before + 2 * arrived + line.resends;
                prop_assert!(line.packets <= most, "{} > {most}", line.packets);
            }
            let mut rounds = 0;
            while line.lacking() > 0 {
                line.round(|| true);
                rounds += 1;
            }
            prop_assert!(rounds <= PACKETS.ilog2() + 1, "{rounds} rounds");
        }

        #[test]
        fn any_resends_leave_sound_ranges(
            asked in proptest::collection::vec((0usize..PACKETS, 1usize..PACKETS), 0..200),
        ) {
            let mut line = Line::new(vec![true; PACKETS]);
            for (start, length) in asked {
                line.ask(start..(start + length).min(PACKETS));
                line.check();
            }
        }
    }
}
