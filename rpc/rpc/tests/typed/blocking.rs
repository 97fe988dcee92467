//! Typed clients of threads.

use apus_rpc::{
    BlockingChannel, Body, Code, Context, Execution, Frame, Request, Server, ServiceError, Status,
    Streaming,
};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{self, Poll};
use std::time::Instant;

#[apus_rpc::service]
trait Calculator {
    async fn add(&self, one: u32, other: u32) -> u32;
    async fn divide(&self, one: u32, other: u32) -> Result<u32, String>;
    async fn text(&self, length: usize) -> String;
    /// Not part of the client for threads.
    async fn count(&self, to: u32) -> Streaming<u32>;
}

struct InMemory;

impl Calculator for InMemory {
    async fn add(&self, one: u32, other: u32) -> u32 {
        one + other
    }

    async fn divide(&self, one: u32, other: u32) -> Result<u32, String> {
        one.checked_div(other).ok_or_else(|| "by zero".to_owned())
    }

    async fn text(&self, length: usize) -> String {
        "x".repeat(length)
    }

    async fn count(&self, to: u32) -> Streaming<u32> {
        let (sender, parts) = Streaming::channel(1);
        tokio::spawn(async move {
            let _ = sender.send(to).await;
            sender.closed().await;
        });
        parts
    }
}

/// A server on a separate runtime, which runs until the sender is dropped.
fn server() -> (SocketAddr, tokio::sync::oneshot::Sender<()>) {
    let (started, address) = std::sync::mpsc::channel();
    let (end, ended) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let endpoint = apus::tokio::Endpoint::bind("127.0.0.1:0").await.unwrap();
            started.send(endpoint.local_addr()).unwrap();
            let server = Server::new(endpoint).add_service(CalculatorServer::new(InMemory));
            tokio::select! {
                _ = server.serve() => {}
                _ = ended => {}
            }
        });
    });
    (address.recv().unwrap(), end)
}

#[test]
fn threads_call_without_a_runtime() {
    let (address, _end) = server();
    let client = CalculatorBlockingClient::new(BlockingChannel::connect(address).unwrap());
    std::thread::scope(|scope| {
        for i in 0..4 {
            let client = client.clone();
            scope.spawn(move || assert_eq!(client.add(i, 1).unwrap(), i + 1));
        }
    });
    assert_eq!(client.divide(6, 3).unwrap(), 2);
    let error = client.divide(1, 0).unwrap_err();
    assert!(matches!(error, ServiceError::Method(text) if text == "by zero"));
    assert_eq!(client.text(2_000_000).unwrap().len(), 2_000_000);
}

#[test]
fn what_cannot_be_done_is_a_status() {
    let (address, _end) = server();
    let channel = BlockingChannel::connect(address).unwrap();
    let client = CalculatorBlockingClient::new(channel.clone());
    let context = Context { deadline: Some(Instant::now()), trace: None };
    let late = context.sync_scope(|| client.add(1, 1)).unwrap_err();
    assert_eq!((late.code(), late.execution()), (Code::DeadlineExceeded, Execution::NotExecuted));
    let unknown = channel.call(Request::new("Calculator/none", Vec::new())).unwrap_err();
    assert_eq!(unknown.code(), Code::Unimplemented);
    // A streamed response.
    let stream = channel.call(Request::new("Calculator/count", vec![7])).unwrap_err();
    assert_eq!((stream.code(), stream.execution()), (Code::Unimplemented, Execution::Executed));
    let refused = channel.call(Request::new("Calculator/add", Body::stream(Never))).unwrap_err();
    assert_eq!(
        (refused.code(), refused.execution()),
        (Code::Unimplemented, Execution::NotExecuted)
    );
}

/// A stream without parts.
struct Never;

impl futures_core::Stream for Never {
    type Item = Result<Frame, Status>;

    fn poll_next(self: Pin<&mut Self>, _: &mut task::Context<'_>) -> Poll<Option<Self::Item>> {
        Poll::Pending
    }
}
