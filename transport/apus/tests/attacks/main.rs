//! Attacks on endpoints with real sockets: each succeeded on an earlier version, and fails without
//! its mend.
//!
//! `docs/attacks.md` has an entry for each. One folder per position, which defines the abilities
//! and knowledge of its attacker. An attacker writes packets with `apus-wire`, and uses its own
//! sockets:
//!
//! - `off_path` sends packets with any source address, and sees none: calls in another host's name
//!   and answers to them, control packets in the name of either end, first contacts in the name of
//!   a client, and of very many.
//! - `client` has its own address, to be called at or to call from: numbers that reveal others, and
//!   resources that one host can exhaust.
//!
//! Each test runs again inside a separate network namespace ([`namespace`]), because a forged
//! source address takes a raw socket. Where namespaces are not permitted, it is skipped.
//!
//! Attacks on the host are tested next to their targets: users in
//! `transport/local/tests/neighbour`, names in `transport/apus/tests/local`, ICMP and firewalls in
//! `transport/apus/tests/udp`, files in `transport/trace/tests/trace`.

mod client;
mod forger;
mod namespace;
mod off_path;
mod packets;
mod recording_server;
mod witness;

use apus::{Config, Endpoint, EndpointBuilder};
use std::net::{SocketAddr, SocketAddrV4};

/// Where the server is, in the namespace.
const SERVER: &str = "192.0.2.1:0";
/// Where an honest client is.
const CLIENT: &str = "192.0.2.2:0";
/// Position of an attacker with its own address.
const ATTACKER: &str = "192.0.2.3:0";

/// Options of endpoints that do not use shared memory.
fn over_udp() -> EndpointBuilder {
    EndpointBuilder::default().local(false)
}

/// Options of endpoints that send no requests of their own accord: a test that has lost a packet
/// does not end by chance.
fn quiet() -> EndpointBuilder {
    let config = Config::builder().resend_usecs(10_000_000).timeout_usecs(3_600_000_000);
    over_udp().config(config.build().unwrap())
}

/// A [`quiet`] endpoint at `address`.
fn endpoint(address: &str) -> Endpoint {
    quiet().bind(address).unwrap()
}

/// The address of an endpoint.
fn address(endpoint: &Endpoint) -> SocketAddrV4 {
    v4(endpoint.local_addr())
}

fn v4(address: SocketAddr) -> SocketAddrV4 {
    match address {
        SocketAddr::V4(address) => address,
        SocketAddr::V6(_) => panic!("{address} is no address of IPv4"),
    }
}

/// Number of packets that the endpoint has read.
fn packets_read(endpoint: &Endpoint) -> u64 {
    endpoint.metrics().protocol.packets_received.iter().sum()
}

/// Waits until the endpoint has read `more` packets than `before`.
fn wait_until_read(endpoint: &Endpoint, before: u64, more: usize) {
    while packets_read(endpoint) < before + more as u64 {
        std::thread::yield_now();
    }
}
