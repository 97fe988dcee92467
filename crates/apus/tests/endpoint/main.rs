//! The blocking endpoint, over a network in memory and over UDP.

#[cfg(feature = "tokio")]
mod asynchronous;
mod calls;
mod echo;
mod faults;
mod full;
mod held_replies;
mod limits;
mod lives;
mod many;
mod metrics;
mod modes;
mod overload;
mod packets;
mod partners;

use apus::{Endpoint, EndpointBuilder};
use apus_driver::loopback::{LoopbackConfig, LoopbackNetwork};
use echo::echo;
use partners::{ShutDown, assert_at_rest, bytes, echo_pair};

/// Two endpoints on a network of their own.
fn pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let network = LoopbackNetwork::new();
    let on = || builder.clone().with_driver(Box::new(network.host())).unwrap();
    (on(), on())
}

/// The same, on a network with room for so many packets at each host.
fn roomy_pair(builder: &EndpointBuilder, queue: usize) -> (Endpoint, Endpoint) {
    let network =
        LoopbackNetwork::with_config(LoopbackConfig { queue, ..LoopbackConfig::default() });
    let on = || builder.clone().with_driver(Box::new(network.host())).unwrap();
    (on(), on())
}
