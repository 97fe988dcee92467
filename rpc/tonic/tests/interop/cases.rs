//! The test cases, by their names in gRPC's test descriptions.

use crate::client;
use crate::grpc_testing::test_service_client::TestServiceClient;
use crate::grpc_testing::unimplemented_service_client::UnimplementedServiceClient;
use crate::grpc_testing::{
    EchoStatus, Empty, Payload, ResponseParameters, SimpleRequest, StreamingInputCallRequest,
    StreamingOutputCallRequest,
};
use crate::service::{ECHO_INITIAL, ECHO_TRAILING};
use apus_rpc::{Execution, ServerControl};
use apus_tonic::Channel;
use std::time::Duration;
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Status, Streaming};

const REQUEST_SIZES: [usize; 4] = [27_182, 8, 1_828, 45_904];
const RESPONSE_SIZES: [i32; 4] = [31_415, 9, 2_653, 58_979];
const SPECIAL_MESSAGE: &str =
    "\t\ntest with whitespace\r\nand Unicode BMP \u{263a} and non-BMP \u{1f608}\t\n";

fn payload(size: usize) -> Option<Payload> {
    Some(Payload { body: vec![0; size].into() })
}

fn output(size: i32, request: usize) -> StreamingOutputCallRequest {
    StreamingOutputCallRequest {
        response_parameters: vec![ResponseParameters { size, interval_us: 0 }],
        payload: payload(request),
        response_status: None,
    }
}

async fn at_rest(control: &ServerControl) {
    while control.running() != 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn empty_unary() {
    let (mut client, _) = client().await;
    assert_eq!(client.empty_call(Empty {}).await.unwrap().into_inner(), Empty {});
}

#[tokio::test]
async fn large_unary() {
    let (mut client, control) = client().await;
    let request =
        SimpleRequest { response_size: 314_159, payload: payload(271_828), response_status: None };
    let response = client.unary_call(request).await.unwrap().into_inner();
    let body = response.payload.unwrap().body;
    assert_eq!(body.len(), 314_159);
    assert!(body.iter().all(|byte| *byte == 0));
    assert_eq!(control.streams(), 0, "a unary call is one call of the transport");
}

#[tokio::test]
async fn client_streaming() {
    let (mut client, control) = client().await;
    let requests = REQUEST_SIZES.map(|size| StreamingInputCallRequest { payload: payload(size) });
    let response = client.streaming_input_call(tokio_stream::iter(requests)).await.unwrap();
    assert_eq!(response.into_inner().aggregated_payload_size, 74_922);
    at_rest(&control).await;
}

#[tokio::test]
async fn server_streaming() {
    let (mut client, control) = client().await;
    let response_parameters =
        RESPONSE_SIZES.map(|size| ResponseParameters { size, interval_us: 0 }).to_vec();
    let request = StreamingOutputCallRequest { response_parameters, ..Default::default() };
    let mut responses = client.streaming_output_call(request).await.unwrap().into_inner();
    for size in RESPONSE_SIZES {
        let response = responses.message().await.unwrap().unwrap();
        assert_eq!(response.payload.unwrap().body.len(), usize::try_from(size).unwrap());
    }
    assert!(responses.message().await.unwrap().is_none());
    at_rest(&control).await;
}

#[tokio::test]
async fn ping_pong() {
    let (mut client, control) = client().await;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    sender.send(output(RESPONSE_SIZES[0], REQUEST_SIZES[0])).await.unwrap();
    let responses = client.full_duplex_call(ReceiverStream::new(receiver)).await.unwrap();
    let mut responses = responses.into_inner();
    for (round, size) in RESPONSE_SIZES.into_iter().enumerate() {
        let response = responses.message().await.unwrap().unwrap();
        assert_eq!(response.payload.unwrap().body.len(), usize::try_from(size).unwrap());
        if let (Some(response), Some(request)) =
            (RESPONSE_SIZES.get(round + 1), REQUEST_SIZES.get(round + 1))
        {
            sender.send(output(*response, *request)).await.unwrap();
        }
    }
    drop(sender);
    assert!(responses.message().await.unwrap().is_none());
    at_rest(&control).await;
}

#[tokio::test]
async fn empty_stream() {
    let (mut client, control) = client().await;
    let responses = client.full_duplex_call(tokio_stream::empty()).await.unwrap();
    assert!(responses.into_inner().message().await.unwrap().is_none());
    at_rest(&control).await;
}

async fn unary_status(client: &mut TestServiceClient<Channel>, code: i32, message: &str) -> Status {
    let response_status = Some(EchoStatus { code, message: message.to_owned() });
    let request = SimpleRequest { response_status, ..Default::default() };
    client.unary_call(request).await.unwrap_err()
}

#[tokio::test]
async fn status_code_and_message() {
    let (mut client, _) = client().await;
    let status = unary_status(&mut client, 2, "test status message").await;
    assert_eq!((status.code(), status.message()), (Code::Unknown, "test status message"));
    assert_eq!(apus_tonic::execution(&status), Execution::Executed);

    let response_status = Some(EchoStatus { code: 2, message: "test status message".into() });
    let request = StreamingOutputCallRequest { response_status, ..Default::default() };
    let responses = client.full_duplex_call(tokio_stream::once(request)).await;
    let status = match responses {
        Ok(responses) => responses.into_inner().message().await.unwrap_err(),
        Err(status) => status,
    };
    assert_eq!((status.code(), status.message()), (Code::Unknown, "test status message"));
}

#[tokio::test]
async fn special_status_message() {
    let (mut client, _) = client().await;
    let status = unary_status(&mut client, 2, SPECIAL_MESSAGE).await;
    assert_eq!((status.code(), status.message()), (Code::Unknown, SPECIAL_MESSAGE));
}

#[tokio::test]
async fn unimplemented_method() {
    let (mut client, _) = client().await;
    let status = client.unimplemented_call(Empty {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
}

#[tokio::test]
async fn unimplemented_service() {
    let service = crate::grpc_testing::test_service_server::TestServiceServer::new(
        crate::service::TestServer,
    );
    let (channel, _) = crate::serve(apus_tonic::Server::builder().add_service(service)).await;
    let mut client = UnimplementedServiceClient::new(channel);
    let status = client.unimplemented_call(Empty {}).await.unwrap_err();
    assert_eq!(status.code(), Code::Unimplemented);
    assert_eq!(apus_tonic::execution(&status), Execution::NotExecuted);
}

#[tokio::test]
async fn custom_metadata() {
    let (mut client, _) = client().await;
    let value = MetadataValue::from_bytes(b"\x0a\x0b\x0a\x0b\x0a\x0b");
    let with_metadata = |metadata: &mut tonic::metadata::MetadataMap| {
        metadata.insert(ECHO_INITIAL, "test_initial_metadata_value".parse().unwrap());
        metadata.insert_bin(ECHO_TRAILING, value.clone());
    };
    let mut request = Request::new(SimpleRequest {
        response_size: 314_159,
        payload: payload(271_828),
        response_status: None,
    });
    with_metadata(request.metadata_mut());
    let response = client.unary_call(request).await.unwrap();
    assert_eq!(response.metadata().get(ECHO_INITIAL).unwrap(), "test_initial_metadata_value");
    assert_eq!(response.metadata().get_bin(ECHO_TRAILING).unwrap(), value);

    // In a failed call it follows the status.
    let response_status = Some(EchoStatus { code: 9, message: String::new() });
    let mut request = Request::new(SimpleRequest { response_status, ..Default::default() });
    with_metadata(request.metadata_mut());
    let status = client.unary_call(request).await.unwrap_err();
    assert_eq!(status.metadata().get_bin(ECHO_TRAILING).unwrap(), value);

    let mut request = Request::new(tokio_stream::once(output(314_159, 271_828)));
    with_metadata(request.metadata_mut());
    let response = client.full_duplex_call(request).await.unwrap();
    assert_eq!(response.metadata().get(ECHO_INITIAL).unwrap(), "test_initial_metadata_value");
    let mut responses = response.into_inner();
    assert!(responses.message().await.unwrap().is_some());
    assert!(responses.message().await.unwrap().is_none());
}

#[tokio::test]
async fn cancel_after_begin() {
    let (mut client, control) = client().await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<StreamingInputCallRequest>(1);
    let call =
        tokio::spawn(
            async move { client.streaming_input_call(ReceiverStream::new(receiver)).await },
        );
    while control.running() == 0 {
        tokio::task::yield_now().await;
    }
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());
    // The server's handler ends, and so does the reader of the requests.
    at_rest(&control).await;
    sender.closed().await;
}

#[tokio::test]
async fn cancel_after_first_response() {
    let (mut client, control) = client().await;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    sender.send(output(RESPONSE_SIZES[0], REQUEST_SIZES[0])).await.unwrap();
    let responses = client.full_duplex_call(ReceiverStream::new(receiver)).await.unwrap();
    let mut responses: Streaming<_> = responses.into_inner();
    assert!(responses.message().await.unwrap().is_some());
    drop(responses);
    at_rest(&control).await;
    sender.closed().await;
}

#[tokio::test]
async fn timeout_on_sleeping_server() {
    let (mut client, control) = client().await;
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    sender.send(output(8, 27_182)).await.unwrap();
    let mut request = Request::new(ReceiverStream::new(receiver));
    request.set_timeout(Duration::from_millis(1));
    let result = client.full_duplex_call(request).await;
    let status = match result {
        Err(status) => status,
        Ok(responses) => {
            let mut responses = responses.into_inner();
            loop {
                match responses.message().await {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("the stream ended although the request did not"),
                    Err(status) => break status,
                }
            }
        }
    };
    assert_eq!(status.code(), Code::DeadlineExceeded);
    at_rest(&control).await;
    drop(sender);
}
