//! Fixtures: echo servers, payloads, and the check for leftovers.

use crate::echo::echo;
use crate::pair;
use apus::{Config, ConfigBuilder, Endpoint, EndpointBuilder};
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::Duration;

/// Parameters with which a peer may be silent for a minute, in place of a second: a busy machine
/// may stop its threads for longer than that.
pub(crate) fn patient_config() -> ConfigBuilder {
    Config::builder().timeout_usecs(60_000_000)
}

/// Returns a builder of endpoints with [`patient_config`].
pub(crate) fn patient() -> EndpointBuilder {
    EndpointBuilder::default().config(patient_config().build().unwrap())
}

/// Starts an echo server and returns a client, the server's address and the server.
pub(crate) fn echo_pair(builder: &EndpointBuilder) -> (Endpoint, SocketAddr, EchoServer) {
    let (client, server) = pair(builder);
    let address = server.local_addr();
    let thread = echo(server.clone());
    (client, address, EchoServer { endpoint: server, thread: Some(thread) })
}

/// A server that is shut down when it is dropped.
pub(crate) struct EchoServer {
    pub(crate) endpoint: Endpoint,
    thread: Option<JoinHandle<u64>>,
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        self.endpoint.shutdown();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Shuts endpoints down when a test ends, also by a failed assertion, so that the threads that
/// serve them end.
pub(crate) struct ShutDown<'a>(pub(crate) &'a [&'a Endpoint]);

impl Drop for ShutDown<'_> {
    fn drop(&mut self) {
        for endpoint in self.0 {
            endpoint.shutdown();
        }
    }
}

/// Returns bytes that depend on offset and seed.
pub(crate) fn bytes(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 251 + seed * 7) as u8).collect()
}

/// Waits until all messages are acknowledged, and checks that only peers are alive.
pub(crate) fn assert_at_rest(endpoints: &[&Endpoint]) {
    for endpoint in endpoints {
        assert!(endpoint.drain(Duration::from_secs(60)), "everything is acknowledged");
        let live = endpoint.metrics().protocol.live;
        let rest = [
            live.client_rpcs,
            live.server_rpcs,
            live.send_bytes,
            live.receive_bytes,
            live.grantable,
            live.incoming_bytes,
            live.sendable,
            live.timers,
            live.control_packets,
        ];
        assert_eq!(rest, [0; 9], "{live:?}");
        assert_eq!(endpoint.metrics().engine.spurious_wakeups, 0, "ENGINE-3");
    }
}
