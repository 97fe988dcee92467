//! Interface of a network that carries messages.
//!
//! A network is a fabric whose hosts run a transport, or an oracle, which needs no transport.
//! Experiments treat both alike.

use std::ops::{Add, Sub};

use crate::message::{Message, Outcome};
use apus_workload::time::Nanos;

/// Length of queues over all ports of a kind, in waiting bytes without the packet on the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueLength {
    /// Mean over time and ports.
    pub mean: f64,
    /// Maximum over ports.
    pub max: u64,
}

/// Counters of the transports of hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounters {
    /// Bytes of DATA packets sent, headers included.
    pub data_bytes: u64,
    /// DATA packets sent again.
    pub resent_packets: u64,
    /// Payload bytes sent again.
    pub resent_bytes: u64,
    /// Packets dropped because a socket buffer was full; only with processors.
    pub socket_overflows: u64,
    /// DATA packets among the packets dropped at sockets.
    pub dropped_data: u64,
    /// Busy time of processors.
    pub busy: Nanos,
}

impl HostCounters {
    /// Applies `operation` to each pair of counters.
    fn pairs(self, other: Self, operation: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            data_bytes: operation(self.data_bytes, other.data_bytes),
            resent_packets: operation(self.resent_packets, other.resent_packets),
            resent_bytes: operation(self.resent_bytes, other.resent_bytes),
            socket_overflows: operation(self.socket_overflows, other.socket_overflows),
            dropped_data: operation(self.dropped_data, other.dropped_data),
            busy: operation(self.busy, other.busy),
        }
    }
}

impl Add for HostCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.pairs(other, |one, other| one + other)
    }
}

impl Sub for HostCounters {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.pairs(other, |one, other| one - other)
    }
}

/// Counters of a network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Duration of the measurement.
    pub time: Nanos,
    /// Queues of TORs towards spines.
    pub tor_to_spine: QueueLength,
    /// Queues of spines towards TORs.
    pub spine_to_tor: QueueLength,
    /// Queues of TORs towards hosts.
    pub tor_to_host: QueueLength,
    /// Mean share of time that the links to hosts were busy.
    pub utilisation: f64,
    /// Mean share of time that the links to hosts were idle although their hosts withheld grants
    /// from senders (SIGCOMM 2018, figure 16).
    pub wasted: f64,
    /// Bytes on the links to hosts by priority level.
    pub level_bytes: [u64; 8],
    /// Packets with payload that reached their hosts.
    pub data_packets: u64,
    /// Packets of any kind that reached their hosts.
    pub packets: u64,
    /// Packets that switches dropped because a buffer was full.
    pub dropped: u64,
    /// Packets that switches marked.
    pub marked: u64,
    /// Counters of all hosts.
    pub hosts: HostCounters,
}

/// Carries messages, and reports their outcomes.
pub trait Network {
    /// Submits a message at `message.at`. Time never decreases between calls.
    fn submit(&mut self, message: &Message);

    /// Simulates up to and including `until`. `report` is called with the outcomes in order of
    /// time.
    fn advance(&mut self, until: Nanos, report: &mut dyn FnMut(Nanos, Outcome));

    /// Submits messages, which are in order of time, and simulates up to and including `until`.
    /// `report` is called with the outcomes in order of time. An outcome and a submission of the
    /// same nanosecond may occur in either order.
    fn carry(
        &mut self,
        messages: &[Message],
        until: Nanos,
        report: &mut dyn FnMut(Nanos, Outcome),
    ) {
        for message in messages {
            self.advance(message.at, report);
            self.submit(message);
        }
        self.advance(until, report);
    }

    /// Resets the counters.
    fn reset_counters(&mut self) {}

    /// Returns the number of packets with payload that reached their hosts since the counters were
    /// reset, as [`Network::counters`] does, without the counters of all hosts.
    fn data_packets(&self) -> u64 {
        self.counters().data_packets
    }

    /// Returns the counters; all 0 for a network without queues and packets.
    fn counters(&self) -> Counters {
        Counters::default()
    }
}
