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
    places: Vec<Option<Packet<B>>>,
    /// What stands behind each packet in its queue.
    next: Vec<Place>,
    free: Vec<Place>,
}

impl<B> Packets<B> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), next: Vec::new(), free: Vec::new() }
    }

    /// Puts a packet into the table.
    #[inline]
    pub(super) fn insert(&mut self, packet: Packet<B>) -> Place {
        if let Some(place) = self.free.pop() {
            self.places[place as usize] = Some(packet);
            place
        } else {
            self.places.push(Some(packet));
            self.next.push(NOWHERE);
            (self.places.len() - 1) as Place
        }
    }

    /// Takes a packet out of the table.
    #[inline]
    pub(super) fn remove(&mut self, place: Place) -> Packet<B> {
        self.free.push(place);
        self.places[place as usize]
            .take()
            .expect("P1: events and queues name packets that are there")
    }

    /// The packet at a place.
    #[inline]
    pub(super) fn get(&self, place: Place) -> &Packet<B> {
        self.places[place as usize].as_ref().expect("P1")
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: Place) -> &mut Packet<B> {
        self.places[place as usize].as_mut().expect("P1")
    }

    /// What stands behind this packet in its queue.
    #[inline]
    pub(super) fn next(&self, place: Place) -> Place {
        self.next[place as usize]
    }

    /// Puts `next` behind this packet.
    #[inline]
    pub(super) fn link(&mut self, place: Place, next: Place) {
        self.next[place as usize] = next;
    }

    /// Packets under way.
    pub(super) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }
}
