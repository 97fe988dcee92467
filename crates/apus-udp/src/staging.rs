//! Where do small packets wait for each other?
//!
//! Copying a small packet is far cheaper than a system call of its own: packets of equal size that go
//! the same way are put one behind the other into a [`Group`], which then leaves in one call. A group
//! takes packets of any message, in the order in which they come; other packets may come in between.
//!
//! # Invariants
//!
//! - **G1** All packets of a group have [`Group::segment`] bytes; the last one may have fewer, and
//!   then the group takes no more.
//! - **G2** A group that has more than one packet has at most [`MAX_SEGMENTS`] and [`MAX_BYTES`].
//! - **G3** Groups leave in the order in which they were opened.

use std::net::{IpAddr, SocketAddr};

use crate::address::{self, Family, RawAddress};
use crate::class::UsualClass;
use crate::cmsg::Control;

/// Packets that one send may have. Source: `UDP_MAX_SEGMENTS` in Linux `include/linux/udp.h`: 64, and
/// 128 since 6.9; 64 is enough, and works everywhere.
pub(crate) const MAX_SEGMENTS: usize = 64;

/// Bytes that one send of several packets may have: 65535, less the headers of IPv6 and UDP. The
/// kernel builds one packet of that size before it cuts it (IPv4 would allow 20 bytes more).
pub(crate) const MAX_BYTES: usize = 65_535 - 40 - 8;

/// Bytes of a group's memory: enough for any UDP packet.
const GROUP_MEMORY: usize = 1 << 16;

/// Groups that can wait at the same time. Ours: as many peers as a busy server answers in one turn;
/// more only means an earlier system call.
const GROUPS: usize = 32;

/// The way that packets go. Only packets of the same flow share a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    /// As the engine names it: perhaps a mapped address.
    pub(crate) to: SocketAddr,
    /// `None` lets the system choose.
    pub(crate) from: Option<IpAddr>,
    /// Traffic class byte without the ECN bits.
    pub(crate) class: u8,
}

impl Flow {
    /// Writes what the kernel must know about a send of this flow.
    #[inline]
    pub(crate) fn control(
        &self,
        control: &mut Control,
        segment: Option<usize>,
        class: &mut UsualClass,
    ) {
        control.clear();
        if let Some(segment) = segment {
            control.segment(segment);
        }
        if class.is_unusual(self.class) {
            control.traffic_class(self.class, Family::of(address::canonical(self.to)));
        }
        if let Some(from) = self.from {
            control.source(from.to_canonical());
        }
    }
}

/// How the packets of a group leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// In one send, if the system can.
    Merged,
    /// Each in a send of its own, because together they were refused. `refused`: and one of them by
    /// itself, too.
    OneByOne { refused: bool },
}

/// Packets that wait to leave in one send.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) flow: Flow,
    /// `flow.to` as the kernel wants it.
    pub(crate) name: RawAddress,
    /// Control messages of the next send.
    pub(crate) control: Control,
    /// Bytes of each packet but the last.
    pub(crate) segment: usize,
    pub(crate) manner: Manner,
    /// Bytes that the group may hold; equal to `filled` when it is closed.
    room: usize,
    /// Bytes of packets, from the beginning of `memory`.
    filled: usize,
    /// Bytes of these that are sent or given up: whole packets.
    sent: usize,
    memory: Box<[u8]>,
}

impl Group {
    fn new() -> Self {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        Self {
            flow: Flow { to: nowhere, from: None, class: 0 },
            name: RawAddress::new(nowhere, Family::V4).expect("an IPv4 address"),
            control: Control::new(),
            segment: 0,
            manner: Manner::Merged,
            room: 0, // Takes nothing before it is opened.
            filled: 0,
            sent: 0,
            memory: vec![0; GROUP_MEMORY].into(),
        }
    }

    fn open(&mut self, flow: &Flow, name: RawAddress, segment: usize) {
        self.flow = *flow;
        self.name = name;
        self.segment = segment;
        self.clear();
    }

    /// Forgets the packets, but not their flow and size.
    #[inline]
    fn clear(&mut self) {
        self.manner = Manner::Merged;
        self.room = (MAX_SEGMENTS * self.segment).min(MAX_BYTES).max(self.segment);
        self.filled = 0;
        self.sent = 0;
    }

    /// Whether a packet of this size fits; `last` is a packet that may be shorter (G1).
    #[inline(always)]
    fn has_room(&self, len: usize, last: bool) -> bool {
        self.filled + len <= self.room && (len == self.segment || last && len < self.segment)
    }

    #[inline]
    fn takes(&self, flow: &Flow, len: usize, last: bool) -> bool {
        self.has_room(len, last) && self.flow == *flow
    }

    /// Memory for the next packet. It fits.
    #[inline(always)]
    fn append(&mut self, len: usize) -> &mut [u8] {
        let start = self.filled;
        self.filled += len;
        if len < self.segment {
            self.room = self.filled;
        }
        &mut self.memory[start..self.filled]
    }

    /// Packets that are neither sent nor given up, one behind the other.
    #[inline]
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.memory[self.sent..self.filled]
    }

    /// Number of packets in `bytes` of the group.
    #[inline]
    pub(crate) fn packets_in(&self, bytes: usize) -> usize {
        // Most often one; a division takes its time.
        if bytes <= self.segment { 1 } else { bytes.div_ceil(self.segment) }
    }

    /// The next `bytes` are sent or given up.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.sent += bytes;
        debug_assert!(self.sent <= self.filled);
    }

    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.sent == self.filled
    }
}

/// All groups.
#[derive(Debug)]
pub(crate) struct Staging {
    family: Family,
    /// The first `used` wait, in the order in which they were opened; the others are free.
    groups: Vec<Group>,
    used: usize,
    /// The group that took the last packet, which most likely takes the next one too. When nothing
    /// waits, the first one: it is free then, but remembers the flow of its last packets.
    recent: usize,
}

impl Staging {
    /// For a socket of this family.
    pub(crate) fn new(family: Family) -> Self {
        let groups = std::iter::repeat_with(Group::new).take(GROUPS).collect();
        Self { family, groups, used: 0, recent: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The groups that wait, the first to be sent first.
    #[inline]
    pub(crate) fn waiting(&mut self) -> &mut [Group] {
        &mut self.groups[..self.used]
    }

    /// Memory for a packet of `len` bytes in the group that took the last packet, if it belongs there
    /// too: the usual case, at the least cost. `is_like` says whether a flow is the packet's.
    #[inline(always)]
    pub(crate) fn place_like_last(
        &mut self,
        len: usize,
        is_like: impl FnOnce(&Flow) -> bool,
    ) -> Option<&mut [u8]> {
        let group = &mut self.groups[self.recent];
        if !group.has_room(len, false) || !is_like(&group.flow) {
            return None;
        }
        self.used = self.used.max(self.recent + 1);
        Some(group.append(len))
    }

    /// Memory for a packet of `len` bytes, in a group where it belongs. `last`: it may close a group
    /// of longer packets, being the last one of its burst. `None`: all groups are in use. The socket
    /// can name `flow.to`.
    #[inline]
    pub(crate) fn place(&mut self, flow: &Flow, len: usize, last: bool) -> Option<&mut [u8]> {
        let waiting = &self.groups[..self.used];
        let recent = waiting.get(self.recent).filter(|group| group.takes(flow, len, last));
        if recent.is_none() {
            match waiting.iter().position(|group| group.takes(flow, len, last)) {
                Some(index) => self.recent = index,
                None => self.open(flow, len)?,
            }
        }
        Some(self.groups[self.recent].append(len))
    }

    /// Opens a group for packets of this flow and makes it the recent one.
    fn open(&mut self, flow: &Flow, len: usize) -> Option<()> {
        let group = self.groups.get_mut(self.used)?;
        let name = RawAddress::new(flow.to, self.family).expect("the socket can name the peer");
        group.open(flow, name, len);
        self.recent = self.used;
        self.used += 1;
        Some(())
    }

    /// Makes one more group than usual (invariant U1).
    #[cold]
    pub(crate) fn grow(&mut self) {
        self.groups.push(Group::new());
    }

    /// Frees the groups that are done; these are the first ones (G3).
    #[inline]
    pub(crate) fn remove_done(&mut self) {
        let done = self.waiting().iter().take_while(|group| group.is_done()).count();
        if done == self.used {
            self.used = 0;
            self.groups[0].clear();
        } else {
            self.groups[..self.used].rotate_left(done);
            self.used -= done;
        }
        self.recent = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(peer: u8) -> Flow {
        Flow { to: SocketAddr::from(([10, 0, 0, peer], 1)), from: None, class: 0 }
    }

    fn put(staging: &mut Staging, flow: &Flow, packet: &str, last: bool) -> bool {
        let place = staging.place(flow, packet.len(), last);
        place.map(|place| place.copy_from_slice(packet.as_bytes())).is_some()
    }

    /// The groups, as `peer:bytes`.
    fn groups(staging: &mut Staging) -> Vec<String> {
        let text = |group: &Group| {
            format!("{}:{}", group.flow.to.ip(), String::from_utf8_lossy(group.unsent()))
        };
        staging.waiting().iter().map(text).collect()
    }

    #[test]
    fn equal_packets_join_whatever_comes_between() {
        let mut staging = Staging::new(Family::V4);
        for (peer, packet) in [(1, "aa"), (2, "bb"), (1, "cc"), (1, "ddd"), (2, "ee"), (1, "ff")] {
            assert!(put(&mut staging, &flow(peer), packet, false));
        }
        assert_eq!(groups(&mut staging), ["10.0.0.1:aaccff", "10.0.0.2:bbee", "10.0.0.1:ddd"]);
    }

    #[test]
    fn a_shorter_last_packet_closes_its_group() {
        let mut staging = Staging::new(Family::V4);
        for (packet, last) in [("aaaa", false), ("bbbb", true), ("c", true), ("dddd", false)] {
            assert!(put(&mut staging, &flow(1), packet, last));
        }
        assert_eq!(groups(&mut staging), ["10.0.0.1:aaaabbbbc", "10.0.0.1:dddd"], "G1");
    }

    #[test]
    fn a_shorter_packet_of_another_burst_does_not() {
        let mut staging = Staging::new(Family::V4);
        for packet in ["aaaa", "b", "cccc"] {
            assert!(put(&mut staging, &flow(1), packet, false));
        }
        assert_eq!(groups(&mut staging), ["10.0.0.1:aaaacccc", "10.0.0.1:b"]);
    }

    #[test]
    fn flows_that_differ_in_anything_do_not_join() {
        let mut staging = Staging::new(Family::V4);
        let base = flow(1);
        let from = Some("10.0.0.9".parse().unwrap());
        for flow in [base, Flow { class: 4, ..base }, Flow { from, ..base }] {
            assert!(put(&mut staging, &flow, "aa", false));
        }
        assert_eq!(staging.waiting().len(), 3);
    }

    #[test]
    fn a_group_holds_what_one_send_can() {
        for (len, most) in [(1, 64), (1000, 64), (1472, 44), (8972, 7), (40_000, 1), (65_507, 1)] {
            let mut staging = Staging::new(Family::V4);
            let packet = "x".repeat(len);
            for _ in 0..=most {
                assert!(put(&mut staging, &flow(1), &packet, false));
            }
            assert_eq!(staging.waiting()[0].unsent().len(), most * len, "G2");
            assert_eq!(staging.waiting().len(), 2);
        }
    }

    #[test]
    fn a_full_house_is_seen_and_can_grow() {
        let mut staging = Staging::new(Family::V4);
        for peer in 0..GROUPS {
            assert!(put(&mut staging, &flow(peer as u8), "aa", false));
        }
        assert!(!put(&mut staging, &flow(200), "bb", false));
        assert!(put(&mut staging, &flow(3), "cc", false), "an old peer still has its group");
        staging.grow();
        assert!(put(&mut staging, &flow(200), "bb", false));
    }

    #[test]
    fn what_is_sent_makes_room() {
        let mut staging = Staging::new(Family::V4);
        for peer in 1..=3 {
            assert!(put(&mut staging, &flow(peer), "aa", false));
            assert!(put(&mut staging, &flow(peer), "bb", false));
        }
        staging.waiting()[0].advance(4);
        staging.waiting()[1].advance(2);
        staging.remove_done();
        assert_eq!(groups(&mut staging), ["10.0.0.2:bb", "10.0.0.3:aabb"], "G3");
        staging.waiting()[0].advance(2);
        staging.waiting()[1].advance(4);
        staging.remove_done();
        assert!(staging.is_empty());
        assert!(put(&mut staging, &flow(1), "zz", false));
        assert_eq!(groups(&mut staging), ["10.0.0.1:zz"], "old bytes are forgotten");
    }
}
