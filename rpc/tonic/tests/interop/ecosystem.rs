//! Parts of tonic's ecosystem that work unchanged: compression, interceptors, status details,
//! health and reflection.

use crate::grpc_testing::test_service_client::TestServiceClient;
use crate::grpc_testing::test_service_server::TestServiceServer;
use crate::grpc_testing::unimplemented_service_client::UnimplementedServiceClient;
use crate::grpc_testing::unimplemented_service_server::{
    UnimplementedService, UnimplementedServiceServer,
};
use crate::grpc_testing::{
    EchoStatus, Empty, Payload, ResponseParameters, SimpleRequest, StreamingOutputCallRequest,
};
use crate::service::TestServer;
use crate::{client, serve};
use apus_driver::loopback::LoopbackNetwork;
use apus_rpc::Execution;
use apus_rpc::apus::{self, tokio::Endpoint};
use apus_tonic::Server;
use tokio_stream::StreamExt;
use tonic::codec::CompressionEncoding;
use tonic::{Code, Request, Response, Status};
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
    assert_eq!(apus_tonic::execution(&status), Execution::Executed);

    // Also as a part of a stream.
    let parameters = ResponseParameters { size: 2_000, interval_us: 0 };
    let request =
        StreamingOutputCallRequest { response_parameters: vec![parameters], ..Default::default() };
    let mut parts = client.streaming_output_call(request).await.unwrap().into_inner();
    let status = parts.message().await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    assert_eq!(apus_tonic::execution(&status), Execution::Executed);
}

#[tokio::test]
async fn a_request_that_no_handler_gets_was_not_executed() {
    let large = || SimpleRequest {
        payload: Some(Payload { body: vec![0; 2_000].into() }),
        ..Default::default()
    };
    // Longer than the server accepts.
    let service = TestServiceServer::new(TestServer).max_decoding_message_size(1_000);
    let (channel, _) = serve(Server::builder().add_service(service)).await;
    let mut client = TestServiceClient::new(channel.clone());
    let status = client.unary_call(large()).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    assert!(status.message().contains("2006 bytes"), "{status}");
    assert!(status.message().contains("1000 bytes"), "{status}");
    assert_eq!(apus_tonic::execution(&status), Execution::NotExecuted);

    // Longer than the client sends: nothing leaves.
    let mut hasty = TestServiceClient::new(channel.clone()).max_encoding_message_size(1_000);
    let status = hasty.unary_call(large()).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    assert_eq!(apus_tonic::execution(&status), Execution::NotExecuted);

    // A method that the service does not have, and bytes that are no message.
    let mut grpc = tonic::client::Grpc::new(channel);
    let mut call = async |method: &'static str, request: Empty| {
        grpc.ready().await.unwrap();
        let path = http::uri::PathAndQuery::from_static(method);
        let codec = tonic_prost::ProstCodec::<Empty, Empty>::default();
        grpc.unary(Request::new(request), path, codec).await.unwrap_err()
    };
    let status = call("/grpc.testing.TestService/NoSuchCall", Empty {}).await;
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(apus_tonic::execution(&status), Execution::NotExecuted);
}

#[tokio::test]
async fn a_status_of_a_handler_that_read_its_request_was_executed() {
    let (mut client, _) = client().await;
    for (code, message) in [
        (Code::OutOfRange, "Error, decoded message length too large: found 9 bytes"),
        (Code::Internal, "failed to decode Protobuf message: a handler's own text"),
        (Code::Unimplemented, ""),
    ] {
        let response_status = Some(EchoStatus { code: code as i32, message: message.to_owned() });
        let request = SimpleRequest { response_status, ..Default::default() };
        let status = client.unary_call(request).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (code, message));
        assert_eq!(apus_tonic::execution(&status), Execution::Executed);
    }
}

/// A response that is longer than the transport's messages.
#[tokio::test]
async fn a_response_longer_than_max_message_states_both_lengths() {
    let network = LoopbackNetwork::new();
    let config = apus::Config::builder().max_message(10_000).build().unwrap();
    let builder = Endpoint::builder().config(config);
    let on = async || builder.clone().with_driver(Box::new(network.host())).await.unwrap();
    let (sender, server) = (on().await, on().await);
    let to = server.local_addr();
    let service = TestServiceServer::new(TestServer);
    let router = Server::builder().add_service(service);
    tokio::spawn(router.add_to(apus_rpc::Server::new(server)).serve());
    let mut client =
        TestServiceClient::new(apus_tonic::Channel::new(apus_rpc::Channel::new(sender, to)));
    let request = SimpleRequest { response_size: 20_000, ..Default::default() };
    let status = client.unary_call(request).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert!(status.message().contains("10000") && status.message().contains("200"), "{status}");
    assert_eq!(apus_tonic::execution(&status), Execution::Executed);
    client.unary_call(SimpleRequest { response_size: 100, ..Default::default() }).await.unwrap();
}

/// A server that fails with long statuses.
struct Verbose;

#[tonic::async_trait]
impl UnimplementedService for Verbose {
    async fn unimplemented_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        let mut metadata = tonic::metadata::MetadataMap::new();
        metadata.insert("long", "x".repeat(40_000).parse().unwrap());
        metadata.insert("short", "kept".parse().unwrap());
        let details = vec![7; 32_769];
        Err(Status::with_details_and_metadata(
            Code::NotFound,
            "m".repeat(5_000),
            details.into(),
            metadata,
        ))
    }
}

#[tokio::test]
async fn a_status_that_is_cut_says_so() {
    let service = UnimplementedServiceServer::new(Verbose);
    let (channel, control) = serve(Server::builder().add_service(service)).await;
    let mut client = UnimplementedServiceClient::new(channel);
    let status = client.unimplemented_call(Empty {}).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!((status.message().len(), status.details().len()), (4_096, 0));
    assert_eq!(status.metadata().get("short").unwrap(), "kept");
    assert!(status.metadata().get("long").is_none());
    let marks = status.metadata().get_all(apus_rpc::Status::TRUNCATED);
    let marks: Vec<_> = marks.iter().map(|mark| mark.to_str().unwrap()).collect();
    assert_eq!(marks, ["metadata=40013", "message=5000", "details=32769"]);
    assert_eq!(apus_tonic::execution(&status), Execution::Executed);
    assert_eq!(control.truncated_statuses(), 1);
}

#[tokio::test]
async fn a_megabyte_of_metadata_is_a_status_and_nothing_is_sent() {
    let (mut client, _) = client().await;
    let mut request = Request::new(SimpleRequest::default());
    request.metadata_mut().insert("large", "x".repeat(1_000_000).parse().unwrap());
    let status = client.unary_call(request).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(apus_tonic::execution(&status), Execution::NotExecuted);
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
    let network = LoopbackNetwork::new();
    let on = async || {
        let driver = Box::new(network.host());
        Endpoint::builder().with_driver(driver).await.unwrap()
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
