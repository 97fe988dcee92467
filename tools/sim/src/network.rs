//! What is it that carries messages?
//!
//! A fabric whose hosts run a transport, or an oracle that needs none: an experiment sees no difference.

use crate::fabric::Counters;
use crate::message::{Message, Outcome};
use apus_workload::time::Nanos;

/// Carries messages, and tells what became of them.
pub trait Network {
    /// An application hands a message over, at `message.at`. Time never goes back between calls.
    fn submit(&mut self, message: &Message);

    /// Lets everything happen that happens up to and including `until`; `tell` learns of it in order of
    /// time.
    fn advance(&mut self, until: Nanos, tell: &mut dyn FnMut(Nanos, Outcome));

    /// Begins counting anew.
    fn reset_counters(&mut self) {}

    /// What has been counted; nothing, where there are no queues and no packets.
    fn counters(&self) -> Counters {
        Counters::default()
    }
}
