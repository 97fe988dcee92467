//! What the transports of a host know of each other.

use std::time::Duration;

use apus_proto::{Instant, Neighbours, Transport};

/// What the transports of a host publish for each other, by their place.
#[derive(Clone, Debug)]
pub struct Page {
    places: Vec<Place>,
    /// When the interface will have sent all that it was given.
    link_idle_at: Instant,
}

/// What a transport has published.
#[derive(Clone, Debug, Default)]
struct Place {
    incoming: u64,
    active: Vec<u32>,
}

impl Page {
    /// Returns the page of a host with `transports` transports, which have published nothing.
    #[must_use]
    pub fn new(transports: usize) -> Self {
        Self { places: vec![Place::default(); transports], link_idle_at: Instant::ZERO }
    }

    /// Has the transport at this place learn what the others have published.
    pub fn read(&self, transport: &mut Transport, place: usize) {
        let others = || self.places.iter().enumerate().filter(|(at, _)| *at != place);
        let incoming = others().map(|(_, other)| other.incoming).sum();
        let mut active: Vec<u32> =
            others().flat_map(|(_, other)| other.active.iter().copied()).collect();
        active.sort_unstable();
        transport.observe_neighbours(&Neighbours {
            sharers: self.places.len(),
            incoming,
            active: &active,
            link_idle_at: self.link_idle_at,
        });
    }

    /// Has the transport at this place publish what it does.
    pub fn write(&mut self, now: Instant, transport: &mut Transport, place: usize) {
        let published = transport.publish();
        let own = &mut self.places[place];
        own.incoming = published.incoming;
        own.active.clear();
        own.active.extend_from_slice(published.active);
        let taken = Duration::from_nanos(published.link_nanos);
        self.link_idle_at = self.link_idle_at.max(now) + taken;
    }
}
