//! On-link position: sees the packets to and from one host, and sends them again, at any later time
//! and in any order.
//!
//! It does not change packets: a host that can read sessions can also send in them, and only
//! encryption protects against that.

use super::contract::{Attacker, HostilePacket};
use super::taps::{Link, Seen};
use crate::generator::random::SeededRng;

/// An attacker that sees the datagrams of one host.
#[derive(Debug)]
pub(super) struct OnLink {
    link: Link,
}

impl OnLink {
    pub(super) const fn new(link: Link) -> Self {
        Self { link }
    }
}

impl Attacker for OnLink {
    fn next_packet(&mut self, rng: &mut SeededRng) -> Option<HostilePacket> {
        let link = self.link.borrow();
        // A scale over all orders of magnitude prefers recent datagrams.
        let back = rng.scale(1, link.len().max(1) as u64) as usize;
        let Seen { from, to, bytes } = link.get(link.len().checked_sub(back)?)?.clone();
        Some(HostilePacket { claimed: from, to, bytes })
    }
}
