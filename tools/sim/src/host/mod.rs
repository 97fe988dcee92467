//! What is a host to the fabric?
//!
//! Something that takes messages from applications and packets from its link, and gives packets when its
//! link is free. The fabric knows nothing else about it, so that the transports that are compared are in
//! exactly the same place.
//!
//! # The law
//!
//! After any call that takes something, [`Host::poll_outcome`] is called until it is empty,
//! [`Host::transmit`] as soon as the link is free, and [`Host::handle_timeout`] at [`Host::next_timeout`].

mod apus;
mod module;

pub use apus::{Answer, ApusHost, Frame, Shared};
pub use apus::{PORT, address, host_at, wire_bytes};

pub use module::{MixedHost, ModuleHost};

use crate::message::{HostId, Message, Outcome};
use crate::packet::Packet;
use apus_workload::time::Nanos;

/// A host with a transport.
pub trait Host {
    /// What a packet carries besides its addresses: a header, a segment.
    type Body: Clone + Default;

    /// An application hands a message over.
    fn submit(&mut self, now: Nanos, message: &Message);

    /// A packet has arrived and passed the host's software.
    fn receive(&mut self, now: Nanos, packet: &Packet, body: &Self::Body);

    /// Makes `packet` and `body` the next one, if there is one to be sent now. The link is free; asked again
    /// when it has sent the packet, or after the next call that takes something.
    ///
    /// What both were before has no meaning: their memory is used again, because a packet is built in the
    /// place from which it travels.
    fn transmit(&mut self, now: Nanos, packet: &mut Packet, body: &mut Self::Body) -> bool;

    /// When to call [`Host::handle_timeout`].
    fn next_timeout(&self) -> Option<Nanos>;

    /// A deadline has passed.
    fn handle_timeout(&mut self, now: Nanos);

    /// The next thing that applications learn.
    fn poll_outcome(&mut self) -> Option<Outcome>;

    /// Whether the host knows of messages to it whose sender waits for its permission to go on; what a
    /// receiver that idles meanwhile wastes (published numbers, figure 16).
    fn withholds(&self) -> bool {
        false
    }

    /// The host dies. It has lost everything that it knew, its packets too that have not left: what is called
    /// from now on is another life of it.
    fn crash(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Turns a bit of what a packet carries over; `chance` is a random number that chooses which. Only what
    /// carries bytes can do that.
    fn corrupt(body: &mut Self::Body, chance: u64)
    where
        Self: Sized,
    {
        let _ = (body, chance);
    }

    /// Which host this is.
    fn id(&self) -> HostId;
}
