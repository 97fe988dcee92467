//! Interface of a network that carries messages.
//!
//! A network is a fabric whose hosts run a transport, or an oracle that needs none. Experiments do
//! not distinguish the two.

use crate::fabric::Counters;
use crate::message::{Message, Outcome};
use apus_workload::time::Nanos;

/// Carries messages, and reports their outcomes.
pub trait Network {
    /// Submits a message at `message.at`. Time never decreases between calls.
    fn submit(&mut self, message: &Message);

    /// Simulates up to and including `until`. `report` is called with the outcomes in order of
    /// time.
    fn advance(&mut self, until: Nanos, tell: &mut dyn FnMut(Nanos, Outcome));

    /// Resets the counters.
    fn reset_counters(&mut self) {}

    /// Returns the counters; all 0 for a network without queues and packets.
    fn counters(&self) -> Counters {
        Counters::default()
    }
}
