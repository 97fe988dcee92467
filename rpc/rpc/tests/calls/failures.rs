//! Failures: statuses, panics, refusals, unknown methods, and the end of a server.

use crate::{serve, until};
use apus_rpc::{
    Body, Code, Execution, Frame, HEALTH_METHOD, Health, Metadata, Request, Response, Status,
};
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

/// Text that repeats what the execution of a status states.
#[tokio::test]
async fn a_status_of_the_transport_states_the_execution_once() {
    let (client, server) = crate::endpoints().await;
    let channel = apus_rpc::Channel::new(client, server.local_addr());
    server.shutdown();
    let status = channel.call(Request::new("test/m", vec![])).await.unwrap_err();
    assert_eq!(status.execution(), Execution::NotExecuted);
    assert_eq!(status.to_string().matches("executed").count(), 1, "{status}");
}

#[tokio::test]
async fn a_status_that_is_shortened_says_so_and_is_counted() {
    let (channel, control) = serve(async |request: Request| {
        let mut metadata = Metadata::new();
        if request.method().as_str() == "test/full" {
            metadata.append("first", "kept").unwrap();
            metadata.append("last", vec![b'x'; Metadata::MAX_ENCODED - 30]).unwrap();
        }
        // Two bytes a character: none is cut in half.
        let message = "\u{e9}".repeat(2_049);
        Err(Status::new(Code::NotFound, message)
            .with_details(vec![0; 40_000])
            .with_metadata(metadata))
    })
    .await;
    let marks = |status: &Status| {
        let values = status.metadata().iter().filter(|(name, _)| *name == Status::TRUNCATED);
        values.map(|(_, value)| String::from_utf8_lossy(value).into_owned()).collect::<Vec<_>>()
    };
    let status = channel.call(Request::new("test/cut", vec![])).await.unwrap_err();
    assert_eq!((status.message().len(), status.details().len()), (4_096, 0));
    assert_eq!((status.code(), status.execution()), (Code::NotFound, Execution::Executed));
    assert!(status.is_truncated());
    assert_eq!(marks(&status), ["message=4098", "details=40000"]);
    assert_eq!(control.truncated_statuses(), 1);
    // Marks have precedence over the last values.
    let status = channel.call(Request::new("test/full", vec![])).await.unwrap_err();
    assert_eq!(status.metadata().get("first").unwrap(), "kept");
    assert!(status.metadata().get("last").is_none());
    assert_eq!(marks(&status), ["message=4098", "metadata=32757", "details=40000"]);
    assert_eq!(control.truncated_statuses(), 2);
}

/// Endpoints whose messages have at most two megabytes.
async fn small_endpoints() -> (apus::tokio::Endpoint, apus::tokio::Endpoint) {
    let network = apus_driver::loopback::LoopbackNetwork::new();
    let config = apus::Config::builder().max_message(2_000_000).build().unwrap();
    let builder = apus::tokio::Endpoint::builder().config(config);
    let on = async || builder.clone().with_driver(Box::new(network.host())).await.unwrap();
    (on().await, on().await)
}

#[tokio::test]
async fn a_response_longer_than_max_message_is_a_status_with_both_lengths() {
    let (client, server) = small_endpoints().await;
    let to = server.local_addr();
    let handler = crate::Function(async |request: Request| {
        let length = request.into_body().into_bytes(100).await?[0];
        Ok(Response::new(vec![length; usize::from(length) * 1_000_000]))
    });
    tokio::spawn(apus_rpc::Server::new(server).add_service(handler).serve());
    let channel = apus_rpc::Channel::new(client, to);
    let status = channel.call(Request::new("test/m", vec![3])).await.unwrap_err();
    assert_eq!((status.code(), status.execution()), (Code::ResourceExhausted, Execution::Executed));
    assert!(status.message().contains("3000008 bytes"), "{status}");
    assert!(status.message().contains("2000000"), "{status}");
    let response = channel.call(Request::new("test/m", vec![1])).await.unwrap();
    assert_eq!(response.body().ready_len(), 1_000_000);
    // A request that is too long.
    let status = channel.call(Request::new("test/m", vec![0; 3_000_000])).await.unwrap_err();
    assert_eq!(status.execution(), Execution::NotExecuted);
    assert!(status.message().contains("2000000"), "{status}");
}

/// Pieces of streams may be of any length.
#[tokio::test]
async fn a_stream_carries_pieces_longer_than_max_message() {
    let (client, server) = small_endpoints().await;
    let to = server.local_addr();
    let handler = crate::Function(async |request: Request| {
        let body = request.into_body().into_bytes(usize::MAX).await?;
        let (sender, frames) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            for piece in [body.clone(), body.slice(..7), body] {
                sender.send(Ok(Frame::Data(piece))).await.unwrap();
            }
        });
        Ok(Response::new(Body::stream(crate::FromChannel(frames))))
    });
    tokio::spawn(apus_rpc::Server::new(server).add_service(handler).serve());
    let channel = apus_rpc::Channel::new(client, to);
    let content: Vec<u8> = (0..5_000_000_u32).map(|at| (at * 7 + at / 251) as u8).collect();
    let (sender, frames) = tokio::sync::mpsc::channel(1);
    let sent = bytes::Bytes::from(content.clone());
    tokio::spawn(async move {
        sender.send(Ok(Frame::Data(sent.slice(..3)))).await.unwrap();
        sender.send(Ok(Frame::Data(sent.slice(3..)))).await.unwrap();
    });
    let body = Body::stream(crate::FromChannel(frames));
    let response = channel.call(Request::new("test/m", body)).await.unwrap();
    let received = response.into_body().into_bytes(usize::MAX).await.unwrap();
    let expected = [&content[..], &content[..7], &content].concat();
    assert!(received == expected, "{} of {} bytes", received.len(), expected.len());
}

/// The server has accepted the call: a PULL that it does not execute says nothing about it.
#[tokio::test]
async fn the_end_of_a_server_during_a_stream_leaves_the_execution_unknown() {
    let (client, server) = crate::endpoints().await;
    let to = server.local_addr();
    let (sender, frames) = tokio::sync::mpsc::channel(1);
    let frames = std::sync::Mutex::new(Some(frames));
    let handler = crate::Function(move |_| {
        let frames = frames.lock().unwrap().take().unwrap();
        async { Ok(Response::new(Body::stream(crate::FromChannel(frames)))) }
    });
    tokio::spawn(apus_rpc::Server::new(server.clone()).add_service(handler).serve());
    let channel = apus_rpc::Channel::new(client, to);
    let mut body = channel.call(Request::new("test/m", vec![])).await.unwrap().into_body();
    sender.send(Ok(Frame::Data(vec![1].into()))).await.unwrap();
    assert_eq!(body.next().await.unwrap().unwrap(), Frame::Data(vec![1].into()));
    server.shutdown();
    let status = loop {
        match body.next().await.unwrap() {
            Ok(_) => {}
            Err(status) => break status,
        }
    };
    assert_ne!(status.execution(), Execution::NotExecuted, "{status}");
}

/// Nothing has been sent when the body of a request fails at once.
#[tokio::test]
async fn a_request_whose_body_fails_was_not_executed() {
    let (channel, _) = serve(async |_| Ok(Response::default())).await;
    let (sender, frames) = tokio::sync::mpsc::channel(1);
    sender.try_send(Err(Status::new(Code::OutOfRange, "too long"))).unwrap();
    let body = Body::stream(crate::FromChannel(frames));
    let status = channel.call(Request::new("test/m", body)).await.unwrap_err();
    assert_eq!((status.code(), status.execution()), (Code::OutOfRange, Execution::NotExecuted));
}
