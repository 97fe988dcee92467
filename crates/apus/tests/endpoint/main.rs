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

use apus::{Builder, Endpoint};
use apus_driver::loopback::{Network, NetworkConfig};
use echo::echo;
use partners::{ShutDown, assert_at_rest, bytes, echo_pair};

/// Two endpoints on a network of their own.
fn pair(builder: &Builder) -> (Endpoint, Endpoint) {
    let network = Network::new();
    let on = || builder.clone().on(Box::new(network.host())).unwrap();
    (on(), on())
}

/// The same, on a network with room for so many packets at each host.
fn roomy_pair(builder: &Builder, queue: usize) -> (Endpoint, Endpoint) {
    let network = Network::with_config(NetworkConfig { queue, ..NetworkConfig::default() });
    let on = || builder.clone().on(Box::new(network.host())).unwrap();
    (on(), on())
}
