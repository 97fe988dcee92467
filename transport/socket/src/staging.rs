//! Staging: collects small packets for a common send.
//!
//! Copying a small packet is far cheaper than a separate system call. Each packet is copied into a
//! [`Group`] of similar packets, which leaves in one call. A group accepts packets of any message,
//! in sending order, possibly interleaved with packets of other groups.
//!
//! # Invariants
//!
//! - **STAGING-1** Groups leave in the order of their opening.
//! - **STAGING-2** Adding a packet allocates only if its group never had as many bytes; removing
//!   packets never allocates.

use crate::address::Family;
use crate::carrier::Carrier;
use crate::group::{Flow, Group, Sharing};

/// Maximum number of open groups. Chosen by us: the number of peers that a busy server answers in
/// one pass; more peers only cause an earlier system call.
const GROUPS: usize = 32;

/// All groups.
#[derive(Debug)]
pub(crate) struct Staging {
    family: Family,
    carrier: Carrier,
    /// The first `used` groups have packets, in the order of their opening; the others are free.
    groups: Vec<Group>,
    used: usize,
    /// The group of the last packet, which most likely accepts the next one as well. If no packet
    /// is staged, the first group: it is free, but still has the flow of its last packets.
    recent: usize,
}

impl Staging {
    /// Returns an empty staging area for a socket of this family.
    pub(crate) fn new(family: Family, carrier: Carrier) -> Self {
        let groups = std::iter::repeat_with(Group::new).take(GROUPS).collect();
        Self { family, carrier, groups, used: 0, recent: 0 }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Returns the groups with packets, in the order of sending.
    #[inline]
    pub(crate) fn waiting(&mut self) -> &mut [Group] {
        &mut self.groups[..self.used]
    }

    /// Returns the memory for a packet of `len` bytes in the group of the last packet, if it
    /// belongs there: the fast path for the usual case. `is_same` compares a flow with the
    /// packet's.
    #[inline(always)]
    pub(crate) fn place_in_recent(
        &mut self,
        len: usize,
        sharing: Sharing,
        is_same: impl FnOnce(&Flow) -> bool,
    ) -> Option<&mut [u8]> {
        let group = &mut self.groups[self.recent];
        if !group.has_room(len, sharing) || !is_same(&group.flow) {
            return None;
        }
        self.used = self.used.max(self.recent + 1);
        Some(group.append(len))
    }

    /// Returns the memory for a packet of `len` bytes in a group of its flow. `None` if all groups
    /// are in use. The socket can name `flow.to`.
    #[inline]
    pub(crate) fn place(&mut self, flow: &Flow, len: usize, sharing: Sharing) -> Option<&mut [u8]> {
        let waiting = &self.groups[..self.used];
        let recent = waiting.get(self.recent).filter(|group| group.takes(flow, len, sharing));
        if recent.is_none() {
            match waiting.iter().position(|group| group.takes(flow, len, sharing)) {
                Some(index) => self.recent = index,
                None => self.open(flow, len, sharing)?,
            }
        }
        Some(self.groups[self.recent].append(len))
    }

    /// Opens a group for packets of this flow, which becomes the recent one.
    fn open(&mut self, flow: &Flow, len: usize, sharing: Sharing) -> Option<()> {
        let group = self.groups.get_mut(self.used)?;
        let name = self.carrier.name(flow.to, self.family).expect("the socket can name the peer");
        group.open(flow, name, len, sharing);
        self.recent = self.used;
        self.used += 1;
        Some(())
    }

    /// Adds one group (SOCKET-1).
    #[cold]
    pub(crate) fn grow(&mut self) {
        self.groups.push(Group::new());
    }

    /// Frees the finished groups, which are the first ones (STAGING-1).
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
    use std::net::SocketAddr;

    fn flow(peer: u8) -> Flow {
        Flow { to: SocketAddr::from(([10, 0, 0, peer], 1)), from: None, class: 0, port: 0 }
    }

    fn put(staging: &mut Staging, flow: &Flow, packet: &str, last: bool) -> bool {
        put_sharing(staging, flow, packet, Sharing::Segments { last })
    }

    fn put_sharing(staging: &mut Staging, flow: &Flow, packet: &str, sharing: Sharing) -> bool {
        let place = staging.place(flow, packet.len(), sharing);
        place.map(|place| place.copy_from_slice(packet.as_bytes())).is_some()
    }

    /// Returns the groups, as `peer:bytes`.
    fn groups(staging: &mut Staging) -> Vec<String> {
        let text = |group: &Group| {
            format!("{}:{}", group.flow.to.ip(), String::from_utf8_lossy(group.unsent()))
        };
        staging.waiting().iter().map(text).collect()
    }

    #[test]
    fn equal_packets_share_a_group_whatever_comes_between() {
        let mut staging = Staging::new(Family::V4, Carrier::Udp);
        for (peer, packet) in [(1, "aa"), (2, "bb"), (1, "cc"), (1, "ddd"), (2, "ee"), (1, "ff")] {
            assert!(put(&mut staging, &flow(peer), packet, false));
        }
        assert_eq!(groups(&mut staging), ["10.0.0.1:aaccff", "10.0.0.2:bbee", "10.0.0.1:ddd"]);
    }

    #[test]
    fn a_shorter_last_packet_closes_its_group() {
        let mut staging = Staging::new(Family::V4, Carrier::Udp);
        for (packet, last) in [("aaaa", false), ("bbbb", true), ("c", true), ("dddd", false)] {
            assert!(put(&mut staging, &flow(1), packet, last));
        }
        assert_eq!(groups(&mut staging), ["10.0.0.1:aaaabbbbc", "10.0.0.1:dddd"], "GROUP-1");
    }

    #[test]
    fn a_shorter_packet_of_another_burst_opens_its_own_group() {
        let mut staging = Staging::new(Family::V4, Carrier::Udp);
        for packet in ["aaaa", "b", "cccc"] {
            assert!(put(&mut staging, &flow(1), packet, false));
        }
        assert_eq!(groups(&mut staging), ["10.0.0.1:aaaacccc", "10.0.0.1:b"]);
    }

    #[test]
    fn packets_of_any_size_share_a_datagram_if_they_may() {
        let mut staging = Staging::new(Family::V4, Carrier::Udp);
        let (shared, alone) = (Sharing::Datagram { limit: 6 }, Sharing::of(0, false));
        let longer = Sharing::of(7, true);
        for (packet, sharing) in [
            ("aa", shared),
            ("bbb", shared),
            ("c", alone),
            ("dd", shared),
            ("e", shared),
            ("f", longer),
        ] {
            assert!(put_sharing(&mut staging, &flow(1), packet, sharing));
        }
        assert_eq!(
            groups(&mut staging),
            ["10.0.0.1:aabbb", "10.0.0.1:c", "10.0.0.1:dde", "10.0.0.1:f"],
            "GROUP-3"
        );
        let counts = staging.waiting().iter().map(|group| group.packets_in(group.unsent().len()));
        assert_eq!(counts.collect::<Vec<_>>(), [2, 1, 2, 1]);
    }

    #[test]
    fn flows_that_differ_do_not_share_a_group() {
        let mut staging = Staging::new(Family::V4, Carrier::Udp);
        let base = flow(1);
        let from = Some("10.0.0.9".parse().unwrap());
        for flow in
            [base, Flow { class: 4, ..base }, Flow { from, ..base }, Flow { port: 1, ..base }]
        {
            assert!(put(&mut staging, &flow, "aa", false));
        }
        assert_eq!(staging.waiting().len(), 4);
    }

    #[test]
    fn a_group_is_limited_to_one_send() {
        for (len, most) in [(1, 64), (1000, 64), (1472, 44), (8972, 7), (40_000, 1), (65_507, 1)] {
            let mut staging = Staging::new(Family::V4, Carrier::Udp);
            let packet = "x".repeat(len);
            for _ in 0..=most {
                assert!(put(&mut staging, &flow(1), &packet, false));
            }
            assert_eq!(staging.waiting()[0].unsent().len(), most * len, "GROUP-2");
            assert_eq!(staging.waiting().len(), 2);
        }
    }

    #[test]
    fn without_free_groups_staging_can_grow() {
        let mut staging = Staging::new(Family::V4, Carrier::Udp);
        for peer in 0..GROUPS {
            assert!(put(&mut staging, &flow(peer as u8), "aa", false));
        }
        assert!(!put(&mut staging, &flow(200), "bb", false));
        assert!(put(&mut staging, &flow(3), "cc", false), "an old peer still has its group");
        staging.grow();
        assert!(put(&mut staging, &flow(200), "bb", false));
    }

    #[test]
    fn sent_groups_are_free_again() {
        let mut staging = Staging::new(Family::V4, Carrier::Udp);
        for peer in 1..=3 {
            assert!(put(&mut staging, &flow(peer), "aa", false));
            assert!(put(&mut staging, &flow(peer), "bb", false));
        }
        staging.waiting()[0].advance(4);
        staging.waiting()[1].advance(2);
        staging.remove_done();
        assert_eq!(groups(&mut staging), ["10.0.0.2:bb", "10.0.0.3:aabb"], "STAGING-1");
        staging.waiting()[0].advance(2);
        staging.waiting()[1].advance(4);
        staging.remove_done();
        assert!(staging.is_empty());
        assert!(put(&mut staging, &flow(1), "zz", false));
        assert_eq!(groups(&mut staging), ["10.0.0.1:zz"], "old bytes are removed");
    }
}
