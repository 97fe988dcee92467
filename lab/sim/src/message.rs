//! Messages and their outcomes.

use apus_workload::time::Nanos;

/// Index of a host in the fabric; racks are filled one after another.
pub type HostId = u32;

/// A message of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Position among all messages of the run.
    pub number: u32,
    /// Sender.
    pub from: HostId,
    /// Receiver; never the sender itself.
    pub to: HostId,
    /// Length, at least [`Message::SHORTEST`].
    pub bytes: u32,
    /// Time of submission.
    pub at: Nanos,
}

impl Message {
    /// Shortest length of a message: its number and its length, which identify it to the receiver.
    /// The published workloads have no shorter messages; of other workloads, shorter and empty
    /// messages have this length. (The swarm identifies messages by their RPC, and supports empty
    /// messages.)
    pub const SHORTEST: u32 = 8;
}

/// Outcome of a message, as reported to applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The message with this number has arrived completely at its receiver.
    Delivered(u32),
    /// The exchange of the sender is complete: the response has arrived, or everything is
    /// acknowledged.
    Done(u32),
    /// The message has failed, as reported to its sender.
    Failed(u32),
}
