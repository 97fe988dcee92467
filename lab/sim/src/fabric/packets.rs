//! Table of the packets on links and in queues.
//!
//! Freed entries are reused, most recently freed first, while they are still in the cache. Queues
//! and events hold the index of the entry. The queues of ports are linked through the table
//! ([`Packets::next`]), so a queue needs no additional memory.

use crate::packet::Packet;

/// Index of an entry.
pub(super) type PacketIndex = u32;

/// No entry: the end of a queue.
pub(super) const NONE: PacketIndex = u32::MAX;

/// Packets on links and in queues.
#[derive(Debug)]
pub(super) struct Packets<B> {
    /// Free entries keep their last content.
    entries: Vec<Entry>,
    bodies: Vec<B>,
    free: Vec<PacketIndex>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: Packet,
    /// Next packet in the same queue.
    next: PacketIndex,
}

impl<B: Default> Packets<B> {
    pub(super) const fn new() -> Self {
        Self { entries: Vec::new(), bodies: Vec::new(), free: Vec::new() }
    }

    /// Adds the packet that `write` writes, unless `write` returns `false`.
    #[inline]
    pub(super) fn insert(
        &mut self,
        write: impl FnOnce(&mut Packet, &mut B) -> bool,
    ) -> Option<PacketIndex> {
        if self.free.is_empty() {
            self.free.push(self.entries.len() as PacketIndex);
            self.entries.push(Entry { packet: Packet::default(), next: NONE });
            self.bodies.push(B::default());
        }
        let index = *self.free.last()?;
        let at = index as usize;
        write(&mut self.entries[at].packet, &mut self.bodies[at]).then(|| {
            self.free.pop();
            index
        })
    }
}

impl<B> Packets<B> {
    /// Frees the entry of a packet.
    #[inline]
    pub(super) fn remove(&mut self, index: PacketIndex) {
        self.free.push(index);
    }

    /// Returns the header of a packet.
    #[inline]
    pub(super) fn get(&self, index: PacketIndex) -> &Packet {
        &self.entries[index as usize].packet
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: PacketIndex) -> &mut Packet {
        &mut self.entries[index as usize].packet
    }

    /// Returns the body of a packet, which only hosts interpret.
    #[inline]
    pub(super) fn body(&self, index: PacketIndex) -> &B {
        &self.bodies[index as usize]
    }

    #[inline]
    pub(super) fn body_mut(&mut self, index: PacketIndex) -> &mut B {
        &mut self.bodies[index as usize]
    }

    /// Returns the next packet in the same queue.
    #[inline]
    pub(super) fn next(&self, index: PacketIndex) -> PacketIndex {
        self.entries[index as usize].next
    }

    /// Appends `next` to this packet.
    #[inline]
    pub(super) fn link(&mut self, index: PacketIndex, next: PacketIndex) {
        self.entries[index as usize].next = next;
    }

    /// Returns the number of packets.
    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
