//! Failures: statuses, panics, refusals, unknown methods, and the end of a server.

use crate::{serve, until};
use apus_rpc::{Code, Execution, HEALTH_METHOD, Health, Metadata, Request, Response, Status};
use std::time::Duration;

#[tokio::test]
async fn a_status_arrives_with_message_details_and_metadata() {
    let (channel, _) = serve(async |_| {
        let mut metadata = Metadata::new();
        metadata.append("hint", "later").unwrap();
        Err(Status::new(Code::NotFound, "no such order: 7 \u{fffd}")
            .with_details(vec![1, 2, 3])
            .with_metadata(metadata))
    })
    .await;
    let status = channel.call(Request::new("test/fail", vec![])).await.unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.message(), "no such order: 7 \u{fffd}");
    assert_eq!(status.details(), &[1, 2, 3][..]);
    assert_eq!(status.metadata().get("hint").unwrap(), "later");
    assert_eq!(status.execution(), Execution::Executed);
}

#[tokio::test]
async fn a_panic_fails_its_call_and_nothing_else() {
    let (channel, control) = serve(async |request: Request| {
        assert!(request.method().as_str() != "test/panic", "a planted panic");
        if request.method().as_str() == "test/late" {
            tokio::task::yield_now().await;
            panic!("a planted panic");
        }
        Ok(Response::default())
    })
    .await;
    for method in ["test/panic", "test/late"] {
        let status = channel.call(Request::new(method, vec![])).await.unwrap_err();
        assert_eq!((status.code(), status.execution()), (Code::Internal, Execution::Executed));
    }
    channel.call(Request::new("test/fine", vec![])).await.unwrap();
    until(|| control.running() == 0).await;
}

#[tokio::test]
async fn a_panic_before_the_future_exists_fails_its_call_alone() {
    let (channel, _) = serve(|request: Request| {
        assert!(request.method().as_str() != "test/panic", "a planted panic");
        async { Ok(Response::default()) }
    })
    .await;
    let status = channel.call(Request::new("test/panic", vec![])).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    channel.call(Request::new("test/fine", vec![])).await.unwrap();
}

#[tokio::test]
async fn an_unknown_service_is_a_status_and_was_not_executed() {
    let (channel, _) = serve(async |_| Ok(Response::default())).await;
    for method in ["other/m", "m", "/", "test"] {
        let status = channel.call(Request::new(method, vec![])).await.unwrap_err();
        assert_eq!(status.code(), Code::Unimplemented, "{method}");
        assert_eq!(status.execution(), Execution::NotExecuted);
    }
}

#[tokio::test]
async fn a_method_without_a_name_or_with_one_that_is_too_long_is_not_sent() {
    let (channel, _) = serve(async |_| Ok(Response::default())).await;
    for method in [String::new(), "m".repeat(256)] {
        let status = channel.call(Request::new(method, vec![])).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        assert_eq!(status.execution(), Execution::NotExecuted);
    }
}

#[test]
fn a_megabyte_of_metadata_is_refused_where_it_is_added() {
    let mut metadata = Metadata::new();
    let error = metadata.append("name", vec![0; 1_000_000]).unwrap_err();
    assert!(error.to_string().contains("32768"), "{error}");
    assert!(metadata.append("Name", "upper case").is_err());
    assert!(metadata.append("", "").is_err());
    assert!(metadata.is_empty());
}

#[tokio::test]
async fn a_server_beyond_its_limit_refuses_and_serves_again_afterwards() {
    let (client, server) = crate::endpoints().await;
    let to = server.local_addr();
    let (sender, receiver) = tokio::sync::watch::channel(false);
    let handler = crate::Function(move |_| {
        let mut receiver = receiver.clone();
        async move {
            receiver.wait_for(|released| *released).await.unwrap();
            Ok(Response::default())
        }
    });
    let (control, served) = apus_rpc::Server::new(server).add_service(handler).max_calls(1).start();
    tokio::spawn(served);
    let channel = apus_rpc::Channel::new(client, to);
    let first = tokio::spawn({
        let channel = channel.clone();
        async move { channel.call(Request::new("test/m", vec![])).await }
    });
    until(|| control.running() == 1).await;
    let status = channel.call(Request::new("test/m", vec![])).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.execution(), Execution::NotExecuted);
    sender.send(true).unwrap();
    first.await.unwrap().unwrap();
    until(|| control.running() == 0).await;
    channel.call(Request::new("test/m", vec![])).await.unwrap();
}

#[tokio::test]
async fn draining_serves_what_runs_and_refuses_what_is_new() {
    let (sender, receiver) = tokio::sync::watch::channel(false);
    let (channel, control) = serve(move |_| {
        let mut receiver = receiver.clone();
        async move {
            receiver.wait_for(|released| *released).await.unwrap();
            Ok(Response::new(vec![7]))
        }
    })
    .await;
    let call =
        async |channel: apus_rpc::Channel, method| channel.call(Request::new(method, vec![])).await;
    let first = tokio::spawn(call(channel.clone(), "test/m"));
    until(|| control.running() == 1).await;
    let drained = tokio::spawn({
        let control = control.clone();
        async move { control.drain(Duration::from_secs(60)).await }
    });
    until(|| control.health() == Health::Draining).await;
    let status = call(channel.clone(), "test/m").await.unwrap_err();
    assert_eq!((status.code(), status.execution()), (Code::Unavailable, Execution::NotExecuted));
    let health = call(channel.clone(), HEALTH_METHOD).await.unwrap();
    let health = health.into_body().into_bytes(1).await.unwrap();
    assert_eq!(Health::from_number(health[0]), Health::Draining);
    assert!(!drained.is_finished());
    sender.send(true).unwrap();
    assert_eq!(first.await.unwrap().unwrap().body().ready_len(), 1);
    assert!(drained.await.unwrap());
}

#[tokio::test]
async fn a_server_that_is_not_ready_refuses_until_it_is() {
    let (channel, control) = serve(async |_| Ok(Response::default())).await;
    control.set_ready(false);
    let status = channel.call(Request::new("test/m", vec![])).await.unwrap_err();
    assert_eq!((status.code(), status.execution()), (Code::Unavailable, Execution::NotExecuted));
    control.set_ready(true);
    channel.call(Request::new("test/m", vec![])).await.unwrap();
}
