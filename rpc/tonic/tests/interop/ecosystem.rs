//! Parts of tonic's ecosystem that work unchanged: compression, interceptors, status details,
//! health and reflection.

use crate::grpc_testing::test_service_client::TestServiceClient;
use crate::grpc_testing::test_service_server::TestServiceServer;
use crate::grpc_testing::{Payload, SimpleRequest};
use crate::service::TestServer;
use crate::{client, serve};
use apus_tonic::Server;
use tokio_stream::StreamExt;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

#[tokio::test]
async fn messages_are_compressed_in_both_directions() {
    let service = TestServiceServer::new(TestServer)
        .accept_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Gzip);
    let (channel, _) = serve(Server::builder().add_service(service)).await;
    let mut client = TestServiceClient::new(channel.clone())
        .accept_compressed(CompressionEncoding::Gzip)
        .send_compressed(CompressionEncoding::Gzip);
    let request = SimpleRequest {
        response_size: 100_000,
        payload: Some(Payload { body: vec![0; 100_000].into() }),
        response_status: None,
    };
    let response = client.unary_call(request.clone()).await.unwrap();
    assert_eq!(response.metadata().get("grpc-encoding").unwrap(), "gzip");
    assert_eq!(response.into_inner().payload.unwrap().body.len(), 100_000);

    // A server without compression rejects it.
    let (mut client, _) = self::client().await;
    client = client.send_compressed(CompressionEncoding::Gzip);
    let status = client.unary_call(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test]
async fn interceptors_run_at_both_ends() {
    let service = TestServiceServer::with_interceptor(TestServer, |request: Request<()>| {
        match request.metadata().get("token") {
            Some(token) if token == "secret" => Ok(request),
            _ => Err(Status::unauthenticated("no token")),
        }
    });
    let (channel, _) = serve(Server::builder().add_service(service)).await;
    let mut without = TestServiceClient::new(channel.clone());
    let status = without.unary_call(SimpleRequest::default()).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unauthenticated, "no token"));
    let mut with = TestServiceClient::with_interceptor(channel, |mut request: Request<()>| {
        request.metadata_mut().insert("token", "secret".parse().unwrap());
        Ok(request)
    });
    with.unary_call(SimpleRequest::default()).await.unwrap();
}

#[tokio::test]
async fn a_message_larger_than_the_client_accepts_is_a_status() {
    let (client, _) = client().await;
    let mut client = client.max_decoding_message_size(1_000);
    let request = SimpleRequest { response_size: 2_000, ..Default::default() };
    let status = client.unary_call(request).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
}

#[tokio::test]
async fn a_megabyte_of_metadata_is_a_status_and_nothing_is_sent() {
    let (mut client, _) = client().await;
    let mut request = Request::new(SimpleRequest::default());
    request.metadata_mut().insert("large", "x".repeat(1_000_000).parse().unwrap());
    let status = client.unary_call(request).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(apus_tonic::execution(&status), apus_rpc::Execution::NotExecuted);
}

#[tokio::test]
async fn a_deadline_reaches_the_handler_and_its_own_calls() {
    struct Nested(apus_tonic::Channel);
    // The outer service belongs to apus-rpc; the inner one is generated.
    impl apus_rpc::Handler for Nested {
        fn service(&self) -> &'static str {
            "outer"
        }

        fn call(
            &self,
            _: apus_rpc::Request,
        ) -> apus_rpc::BoxFuture<Result<apus_rpc::Response, apus_rpc::Status>> {
            let mut client = TestServiceClient::new(self.0.clone());
            Box::pin(async move {
                let request = SimpleRequest::default();
                let status = client.unary_call(request).await.map(drop);
                let deadline = apus_rpc::Context::current().deadline;
                assert!(deadline.is_some());
                Ok(apus_rpc::Response::new(vec![u8::from(status.is_ok())]))
            })
        }
    }
    let service = TestServiceServer::with_interceptor(TestServer, |request: Request<()>| {
        // tonic's own form of the deadline: the nested call inherited it.
        match request.metadata().get("grpc-timeout") {
            Some(_) => Ok(request),
            None => Err(Status::internal("no deadline")),
        }
    });
    let (inner, _) = serve(Server::builder().add_service(service)).await;
    let network = apus_driver::loopback::LoopbackNetwork::new();
    let on = async || {
        let driver = Box::new(network.host());
        apus_rpc::apus::tokio::Endpoint::builder().with_driver(driver).await.unwrap()
    };
    let (client, server) = (on().await, on().await);
    let to = server.local_addr();
    tokio::spawn(apus_rpc::Server::new(server).add_service(Nested(inner)).serve());
    let request =
        apus_rpc::Request::new("outer/m", vec![]).with_timeout(std::time::Duration::from_secs(100));
    let response = apus_rpc::Channel::new(client, to).call(request).await.unwrap();
    assert_eq!(response.into_body().into_bytes(1).await.unwrap()[..], [1]);
}

#[tokio::test]
async fn the_health_service_answers_and_is_watched() {
    let (reporter, service) = tonic_health::server::health_reporter();
    let (channel, _) = serve(Server::builder().add_service(service)).await;
    let mut client = HealthClient::new(channel);
    reporter.set_serving::<TestServiceServer<TestServer>>().await;
    let request = || HealthCheckRequest { service: "grpc.testing.TestService".into() };
    let response = client.check(request()).await.unwrap().into_inner();
    assert_eq!(response.status, 1);
    let mut changes = client.watch(request()).await.unwrap().into_inner();
    assert_eq!(changes.next().await.unwrap().unwrap().status, 1);
    reporter.set_not_serving::<TestServiceServer<TestServer>>().await;
    assert_eq!(changes.next().await.unwrap().unwrap().status, 2);
    let unknown = HealthCheckRequest { service: "other".into() };
    assert_eq!(client.check(unknown).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn the_reflection_service_lists_services() {
    let service = tonic_reflection::server::Builder::configure()
        .register_encoded_file_descriptor_set(include_bytes!("generated/descriptors.bin"))
        .build_v1()
        .unwrap();
    let (channel, _) = serve(Server::builder().add_service(service)).await;
    let mut client = ServerReflectionClient::new(channel);
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let mut responses =
        client.server_reflection_info(tokio_stream::once(request)).await.unwrap().into_inner();
    let response = responses.message().await.unwrap().unwrap().message_response.unwrap();
    let MessageResponse::ListServicesResponse(list) = response else { panic!("{response:?}") };
    assert!(list.service.iter().any(|service| service.name == "grpc.testing.TestService"));
}
