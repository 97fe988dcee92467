//! Streams in both directions: order, credit, ends, failures and cancellation.

use crate::{FromChannel, serve, until};
use apus_rpc::{Body, Code, Frame, Metadata, Request, Response, Status};
use bytes::Bytes;
use tokio::sync::mpsc;

/// A body of `count` parts of `size` bytes that become available one after another.
fn parts(count: u8, size: usize) -> Body {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        for number in 0..count {
            let frame = Frame::Data(Bytes::from(vec![number; size]));
            if sender.send(Ok(frame)).await.is_err() {
                return;
            }
        }
    });
    Body::stream(FromChannel(receiver))
}

fn expected(count: u8, size: usize) -> Vec<u8> {
    (0..count).flat_map(|number| vec![number; size]).collect()
}

#[tokio::test]
async fn a_streamed_response_arrives_in_order_with_its_trailers() {
    let (channel, control) = serve(async |_| {
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(async move {
            for number in 0..200 {
                let frame = Frame::Data(Bytes::from(vec![number; 3_000]));
                sender.send(Ok(frame)).await.unwrap();
            }
            let mut trailers = Metadata::new();
            trailers.append("count", "200").unwrap();
            sender.send(Ok(Frame::Trailers(trailers))).await.unwrap();
        });
        Ok(Response::new(Body::stream(FromChannel(receiver))))
    })
    .await;
    let response = channel.call(Request::new("test/list", vec![])).await.unwrap();
    let mut body = response.into_body();
    let (mut data, mut trailers) = (Vec::new(), None);
    while let Some(frame) = body.next().await {
        match frame.unwrap() {
            Frame::Data(part) => data.extend_from_slice(&part),
            Frame::Trailers(metadata) => trailers = Some(metadata),
        }
    }
    assert_eq!(data, expected(200, 3_000));
    assert_eq!(trailers.unwrap().get("count").unwrap(), "200");
    until(|| control.running() == 0 && control.streams() == 0).await;
}

#[tokio::test]
async fn a_streamed_request_arrives_in_order() {
    let (channel, control) = serve(async |request: Request| {
        Ok(Response::new(request.into_body().into_bytes(usize::MAX).await?))
    })
    .await;
    let request = Request::new("test/collect", parts(200, 3_000));
    let response = channel.call(request).await.unwrap();
    let data = response.into_body().into_bytes(usize::MAX).await.unwrap();
    assert_eq!(data, expected(200, 3_000));
    until(|| control.running() == 0 && control.streams() == 0).await;
}

#[tokio::test]
async fn both_directions_flow_at_the_same_time() {
    let (channel, _) = serve(async |request: Request| {
        // The body of the response is the body of the request.
        Ok(Response::new(request.into_body()))
    })
    .await;
    let (sender, receiver) = mpsc::channel(1);
    let request = Request::new("test/ping-pong", Body::stream(FromChannel(receiver)));
    let mut body = channel.call(request).await.unwrap().into_body();
    for round in 0..20_u8 {
        sender.send(Ok(Frame::Data(Bytes::from(vec![round])))).await.unwrap();
        let Some(Ok(Frame::Data(data))) = body.next().await else { panic!("the stream ended") };
        assert_eq!(data[..], [round]);
    }
    drop(sender);
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn a_failure_after_some_parts_arrives_after_them() {
    let (channel, _) = serve(async |_| {
        let (sender, receiver) = mpsc::channel(8);
        sender.try_send(Ok(Frame::Data(Bytes::from_static(b"one")))).unwrap();
        sender.try_send(Err(Status::new(Code::DataLoss, "the rest is lost"))).unwrap();
        Ok(Response::new(Body::stream(FromChannel(receiver))))
    })
    .await;
    let mut body = channel.call(Request::new("test/m", vec![])).await.unwrap().into_body();
    assert_eq!(body.next().await.unwrap().unwrap(), Frame::Data(Bytes::from_static(b"one")));
    assert_eq!(body.next().await.unwrap().unwrap_err().code(), Code::DataLoss);
    assert!(body.next().await.is_none());
}

#[tokio::test]
async fn a_panic_in_a_stream_fails_it_and_nothing_else() {
    struct Panics(u8);
    impl futures_core::Stream for Panics {
        type Item = Result<Frame, Status>;

        fn poll_next(
            mut self: std::pin::Pin<&mut Self>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Self::Item>> {
            self.0 += 1;
            assert!(self.0 < 4, "a planted panic");
            if self.0.is_multiple_of(2) {
                cx.waker().wake_by_ref();
                return std::task::Poll::Pending;
            }
            std::task::Poll::Ready(Some(Ok(Frame::Data(Bytes::from_static(b"part")))))
        }
    }
    let (channel, control) = serve(async |_| Ok(Response::new(Body::stream(Panics(0))))).await;
    let body = channel.call(Request::new("test/m", vec![])).await.unwrap().into_body();
    assert_eq!(body.into_bytes(100).await.unwrap_err().code(), Code::Internal);
    until(|| control.running() == 0).await;
    channel.call(Request::new("test/m", vec![])).await.unwrap();
}

#[tokio::test]
async fn dropping_a_response_cancels_the_stream_at_the_server() {
    let (channel, control) = serve(async |_| {
        let (sender, receiver) = mpsc::channel(1);
        sender.try_send(Ok(Frame::Data(Bytes::from_static(b"first")))).unwrap();
        // Does not end while the receiver lives.
        tokio::spawn(async move { sender.closed().await });
        Ok(Response::new(Body::stream(FromChannel(receiver))))
    })
    .await;
    let mut body = channel.call(Request::new("test/watch", vec![])).await.unwrap().into_body();
    body.next().await.unwrap().unwrap();
    assert_eq!(control.streams(), 1);
    drop(body);
    until(|| control.streams() == 0 && control.running() == 0).await;
}

#[tokio::test]
async fn a_reader_that_pauses_holds_its_writer_back() {
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = sent.clone();
    let (channel, _) = serve(move |_| {
        let (sender, receiver) = mpsc::channel(1);
        let count = count.clone();
        tokio::spawn(async move {
            for _ in 0..1_000 {
                let frame = Frame::Data(Bytes::from(vec![0; 65_536]));
                if sender.send(Ok(frame)).await.is_err() {
                    return;
                }
                count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        });
        async { Ok(Response::new(Body::stream(FromChannel(receiver)))) }
    })
    .await;
    let mut body = channel.call(Request::new("test/m", vec![])).await.unwrap().into_body();
    body.next().await.unwrap().unwrap();
    // The round trips of another call give the writer enough time.
    for _ in 0..20 {
        let mut other = channel.call(Request::new("test/m", vec![])).await.unwrap().into_body();
        other.next().await.unwrap().unwrap();
    }
    let sent = sent.load(std::sync::atomic::Ordering::Relaxed);
    assert!(sent < 21 * 16, "credit bounds what is in flight: {sent}");
}

#[tokio::test]
async fn a_handler_that_answers_early_ends_the_request() {
    let (channel, control) = serve(async |_| Ok(Response::new(vec![1]))).await;
    let (sender, receiver) = mpsc::channel(1);
    let request = Request::new("test/m", Body::stream(FromChannel(receiver)));
    let response = channel.call(request).await.unwrap();
    assert_eq!(response.into_body().into_bytes(1).await.unwrap()[..], [1]);
    until(|| control.streams() == 0).await;
    sender.closed().await;
}

#[tokio::test]
async fn a_client_whose_request_fails_cancels_the_call() {
    let (channel, control) = serve(async |request: Request| {
        let body = request.into_body().into_bytes(usize::MAX).await;
        assert!(body.is_err(), "the request did not end");
        Ok(Response::default())
    })
    .await;
    let (sender, receiver) = mpsc::channel(2);
    let request = Request::new("test/m", Body::stream(FromChannel(receiver)));
    let call = tokio::spawn(async move { channel.call(request).await });
    sender.send(Ok(Frame::Data(Bytes::from_static(b"part")))).await.unwrap();
    until(|| control.streams() == 1).await;
    sender.send(Err(Status::new(Code::Aborted, "no more"))).await.unwrap();
    assert!(call.await.unwrap().is_err());
    until(|| control.streams() == 0).await;
}
