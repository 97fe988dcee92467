//! The server of the test cases.

use crate::grpc_testing::test_service_server::TestService;
use crate::grpc_testing::{
    EchoStatus, Empty, Payload, SimpleRequest, SimpleResponse, StreamingInputCallRequest,
    StreamingInputCallResponse, StreamingOutputCallRequest, StreamingOutputCallResponse,
};
use std::pin::Pin;
use std::time::Duration;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Code, Request, Response, Status, Streaming};

/// Metadata echoed at the start of a response.
pub(crate) const ECHO_INITIAL: &str = "x-grpc-test-echo-initial";

/// Metadata echoed at the end of a response.
pub(crate) const ECHO_TRAILING: &str = "x-grpc-test-echo-trailing-bin";

pub(crate) struct TestServer;

type Responses<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

fn zeros(size: i32) -> Payload {
    Payload { body: vec![0; usize::try_from(size).unwrap()].into() }
}

fn check(status: Option<EchoStatus>) -> Result<(), Status> {
    match status {
        Some(status) if status.code != 0 => {
            Err(Status::new(Code::from_i32(status.code), status.message))
        }
        _ => Ok(()),
    }
}

/// Sends the requested parts. A failed send means that the client has ended.
async fn respond(
    request: StreamingOutputCallRequest,
    sender: &tokio::sync::mpsc::Sender<Result<StreamingOutputCallResponse, Status>>,
) -> Result<(), ()> {
    if let Err(status) = check(request.response_status) {
        let _ = sender.send(Err(status)).await;
        return Err(());
    }
    for parameters in request.response_parameters {
        if let Ok(pause @ 1..) = u64::try_from(parameters.interval_us) {
            tokio::time::sleep(Duration::from_micros(pause)).await;
        }
        let response = StreamingOutputCallResponse { payload: Some(zeros(parameters.size)) };
        sender.send(Ok(response)).await.map_err(drop)?;
    }
    Ok(())
}

/// Copies the metadata that the test cases check.
fn echo_initial<T>(from: &tonic::metadata::MetadataMap, to: &mut Response<T>) {
    if let Some(value) = from.get(ECHO_INITIAL) {
        to.metadata_mut().insert(ECHO_INITIAL, value.clone());
    }
}

#[tonic::async_trait]
impl TestService for TestServer {
    async fn empty_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn unary_call(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<SimpleResponse>, Status> {
        assert!(request.extensions().get::<apus_tonic::PeerAddr>().is_some());
        let metadata = request.metadata().clone();
        let request = request.into_inner();
        if let Err(mut status) = check(request.response_status) {
            if let Some(value) = metadata.get_bin(ECHO_TRAILING) {
                status.metadata_mut().insert_bin(ECHO_TRAILING, value.clone());
            }
            return Err(status);
        }
        let response = SimpleResponse { payload: Some(zeros(request.response_size)) };
        let mut response = Response::new(response);
        echo_initial(&metadata, &mut response);
        if let Some(value) = metadata.get_bin(ECHO_TRAILING) {
            // A tonic handler cannot set trailers of a successful unary call.
            response.metadata_mut().insert_bin(ECHO_TRAILING, value.clone());
        }
        Ok(response)
    }

    type StreamingOutputCallStream = Responses<StreamingOutputCallResponse>;

    async fn streaming_output_call(
        &self,
        request: Request<StreamingOutputCallRequest>,
    ) -> Result<Response<Self::StreamingOutputCallStream>, Status> {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move { respond(request.into_inner(), &sender).await });
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<StreamingInputCallRequest>>,
    ) -> Result<Response<StreamingInputCallResponse>, Status> {
        let mut requests = request.into_inner();
        let mut size = 0;
        while let Some(request) = requests.next().await {
            size += request?.payload.map_or(0, |payload| payload.body.len());
        }
        let aggregated_payload_size = i32::try_from(size).unwrap();
        Ok(Response::new(StreamingInputCallResponse { aggregated_payload_size }))
    }

    type FullDuplexCallStream = Responses<StreamingOutputCallResponse>;

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Self::FullDuplexCallStream>, Status> {
        let metadata = request.metadata().clone();
        let mut requests = request.into_inner();
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(Ok(request)) = requests.next().await {
                respond(request, &sender).await?;
            }
            Ok::<_, ()>(())
        });
        let responses: Self::FullDuplexCallStream = Box::pin(ReceiverStream::new(receiver));
        let mut response = Response::new(responses);
        echo_initial(&metadata, &mut response);
        Ok(response)
    }

    async fn unimplemented_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Err(Status::unimplemented("this method is not implemented"))
    }
}
