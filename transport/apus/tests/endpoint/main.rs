//! The blocking endpoint, over a network in memory and over UDP.

#[cfg(feature = "tokio")]
mod addresses;
mod arrivals;
mod async_order;
mod batches;
mod broken_driver;
mod calls;
mod coalescing;
mod concurrency;
mod echo;
mod empty_messages;
mod faults;
mod fixtures;
mod full_socket;
mod held_replies;
mod host_group;
mod interruption;
mod lifecycle;
mod limits;
mod metrics;
mod modes;
mod overload;
mod packets;
#[path = "../ports/mod.rs"]
mod ports;
mod refusals;
mod shards;
mod spraying;
mod timeouts;

use apus::{Endpoint, EndpointBuilder};
use apus_driver::loopback::{LoopbackConfig, LoopbackNetwork};
use echo::echo;
use fixtures::{ShutDown, assert_at_rest, bytes, echo_pair};

/// Two endpoints on a separate network.
fn pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let network = LoopbackNetwork::new();
    let on = || builder.clone().with_driver(Box::new(network.host())).unwrap();
    (on(), on())
}

/// Two endpoints on a separate network that has room for `queue` packets at each host.
fn roomy_pair(builder: &EndpointBuilder, queue: usize) -> (Endpoint, Endpoint) {
    let network =
        LoopbackNetwork::with_config(LoopbackConfig { queue, ..LoopbackConfig::default() });
    let on = || builder.clone().with_driver(Box::new(network.host())).unwrap();
    (on(), on())
}
