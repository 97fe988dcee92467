//! Deadlines: they are propagated and inherited, and expired calls are not executed.

use crate::{endpoints, serve};
use apus_rpc::envelope::{CallHead, ResponseHead};
use apus_rpc::{Channel, Code, Context, Execution, Request, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[tokio::test]
async fn the_server_sees_what_is_left_of_the_deadline() {
    let (channel, _) = serve(async |request: Request| {
        let left = request.deadline().map(|deadline| deadline - Instant::now());
        assert_eq!(Context::current().deadline, request.deadline());
        Ok(Response::new(left.map_or(vec![], |left| left.as_micros().to_le_bytes().to_vec())))
    })
    .await;
    let timeout = Duration::from_secs(1_000);
    let request = Request::new("test/left", vec![]).with_timeout(timeout);
    let left = channel.call(request).await.unwrap().into_body().into_bytes(16).await.unwrap();
    let left = u128::from_le_bytes(left[..].try_into().unwrap());
    assert!(left <= timeout.as_micros() && left > 500_000_000, "{left}");
    let none = channel.call(Request::new("test/left", vec![])).await.unwrap();
    assert_eq!(none.body().ready_len(), 0, "no deadline came from nowhere");
}

#[tokio::test]
async fn a_nested_call_inherits_deadline_and_trace() {
    let (inner, _) = serve(async |request: Request| {
        let left = request.deadline().expect("inherited") - Instant::now();
        assert!(left < Duration::from_secs(100));
        assert_eq!(request.trace().expect("inherited").trace_id(), [9; 16]);
        Ok(Response::default())
    })
    .await;
    let (outer, _) = serve(move |_| {
        let inner = inner.clone();
        async move {
            let own = Request::new("test/inner", vec![]).with_timeout(Duration::from_secs(5_000));
            inner.call(own).await?;
            // A task inherits the deadline through its scope.
            let context = Context::current();
            let call = async move { inner.call(Request::new("test/inner", vec![])).await };
            tokio::spawn(context.scope(call)).await.unwrap()
        }
    })
    .await;
    let trace = apus_rpc::TraceContext::new([9; 16], [1; 8], true);
    let request = Request::new("test/outer", vec![])
        .with_timeout(Duration::from_secs(100))
        .with_trace(Some(trace));
    outer.call(request).await.unwrap();
}

#[tokio::test]
async fn a_call_whose_deadline_has_passed_is_not_sent() {
    let (channel, _) = serve(async |_| unreachable!("not executed")).await;
    let request = Request::new("test/never", vec![]).with_deadline(Some(Instant::now()));
    let status = channel.call(request).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(status.execution(), Execution::NotExecuted);
}

#[tokio::test]
async fn a_request_that_arrives_expired_is_dropped_unread() {
    let executed = Arc::new(AtomicU32::new(0));
    let count = executed.clone();
    let (client, server) = endpoints().await;
    let to = server.local_addr();
    let handler = move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { Ok(Response::default()) }
    };
    tokio::spawn(apus_rpc::Server::new(server).add_service(crate::Function(handler)).serve());
    // No client sends a time left of zero.
    let head = CallHead { method: "test/m".into(), time_left: Some(0), ..CallHead::default() };
    let answer = client.call(to, head.encode().unwrap()).await.unwrap();
    let status = ResponseHead::parse(answer).unwrap().0.status.unwrap();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    assert_eq!(status.execution(), Execution::NotExecuted);
    assert_eq!(executed.load(Ordering::Relaxed), 0);
    Channel::new(client, to).call(Request::new("test/m", vec![])).await.unwrap();
    assert_eq!(executed.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_handler_ends_with_the_deadline_of_its_call() {
    struct Dropped(tokio::sync::mpsc::UnboundedSender<()>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let (sender, mut ended) = tokio::sync::mpsc::unbounded_channel();
    // The longest method name of a request that a handler has started.
    let begun = Arc::new(AtomicUsize::new(0));
    let longest = begun.clone();
    let (channel, control) = serve(move |request: Request| {
        let guard = Dropped(sender.clone());
        longest.fetch_max(request.method().len(), Ordering::Relaxed);
        async move {
            std::future::pending::<()>().await;
            drop(guard);
            Ok(Response::default())
        }
    })
    .await;
    // On a busy machine the deadline may pass before a request is handled; then the next request
    // counts.
    for attempt in 1.. {
        let method = format!("test/{}", "h".repeat(attempt));
        let request = Request::new(method.as_str(), vec![]).with_timeout(Duration::from_millis(20));
        let status = channel.call(request).await.unwrap_err();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        if begun.load(Ordering::Relaxed) == method.len() {
            assert_ne!(status.execution(), Execution::NotExecuted);
            break;
        }
    }
    ended.recv().await.unwrap();
    crate::until(|| control.running() == 0).await;
}
