//! Calls with one message each way.

use crate::serve;
use apus_rpc::{Code, Metadata, Request, Response, TraceContext};
use bytes::Bytes;

#[tokio::test]
async fn method_metadata_trace_and_payload_arrive_and_those_of_the_response_return() {
    let (channel, _) = serve(async |request: Request| {
        assert_eq!(request.method().as_str(), "test/echo");
        assert_eq!(request.trace(), Some(TraceContext::new([1; 16], [2; 8], true)));
        assert!(request.is_idempotent());
        assert!(request.peer_addr().is_some());
        let metadata = request.metadata().clone();
        let body = request.into_body().into_bytes(1_000).await?;
        let mut trailers = Metadata::new();
        trailers.append("end", "yes").unwrap();
        let body = apus_rpc::Body::from(body).with_trailers(trailers);
        Ok(Response::new(body).with_metadata(metadata))
    })
    .await;
    let mut metadata = Metadata::new();
    metadata.append("token", "a").unwrap();
    metadata.append("data-bin", vec![0, 255]).unwrap();
    let request = Request::new("test/echo", Bytes::from_static(b"hello"))
        .with_metadata(metadata.clone())
        .with_idempotent(true)
        .with_trace(Some(TraceContext::new([1; 16], [2; 8], true)));
    let response = channel.call(request).await.unwrap();
    assert_eq!(response.metadata(), &metadata);
    assert_eq!(response.body().trailers().get("end").unwrap(), "yes");
    assert_eq!(response.into_body().into_bytes(5).await.unwrap(), "hello");
}

#[tokio::test]
async fn a_message_of_several_megabytes_travels_in_one_call() {
    let (channel, control) = serve(async |request: Request| {
        let body = request.into_body().into_bytes(usize::MAX).await?;
        Ok(Response::new(body))
    })
    .await;
    let data: Bytes = (0..3_000_000_u32).map(|i| (i / 7) as u8).collect();
    let response = channel.call(Request::new("test/echo", data.clone())).await.unwrap();
    assert!(response.body().is_complete());
    assert_eq!(control.streams(), 0);
    assert_eq!(response.into_body().into_bytes(usize::MAX).await.unwrap(), data);
}

#[tokio::test]
async fn a_body_that_is_too_long_for_its_reader_is_a_status() {
    let (channel, _) =
        serve(async |request: Request| Ok(Response::new(request.into_body().into_bytes(4).await?)))
            .await;
    let status = channel.call(Request::new("test/echo", vec![0; 5])).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn an_empty_call_costs_eight_bytes_and_its_method() {
    let head = apus_rpc::envelope::CallHead { method: "m".into(), ..Default::default() };
    assert_eq!(head.encode().unwrap().len(), 9);
    assert_eq!(apus_rpc::envelope::ResponseHead::default().encode().len(), 8);
}
