//! Where are the packets that are under way?
//!
//! In one table whose places are used again, the one freed last first, so that it stays in the cache. What
//! moves through queues and events is the place's number. The queues of ports are linked through the table
//! ([`Packets::next`]): a queue needs no memory of its own.

use crate::packet::Packet;

/// A place in the table.
pub(super) type Place = u32;

/// No place: the end of a queue.
pub(super) const NOWHERE: Place = u32::MAX;

/// Packets under way.
#[derive(Debug)]
pub(super) struct Packets<B> {
    /// Free places hold what was there last.
    places: Vec<Entry>,
    bodies: Vec<B>,
    free: Vec<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: Packet,
    /// What stands behind it in its queue.
    next: Place,
}

impl<B: Default> Packets<B> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), bodies: Vec::new(), free: Vec::new() }
    }

    /// A place for the packet that `write` writes, unless it says that there is none.
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
    /// Frees the place of a packet.
    #[inline]
    pub(super) fn remove(&mut self, place: Place) {
        self.free.push(place);
    }

    /// The packet at a place.
    #[inline]
    pub(super) fn get(&self, place: Place) -> &Packet {
        &self.places[place as usize].packet
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: Place) -> &mut Packet {
        &mut self.places[place as usize].packet
    }

    /// What its hosts make of it.
    #[inline]
    pub(super) fn body(&self, place: Place) -> &B {
        &self.bodies[place as usize]
    }

    #[inline]
    pub(super) fn body_mut(&mut self, place: Place) -> &mut B {
        &mut self.bodies[place as usize]
    }

    /// What stands behind this packet in its queue.
    #[inline]
    pub(super) fn next(&self, place: Place) -> Place {
        self.places[place as usize].next
    }

    /// Puts `next` behind this packet.
    #[inline]
    pub(super) fn link(&mut self, place: Place, next: Place) {
        self.places[place as usize].next = next;
    }

    /// Packets under way.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
