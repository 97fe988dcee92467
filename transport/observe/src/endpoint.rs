//! Counters of an endpoint: protocol, engine, driver, queues, and received messages.

use crate::{EngineMetrics, ReadTime};
use apus_proto::histogram::SizeHistogram;
use apus_proto::{DurationHistogram, Exemplars};

/// All counters of an endpoint, read at one moment.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Time of the reading. `None` if the time of day is unknown.
    pub read_at: Option<ReadTime>,
    /// Counters of the protocol.
    pub protocol: apus_proto::Metrics,
    /// Counters of the engine.
    pub engine: EngineMetrics,
    /// Lengths of the messages that the application received, over the network and through shared
    /// memory.
    pub messages: SizeHistogram,
    /// Durations of calls through shared memory. One call in 64 is timed and counts for all of
    /// them.
    pub local_calls: DurationHistogram,
    /// Timed calls through shared memory that are in the time trace: the latest in each coarse
    /// bucket.
    pub local_exemplars: Exemplars,
    /// Current lengths of the endpoint's queues.
    pub queues: Queues,
    /// Counters of the driver by name; [`apus_socket::SocketCounters`] describes the counters of
    /// the UDP and raw IP drivers.
    pub driver: Vec<(&'static str, u64)>,
}

impl Metrics {
    /// Adds the counters, gauges and histograms of another endpoint of the process, or of another
    /// shard of the same one.
    pub fn add(&mut self, other: &Self) {
        self.read_at = self.read_at.or(other.read_at);
        self.protocol.add(&other.protocol);
        self.engine.add(&other.engine);
        self.messages.add(&other.messages);
        self.local_calls.add(&other.local_calls);
        self.local_exemplars.add(&other.local_exemplars);
        self.queues.add(&other.queues);
        for (name, value) in &other.driver {
            match self.driver.iter_mut().find(|(own, _)| own == name) {
                Some((_, sum)) => *sum += value,
                None => self.driver.push((name, *value)),
            }
        }
    }
}

apus_proto::__counters! {
    /// Current lengths of an endpoint's queues, network and shared memory together.
    Queues {
        /// Calls whose completion has not been received by the application.
        calls,
        /// Requests that wait for a thread of the application.
        requests_waiting,
        /// Completions of calls that wait for a thread of the application.
        ends_waiting,
        /// Transports of the host group that were polled within the last half second, this one
        /// included; 0 without a group (`EndpointBuilder::host_group`), or without a place in it.
        /// `incoming_bytes` is this one's part of what they share.
        link_sharers,
    }
}
