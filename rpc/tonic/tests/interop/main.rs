//! gRPC's interoperability test cases, with generated clients and servers, over a network in
//! memory.
//!
//! The cases have the names of gRPC's test descriptions ("interop-test-descriptions"). The cases
//! about TLS, credentials and load balancers of gRPC have no counterpart here.

mod cases;
mod ecosystem;
#[path = "generated/grpc_testing.rs"]
#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, clippy::pedantic)]
mod grpc_testing;
mod service;

use apus_driver::loopback::LoopbackNetwork;
use apus_rpc::ServerControl;
use apus_rpc::apus::tokio::Endpoint;
use apus_tonic::{Channel, Router, Server};
use grpc_testing::test_service_client::TestServiceClient;
use grpc_testing::test_service_server::TestServiceServer;

/// Starts a server with these services, and returns a channel to it. The server ends with the
/// runtime.
pub(crate) async fn serve(router: Router) -> (Channel, ServerControl) {
    let network = LoopbackNetwork::new();
    let on = async || Endpoint::builder().with_driver(Box::new(network.host())).await.unwrap();
    let (client, server) = (on().await, on().await);
    let to = server.local_addr();
    let (control, served) = router.add_to(apus_rpc::Server::new(server)).start();
    tokio::spawn(served);
    (Channel::new(apus_rpc::Channel::new(client, to)), control)
}

/// A client of the test service.
pub(crate) async fn client() -> (TestServiceClient<Channel>, ServerControl) {
    let service = TestServiceServer::new(service::TestServer);
    let (channel, control) = serve(Server::builder().add_service(service)).await;
    (TestServiceClient::new(channel), control)
}
