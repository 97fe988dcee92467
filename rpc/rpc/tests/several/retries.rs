//! Retries, based on the execution of calls.

use crate::{call, servers};
use apus_rpc::layers::{Budget, Retry};
use apus_rpc::{Balance, BoxFuture, Code, Execution, Request, Response, Status, names};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

#[tokio::test]
async fn what_was_refused_is_sent_to_another_server() {
    let (client, servers) = servers(3).await;
    let addresses = servers.iter().map(|server| server.address);
    let service = Retry::new(Balance::new(client, names::list(addresses)));
    servers[0].control.set_ready(false);
    servers[1].control.set_ready(false);
    for _ in 0..50 {
        let name = call(&service, Request::new("test/m", vec![])).await.unwrap();
        assert_eq!(name, 2);
    }
    assert_eq!((servers[0].executed(), servers[2].executed()), (0, 50));
}

#[tokio::test]
async fn what_was_executed_is_not_sent_again() {
    let (client, servers) = servers(2).await;
    let addresses = servers.iter().map(|server| server.address);
    let service = Retry::new(Balance::new(client, names::list(addresses)));
    let request = Request::new("test/fail", vec![]).with_idempotent(true);
    assert_eq!(call(&service, request).await.unwrap_err().code(), Code::Internal);
    assert_eq!(servers[0].executed() + servers[1].executed(), 1);
}

/// Fails every call with this status, and counts the calls.
#[derive(Clone)]
struct Fails(Status, Arc<AtomicU32>);

impl tower_service::Service<Request> for Fails {
    type Response = Response;
    type Error = Status;
    type Future = BoxFuture<Result<Response, Status>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request) -> Self::Future {
        self.1.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Err(self.0.clone())))
    }
}

/// Returns the number of attempts of a call that fails with this status.
async fn attempts(code: Code, execution: Execution, idempotent: bool) -> u32 {
    let count = Arc::new(AtomicU32::new(0));
    let status = Status::new(code, "").with_execution(execution);
    let service = Retry::new(Fails(status, count.clone())).max_attempts(3);
    let request = Request::new("test/m", vec![]).with_idempotent(idempotent);
    call(&service, request).await.unwrap_err();
    count.load(Ordering::Relaxed)
}

#[tokio::test]
async fn the_outcome_decides_whether_a_call_is_made_again() {
    use Execution::{Executed, NotExecuted, Unknown};
    assert_eq!(attempts(Code::Unavailable, NotExecuted, false).await, 3);
    assert_eq!(attempts(Code::ResourceExhausted, NotExecuted, false).await, 3);
    assert_eq!(attempts(Code::Unknown, Unknown, true).await, 3);
    assert_eq!(attempts(Code::Unknown, Unknown, false).await, 1, "it may have been executed");
    assert_eq!(attempts(Code::Unavailable, Executed, true).await, 1);
    assert_eq!(attempts(Code::Unimplemented, NotExecuted, false).await, 1, "hopeless");
    assert_eq!(attempts(Code::DeadlineExceeded, Unknown, true).await, 1, "too late");
}

#[tokio::test]
async fn a_budget_bounds_the_retries_of_a_failing_service() {
    let count = Arc::new(AtomicU32::new(0));
    let status = Status::not_executed(Code::Unavailable, "");
    let service = Retry::new(Fails(status, count.clone())).max_attempts(2);
    let service = service.budget(Budget::new(10, 5));
    for _ in 0..1_000 {
        call(&service, Request::new("test/m", vec![])).await.unwrap_err();
    }
    let attempts = count.load(Ordering::Relaxed);
    assert!((1_100..=1_105).contains(&attempts), "{attempts}");
}

#[tokio::test]
async fn a_request_that_is_a_stream_is_sent_once() {
    struct Never;
    impl futures_core::Stream for Never {
        type Item = Result<apus_rpc::Frame, Status>;

        fn poll_next(
            self: std::pin::Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Self::Item>> {
            Poll::Pending
        }
    }
    let count = Arc::new(AtomicU32::new(0));
    let status = Status::not_executed(Code::Unavailable, "");
    let service = Retry::new(Fails(status, count.clone()));
    let request = Request::new("test/m", apus_rpc::Body::stream(Never));
    call(&service, request).await.unwrap_err();
    assert_eq!(count.load(Ordering::Relaxed), 1);
}
