//! The async endpoint, on both kinds of runtime, over a network in memory.

#![cfg(feature = "tokio")]

mod batches;
mod calls;
mod cancellation;
mod concurrency;
#[path = "../gate/mod.rs"]
mod gate;
mod lifecycle;
mod limits;
mod shards;
mod turns;

use apus::tokio::{Endpoint, EndpointBuilder};
use apus::{Config, ConfigBuilder};
use apus_driver::loopback::LoopbackNetwork;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::task::JoinHandle;

/// Runs a test on a runtime with one thread and on one with several.
fn on_each_runtime<F: Future<Output = ()>>(test: impl Fn() -> F) {
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    one.block_on(test());
    let mut several = tokio::runtime::Builder::new_multi_thread();
    several.worker_threads(3).enable_all().build().unwrap().block_on(test());
}

/// Parameters with which a peer may be silent for a minute, in place of a second: a busy machine
/// may stop its threads for longer than that.
fn patient_config() -> ConfigBuilder {
    Config::builder().timeout_usecs(60_000_000)
}

/// Returns a builder of endpoints with [`patient_config`].
fn patient() -> EndpointBuilder {
    Endpoint::builder().config(patient_config().build().unwrap())
}

/// Two endpoints on a separate network.
async fn pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let network = LoopbackNetwork::new();
    let on = async || builder.clone().with_driver(Box::new(network.host())).await.unwrap();
    (on().await, on().await)
}

/// Starts a task that responds to each request with the same bytes until the endpoint is shut down.
/// Returns the number of requests.
fn echo(server: Endpoint) -> JoinHandle<u64> {
    tokio::spawn(async move {
        let mut served = 0;
        while let Ok(request) = server.recv_request().await {
            served += 1;
            let payload = request.payload().clone();
            // The client may have vanished.
            let _ = request.reply(payload).await;
        }
        served
    })
}

/// Returns a client, and an echo server with its address. The server's task ends with its runtime.
async fn echo_pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint, SocketAddr) {
    let (client, server) = pair(builder).await;
    let address = server.local_addr();
    echo(server.clone());
    (client, server, address)
}

/// Returns bytes that depend on offset and seed.
fn bytes(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 251 + seed * 7) as u8).collect()
}

/// Waits until `done`, and lets other tasks run.
async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::task::yield_now().await;
    }
}

/// Waits until all messages are acknowledged, and checks that only peers are alive.
async fn assert_at_rest(endpoints: &[&Endpoint]) {
    for endpoint in endpoints {
        assert!(endpoint.drain(Duration::from_secs(60)).await);
        let mut live = endpoint.metrics().protocol.live;
        live.peers = 0;
        assert_eq!(live, apus_proto::Live::default());
        assert_eq!(endpoint.metrics().engine.spurious_wakeups, 0, "ENGINE-3");
    }
}
