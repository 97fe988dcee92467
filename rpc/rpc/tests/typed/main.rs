//! Typed services: all kinds of methods, errors, and services that do not match.

mod blocking;
mod depths;
mod kinds;
mod mismatches;
mod notify;

use apus::tokio::Endpoint;
use apus_driver::loopback::LoopbackNetwork;
use apus_rpc::{Channel, Handler, Server};

/// A channel to a server with this handler, over a network in memory. The server ends with the
/// runtime.
pub(crate) async fn serve(handler: impl Handler) -> Channel {
    let network = LoopbackNetwork::new();
    let on = async || Endpoint::builder().with_driver(Box::new(network.host())).await.unwrap();
    let (client, server) = (on().await, on().await);
    let to = server.local_addr();
    tokio::spawn(Server::new(server).add_service(handler).serve());
    Channel::new(client, to)
}
