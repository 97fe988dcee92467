//! What do applications hand over, and what do they learn?

use apus_workload::time::Nanos;

/// Position of a host in the fabric, from 0; racks are filled one after the other.
pub type HostId = u32;

/// One message of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Position among all messages of the run.
    pub number: u32,
    /// Who sends it.
    pub from: HostId,
    /// Whom to; never the sender itself.
    pub to: HostId,
    /// Its length, at least [`Message::SHORTEST`].
    pub bytes: u32,
    /// When the application hands it over.
    pub at: Nanos,
}

impl Message {
    /// Fewest bytes of a message: as many as its number and its length take, by which its receiver
    /// recognises it. The published workloads have no shorter ones.
    pub const SHORTEST: u32 = 8;
}

/// What a host tells its applications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The message with this number has arrived completely, at its receiver.
    Delivered(u32),
    /// The sender's exchange is over: the response has come, or everything is acknowledged.
    Done(u32),
    /// The sender was told that it has failed.
    Failed(u32),
}
