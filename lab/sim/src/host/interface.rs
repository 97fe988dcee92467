//! The trait [`Host`].

use std::fmt::Debug;

use crate::message::{HostId, Message, Outcome};
use crate::network::HostCounters;
use crate::packet::Packet;
use apus_workload::time::Nanos;

/// A host with a transport.
pub trait Host {
    /// Contents of a packet in addition to its addresses: a header or a segment.
    type Body: Clone + Default + Debug;

    /// Accepts a message from an application.
    fn submit(&mut self, now: Nanos, message: &Message);

    /// Handles a packet that has arrived and passed the host's software.
    fn receive(&mut self, now: Nanos, packet: &Packet, body: &Self::Body);

    /// Writes the next packet to `packet` and `body`, if one can be sent now. The link is free.
    /// Called again when the link has transmitted the packet, or after the next call that passes
    /// something to the host.
    ///
    /// The previous content of both is meaningless: packets are built in place, in memory that is
    /// reused.
    fn transmit(&mut self, now: Nanos, packet: &mut Packet, body: &mut Self::Body) -> bool;

    /// Returns when to call [`Host::handle_timeout`].
    fn next_timeout(&self) -> Option<Nanos>;

    /// Reports that the host's socket holds `bytes`.
    fn set_receive_buffer(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Reports that packets were dropped before `at` because the socket was full.
    fn handle_overflow(&mut self, at: Nanos) {
        let _ = at;
    }

    /// Reports that no packet was unread at `at`: packets received from now on have arrived since
    /// then.
    fn begin_reading(&mut self, at: Nanos) {
        let _ = at;
    }

    /// Reports that everything that had arrived by `at` has been received.
    fn finish_reading(&mut self, at: Nanos) {
        let _ = at;
    }

    /// Handles a deadline.
    fn handle_timeout(&mut self, now: Nanos);

    /// Returns the next outcome for applications.
    fn poll_outcome(&mut self) -> Option<Outcome>;

    /// Returns whether the host withholds grants from the sender of some incoming message. Idle
    /// time of a receiver meanwhile is wasted (SIGCOMM 2018, figure 16).
    fn withholds(&self) -> bool {
        false
    }

    /// Returns the counters of its transport; all 0 for a transport without counters.
    fn counters(&self) -> HostCounters {
        HostCounters::default()
    }

    /// Crashes the host. All its state is lost, including packets that have not been transmitted;
    /// later calls belong to its next life.
    fn crash(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Flips the bit of a packet's contents that the random number `chance` selects. Only contents
    /// with bytes support it.
    fn corrupt(body: &mut Self::Body, chance: u64)
    where
        Self: Sized,
    {
        let _ = (body, chance);
    }

    /// Returns the id of this host.
    fn id(&self) -> HostId;
}
