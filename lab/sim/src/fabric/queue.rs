//! Transmit queue of a port: strict priority over eight levels, each first in, first out.
//!
//! # Invariants
//!
//! - **QUEUE-1**: A bit of `waiting` is set exactly if its level is not empty.

use super::packets::{NONE, PacketIndex, Packets};

/// Priority levels of a port. Source: docs/reference/papers.md, *Simulation set-up*, and IEEE
/// 802.1Q.
pub(super) const LEVELS: usize = 8;

/// Queues of a port.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    first: [PacketIndex; LEVELS],
    last: [PacketIndex; LEVELS],
    waiting: u8,
}

impl Queue {
    pub(super) const fn new() -> Self {
        Self { first: [NONE; LEVELS], last: [NONE; LEVELS], waiting: 0 }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Appends a packet to its level.
    #[inline]
    pub(super) fn push<B>(&mut self, packets: &mut Packets<B>, index: PacketIndex) {
        let level = usize::from(packets.get(index).priority) % LEVELS;
        packets.link(index, NONE);
        if self.waiting & (1 << level) == 0 {
            self.first[level] = index;
            self.waiting |= 1 << level;
        } else {
            packets.link(self.last[level], index);
        }
        self.last[level] = index;
    }

    /// Removes the packet that leaves next.
    #[inline]
    pub(super) fn pop<B>(&mut self, packets: &Packets<B>) -> Option<PacketIndex> {
        let level = self.waiting.checked_ilog2()? as usize;
        let index = self.first[level];
        self.first[level] = packets.next(index);
        if self.first[level] == NONE {
            self.waiting &= !(1 << level);
        }
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Packet;

    #[test]
    fn the_highest_level_leaves_first_and_each_level_in_order() {
        let mut packets = Packets::new();
        let mut queue = Queue::new();
        for (body, priority) in [(0, 3), (1, 7), (2, 0), (3, 7), (4, 3)] {
            let write = |packet: &mut Packet, index: &mut i32| {
                packet.priority = priority;
                *index = body;
                true
            };
            let index = packets.insert(write).unwrap();
            queue.push(&mut packets, index);
        }
        let mut order = Vec::new();
        while let Some(index) = queue.pop(&packets) {
            order.push(*packets.body(index));
            packets.remove(index);
        }
        assert_eq!(order, [1, 3, 0, 4, 2]);
        assert!(queue.is_empty());
        assert_eq!(packets.len(), 0);
    }
}
