//! Clients that do not wait any more: their handlers end (RPC-20).

use crate::{FromChannel, serve, until};
use apus_rpc::{Body, Frame, Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts its drop.
struct Guard(Arc<AtomicUsize>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_its_handler() {
    let (began, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (started, guards) = (began.clone(), ended.clone());
    let (channel, control) = serve(move |_| {
        started.fetch_add(1, Ordering::SeqCst);
        let guard = Guard(guards.clone());
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    })
    .await;
    let call = tokio::spawn(async move { channel.call(Request::new("test/wait", vec![])).await });
    until(|| began.load(Ordering::SeqCst) == 1).await;
    assert_eq!(ended.load(Ordering::SeqCst), 0);
    call.abort();
    until(|| ended.load(Ordering::SeqCst) == 1).await;
    until(|| control.running() == 0).await;
}

#[tokio::test]
async fn a_cancelled_stream_ends_its_producer() {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    let receiver = Arc::new(std::sync::Mutex::new(Some(receiver)));
    let (channel, _) = serve(move |_| {
        let receiver = receiver.lock().unwrap().take().unwrap();
        async move { Ok(Response::new(Body::stream(FromChannel(receiver)))) }
    })
    .await;
    sender.send(Ok(Frame::Data(vec![1; 100].into()))).await.unwrap();
    let response = channel.call(Request::new("test/stream", vec![])).await.unwrap();
    drop(response);
    // The receiver is dropped with the producer.
    sender.closed().await;
}
