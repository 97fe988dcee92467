//! Settings of a fabric.

use crate::topology::Topology;
use apus_workload::time::{MICROSECOND, Nanos};

/// Distribution of packets between racks over the spines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spreading {
    /// Each packet takes a random spine (the paper's packet spraying).
    PerPacket,
    /// All packets of a flow take the same spine, selected by a hash (ECMP). Each pair of processes
    /// of two hosts has its own flows.
    PerFlow,
}

/// Buffer space of a switch. A packet without room is dropped (drop-tail).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffers {
    /// Bytes of each port.
    PerPort(u64),
    /// For each port, the bytes that its link carries in this time.
    PerPortTime(Nanos),
    /// Bytes that all ports of a switch share.
    Shared(u64),
}

/// Settings of a fabric, without its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Hosts, switches, links and delays.
    pub topology: Topology,
    /// Distribution of packets over the spines.
    pub spreading: Spreading,
    /// Buffer space of switches.
    pub buffers: Buffers,
    /// Queue length in bytes from which a port at the hosts' rate marks ECN-capable packets, scaled
    /// for ports of other rates. `None` disables marking.
    pub mark_at: Option<u64>,
    /// Whether only ports between racks and spines mark packets, and ports to hosts never do.
    pub only_core_marks: bool,
    /// Time between two samples of idle links and withheld grants.
    pub sample_every: Nanos,
    /// Seed of the paths of packets.
    pub seed: u64,
}

impl Settings {
    /// Returns the fabric of SIGCOMM 2018's simulations: packet spraying, unlimited buffers, no
    /// marking.
    #[must_use]
    pub const fn new(topology: Topology, seed: u64) -> Self {
        Self {
            topology,
            spreading: Spreading::PerPacket,
            buffers: Buffers::PerPort(u64::MAX),
            mark_at: None,
            only_core_marks: false,
            sample_every: 20 * MICROSECOND,
            seed,
        }
    }
}
