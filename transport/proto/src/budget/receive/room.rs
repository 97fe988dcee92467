//! Growth of messages that are being received: room for further grants, and for bytes beyond the
//! granted limit.
//!
//! A message grows only as far as memory, its peer and its host have room. The invariants are those
//! of the receive budget.

use super::{Lack, ReceiveBudget};
use crate::config::Config;
use crate::message::{Claim, MessageIn, Reservation};
use crate::peer::{PeerId, Peers};
use crate::time::Instant;

impl ReceiveBudget {
    /// Reserves room for `positions` positions of a message that has less: more arrives than was
    /// reserved, because its sender had announced more, or because it had given its room back.
    /// Reserves some more if possible, so that this is rare.
    pub(crate) fn extend(
        &mut self,
        now: Instant,
        config: &Config,
        peers: &mut Peers,
        peer: PeerId,
        message: &mut MessageIn,
        positions: u32,
    ) -> Result<(), Lack> {
        let window = if message.is_stalled() { 0 } else { self.window as u32 };
        let wanted = positions.saturating_add(window).min(message.granted()).max(positions);
        let mut room = ReceiveRoom { config, peers, budget: self };
        if room.reserve(peer, message, wanted) || room.reserve(peer, message, positions) {
            return Ok(());
        }
        if room.assure(message) && room.reserve(peer, message, positions) {
            // It may be among the waiting messages, which are retried.
            self.freed |= self.is_waited_for;
            return Ok(());
        }
        let Reservation { positions: before, claim } = message.reservation();
        if u64::from(positions - before) > self.memory_for(claim) {
            self.shortage.note(now);
        }
        Err(Lack::Memory)
    }
}

/// The receive budget, to the module that decides about grants.
#[derive(Debug)]
pub(crate) struct ReceiveRoom<'a> {
    pub(crate) config: &'a Config,
    pub(crate) peers: &'a mut Peers,
    pub(crate) budget: &'a mut ReceiveBudget,
}

impl ReceiveRoom<'_> {
    /// Number of positions from `offset` on that a message from `peer` may be granted, within its
    /// reservation or what can still be reserved.
    pub(crate) fn beyond(&mut self, peer: PeerId, message: &MessageIn, offset: u32) -> u32 {
        let reserved = message.reservation().positions;
        let extent = message.extent();
        // Usually the whole of it is reserved.
        if reserved == extent {
            return extent.saturating_sub(offset);
        }
        let most = u64::from(reserved) + self.growth(peer, message.reservation().claim);
        let limit = if most >= u64::from(extent) {
            u64::from(extent)
        } else {
            most.saturating_sub(self.excess(peer, message).into())
        };
        limit.saturating_sub(u64::from(offset)) as u32
    }

    /// Reserves room for the bytes that a message from `peer` may send after a grant up to
    /// `offset`. Returns whether there is room.
    pub(crate) fn reserve_for_grant(
        &mut self,
        peer: PeerId,
        message: &mut MessageIn,
        offset: u32,
    ) -> bool {
        let reach = self.reach(peer, message, offset);
        self.reserve(peer, message, reach)
    }

    /// Number of positions that may arrive of a message from `peer` that is granted up to `offset`.
    fn reach(&self, peer: PeerId, message: &MessageIn, offset: u32) -> u32 {
        offset.saturating_add(self.excess(peer, message)).min(message.extent())
    }

    /// Most bytes that a message from `peer` may send beyond its granted limit: a packet that
    /// starts below the limit is sent whole. Without room for it, that packet would be dropped on
    /// every transmission.
    fn excess(&self, peer: PeerId, message: &MessageIn) -> u32 {
        self.peers[peer].size.segment().max(message.longest_packet()).saturating_sub(1)
    }

    /// Reserves room for `positions` positions of a message from `peer`, if there is room. Returns
    /// whether they are reserved.
    pub(crate) fn reserve(
        &mut self,
        peer: PeerId,
        message: &mut MessageIn,
        positions: u32,
    ) -> bool {
        let Reservation { positions: before, claim } = message.reservation();
        let more = u64::from(positions.saturating_sub(before));
        if more == 0 {
            return true;
        }
        if more > self.growth(peer, claim) {
            return false;
        }
        if let Some(assured) = self.budget.assured.as_mut()
            && claim == Claim::Assured
        {
            assured.left -= more;
        }
        self.budget.add(self.peers, peer, more);
        message.reserve(Reservation { positions, claim });
        true
    }

    /// Keeps the room up to the end of a long message for it, if no other message has that. Returns
    /// whether it is assured now.
    pub(crate) fn assure(&mut self, message: &mut MessageIn) -> bool {
        self.budget.assure(message)
    }

    /// Whether a message is assured.
    pub(crate) const fn is_one_assured(&self) -> bool {
        self.budget.assured.is_some()
    }

    /// Whether room was freed for waiting messages. Reported once.
    pub(crate) const fn take_freed(&mut self) -> bool {
        let freed = self.budget.freed;
        if freed {
            self.budget.is_waited_for = false;
            self.budget.freed = false;
            self.budget.shortage.retry();
        }
        freed
    }

    /// A message from `peer` waits for room to be granted up to `offset`.
    pub(crate) fn is_waited_for(&mut self, peer: PeerId, message: &MessageIn, offset: u32) {
        let Reservation { positions, claim } = message.reservation();
        let more = self.reach(peer, message, offset).saturating_sub(positions);
        self.budget.is_waited_for = true;
        if u64::from(more) > self.budget.memory_for(claim) {
            self.budget.shortage.wait();
        } else {
            self.peers.with_host(peer).1.is_waited_for = true;
        }
    }

    /// Bytes by which a message from `peer` may grow.
    fn growth(&mut self, peer: PeerId, claim: Claim) -> u64 {
        let config = self.config;
        let room = self.budget.memory_for(claim);
        if claim == Claim::Assured {
            return room; // ROOM-4
        }
        let (entry, host) = self.peers.with_host(peer);
        let of_peer = config.max_receive_bytes_per_peer().saturating_sub(entry.receive_bytes);
        let share = self.budget.quota.most_of_host(claim.size());
        let of_host = share.saturating_sub(host.receive_bytes);
        room.min(of_peer).min(of_host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allowed::Allowed;
    use crate::budget::Beginning;
    use crate::secret::Secret;
    use proptest::prelude::*;

    const MAX: u64 = 1_000_000;

    fn config() -> Config {
        Config::builder()
            .unsched_bytes(10_000)
            .unsched_bytes_max(10_000)
            .max_message(300_000)
            .max_receive_bytes(MAX)
            .max_receive_bytes_per_peer(400_000)
            .max_receive_bytes_per_host(600_000)
            .build()
            .unwrap()
    }

    struct World {
        config: Config,
        budget: ReceiveBudget,
        peers: Peers,
        messages: Vec<(PeerId, MessageIn)>,
    }

    impl World {
        fn new() -> Self {
            let config = config();
            let peers = Peers::new(&config, 1, Secret::new(1));
            let budget = ReceiveBudget::new(&config);
            Self { config, budget, peers, messages: Vec::new() }
        }

        fn begin(&mut self, peer: u8, length: u32, announced: u32) -> Result<(), Lack> {
            let address = ([10, 0, 0, peer / 2], u16::from(peer)).into();
            let (peer, _) = self.peers.find_or_insert(address, Instant::ZERO).unwrap();
            let arrived = 1_000.min(length - 1);
            let allowed = Allowed::at_most(announced, announced);
            let beginning = Beginning { length, announced: allowed, arrived };
            let (budget, peers) = (&mut self.budget, &mut self.peers);
            let room = budget.begin(Instant::ZERO, &self.config, peers, peer, beginning)?;
            let mut message = MessageIn::new(length, announced).with_room(room, Instant::ZERO);
            message.insert(0, &vec![0; beginning.arrived as usize]);
            self.messages.push((peer, message));
            Ok(())
        }

        /// Grants a message some bytes if there is room, and delivers all granted bytes.
        fn grow(&mut self, which: usize, bytes: u32) {
            let (peer, message) = &mut self.messages[which];
            let offset = (message.received() + bytes).min(message.extent());
            let (config, peers, budget) = (&self.config, &mut self.peers, &mut self.budget);
            let mut room = ReceiveRoom { config, peers, budget };
            if !room.reserve(*peer, message, offset) {
                room.assure(message);
                if !room.reserve(*peer, message, offset) {
                    return;
                }
            }
            message.grant(offset, Instant::ZERO);
            message.insert(0, &vec![0; offset as usize]);
            if message.is_complete() {
                let (peer, message) = self.messages.swap_remove(which);
                self.budget.end(&mut self.peers, peer, message.reservation());
            }
        }

        /// ROOM-1 to ROOM-4.
        fn check(&mut self) {
            let reserved = |message: &MessageIn| u64::from(message.reservation().positions);
            let used: u64 = self.messages.iter().map(|(_, message)| reserved(message)).sum();
            assert_eq!(self.budget.bytes(), used, "ROOM-1");
            assert!(self.budget.committed() <= MAX);
            let mut claims = [0; 3];
            for (peer, message) in &self.messages {
                claims[message.reservation().claim as usize] += 1;
                assert!(message.received() <= message.reservation().positions);
                let theirs = self.messages.iter().filter(|(other, _)| other == peer);
                let sum: u64 = theirs.map(|(_, message)| reserved(message)).sum();
                assert_eq!(self.peers[*peer].receive_bytes, sum, "ROOM-1");
                assert!(sum <= 400_000 + 300_000, "ROOM-4");
                assert!(self.peers.host_of(*peer).receive_bytes <= 600_000 + 300_000, "ROOM-4");
            }
            let long = claims[Claim::Long as usize] + claims[Claim::Assured as usize];
            assert!(claims[Claim::Assured as usize] <= 1);
            if claims[Claim::Assured as usize] == 0
                && long > 0
                && claims[Claim::Short as usize] == 0
            {
                let free = MAX * 7 / 8 - self.budget.committed();
                let rests = self.messages.iter().map(|(_, message)| message.missing());
                assert!(free >= rests.min().unwrap().into(), "ROOM-2: {:?}", self.budget);
            }
        }
    }

    proptest! {
        /// CAP-20: in any order of starts, growth and stalls, all messages can be completed, one
        /// after the other.
        #[test]
        fn all_messages_can_end(
            steps in proptest::collection::vec((0u8..4, 0u8..8, 2u32..300_000, 0u32..60_000), 1..120),
        ) {
            let mut world = World::new();
            for (what, peer, length, bytes) in steps {
                let which = length as usize % world.messages.len().max(1);
                match what {
                    0 | 1 => _ = world.begin(peer, length, bytes),
                    2 if !world.messages.is_empty() => world.grow(which, bytes),
                    3 if !world.messages.is_empty() => {
                        let (peer, message) = &mut world.messages[which];
                        world.budget.give_back(&mut world.peers, *peer, message);
                    }
                    _ => {}
                }
                world.check();
            }
            // Round and round, as the granter does it.
            for _ in 0..1_000 {
                for which in (0..world.messages.len()).rev() {
                    world.grow(which, 50_000);
                    world.check();
                }
            }
            prop_assert!(world.messages.is_empty(), "{:?}", world.budget);
            prop_assert_eq!(world.budget.bytes(), 0);
        }
    }

    #[test]
    fn a_long_message_leaves_room_for_short_ones() {
        let mut world = World::new();
        let mut long = 0;
        while world.begin(long, 300_000, 10_000).is_ok() {
            long += 2;
        }
        assert!(world.budget.committed() <= MAX * 7 / 8, "ROOM-3");
        let mut short = 0;
        while world.begin(100 + 2 * short, 10_000, 10_000).is_ok() {
            short += 1;
        }
        assert!(short >= 12, "CAP-19");
        world.check();
    }
}
