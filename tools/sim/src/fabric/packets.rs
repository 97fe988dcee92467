//! Table of the packets on links and in queues.
//!
//! Freed entries are reused, the last one first, so that it is still in the cache. Queues and
//! events hold the index of the entry. The queues of ports are linked through the table
//! ([`Packets::next`]), so a queue needs no memory of its own.

use crate::packet::Packet;

/// Index of an entry.
pub(super) type Place = u32;

/// No entry: the end of a queue.
pub(super) const NOWHERE: Place = u32::MAX;

/// Packets on links and in queues.
#[derive(Debug)]
pub(super) struct Packets<B> {
    /// Free entries keep their last content.
    places: Vec<Entry>,
    bodies: Vec<B>,
    free: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: Packet,
    /// Next packet in the same queue.
    next: Place,
}

impl<B: Default> Packets<B> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), bodies: Vec::new(), free: Vec::new() }
    }

    /// Adds the packet that `write` writes, unless `write` returns `false`.
    #[inline]
    pub(super) fn insert(
        &mut self,
        write: impl FnOnce(&mut Packet, &mut B) -> bool,
    ) -> Option<Place> {
        if self.free.is_empty() {
            self.free.push(self.places.len() as Place);
            self.places.push(Entry { packet: Packet::default(), next: NOWHERE });
            self.bodies.push(B::default());
        }
        let place = *self.free.last()?;
        let index = place as usize;
        write(&mut self.places[index].packet, &mut self.bodies[index]).then(|| {
            self.free.pop();
            place
        })
    }
}

impl<B> Packets<B> {
    /// Frees the entry of a packet.
    #[inline]
    pub(super) fn remove(&mut self, place: Place) {
        self.free.push(place);
    }

    /// Returns the header of a packet.
    #[inline]
    pub(super) fn get(&self, place: Place) -> &Packet {
        &self.places[place as usize].packet
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: Place) -> &mut Packet {
        &mut self.places[place as usize].packet
    }

    /// Returns the body of a packet, which only hosts interpret.
    #[inline]
    pub(super) fn body(&self, place: Place) -> &B {
        &self.bodies[place as usize]
    }

    #[inline]
    pub(super) fn body_mut(&mut self, place: Place) -> &mut B {
        &mut self.bodies[place as usize]
    }

    /// Returns the next packet in the same queue.
    #[inline]
    pub(super) fn next(&self, place: Place) -> Place {
        self.places[place as usize].next
    }

    /// Appends `next` to this packet.
    #[inline]
    pub(super) fn link(&mut self, place: Place, next: Place) {
        self.places[place as usize].next = next;
    }

    /// Returns the number of packets.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
