//! What can be set about a fabric?

use crate::topology::Topology;
use apus_workload::time::{MICROSECOND, Nanos};

/// How packets between racks are spread over the spines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spreading {
    /// Each packet takes a random spine (the paper's packet spraying).
    PerPacket,
    /// All packets from one host to another take the same spine, chosen by a hash (ECMP).
    PerFlow,
}

/// How much may wait in a switch. A packet for which there is no room is dropped (drop-tail).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    /// Each port has so many bytes.
    PerPort(u64),
    /// All ports of a switch share so many bytes.
    Shared(u64),
}

/// A fabric, without its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Hosts, switches, links, delays.
    pub topology: Topology,
    /// How packets are spread over the spines.
    pub spreading: Spreading,
    /// How much may wait in switches.
    pub buffers: Buffers,
    /// Bytes waiting at a port at host rate from which on packets that are ECN-capable are marked; ports at
    /// another rate have proportionally more or less. `None`: no marks.
    pub mark_at: Option<u64>,
    /// Time between two looks at idle links and waiting grants.
    pub sample_every: Nanos,
    /// Decides which ways packets take.
    pub seed: u64,
}

impl Settings {
    /// The fabric of SIGCOMM 2018's simulations: packet spraying, buffers that never fill, no marks.
    #[must_use]
    pub const fn new(topology: Topology, seed: u64) -> Self {
        Self {
            topology,
            spreading: Spreading::PerPacket,
            buffers: Buffers::PerPort(u64::MAX),
            mark_at: None,
            sample_every: 20 * MICROSECOND,
            seed,
        }
    }
}
