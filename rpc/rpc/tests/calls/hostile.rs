//! Hostile clients and servers.

use crate::{endpoints, serve, three_endpoints, until};
use apus_rpc::envelope::{CallHead, ResponseHead, StreamCommand, StreamHead};
use apus_rpc::{Body, Channel, Code, Execution, Metadata, Request, Response};
use bytes::Bytes;

/// Returns the server's status for a message of these bytes.
async fn status_of(channel: &Channel, message: Bytes) -> apus_rpc::Status {
    let answer = channel.endpoint().call(channel.peer_addr(), message).await.unwrap();
    ResponseHead::parse(answer).unwrap().0.status.expect("a refusal")
}

#[tokio::test]
async fn bytes_that_are_no_envelope_are_refused_and_the_server_goes_on() {
    let (channel, _) = serve(async |_| Ok(Response::default())).await;
    let valid = CallHead { method: "test/m".into(), ..CallHead::default() }.encode().unwrap();
    let mut lies: Vec<Vec<u8>> = vec![vec![0], vec![0xa1], b"GET / HTTP/1.1\r\n\r\n".to_vec()];
    lies.push(valid[..valid.len() - 1].to_vec());
    for (at, value) in [(0, 0xa2), (1, 9), (1, 2), (2, 0x80), (3, 0), (3, 255)] {
        let mut lie = valid.to_vec();
        lie[at] = value;
        lies.push(lie);
    }
    for lie in lies {
        let status = status_of(&channel, lie.clone().into()).await;
        assert_eq!(status.code(), Code::InvalidArgument, "{lie:x?}");
        assert_eq!(status.execution(), Execution::NotExecuted);
    }
    channel.call(Request::new("test/m", vec![])).await.unwrap();
}

#[tokio::test]
async fn steps_of_streams_that_do_not_exist_are_refused() {
    let (channel, control) = serve(async |_| Ok(Response::default())).await;
    for command in [
        StreamCommand::Push { number: 0, end: true },
        StreamCommand::Pull { number: 0 },
        StreamCommand::Cancel,
    ] {
        let step = StreamHead { stream: 1, command }.encode();
        assert_eq!(status_of(&channel, step).await.code(), Code::Aborted);
    }
    assert_eq!(control.running(), 0);
}

/// Opens a stream without a client, and returns its number.
async fn open(channel: &Channel) -> u64 {
    let head = CallHead { method: "test/m".into(), open: true, ..CallHead::default() };
    let answer = channel.endpoint().call(channel.peer_addr(), head.encode().unwrap()).await;
    ResponseHead::parse(answer.unwrap()).unwrap().0.more.expect("a stream")
}

#[tokio::test]
async fn another_client_cannot_reach_a_stream() {
    let [client, neighbour, server] = three_endpoints().await;
    let to = server.local_addr();
    let handler = crate::Function(async |request: Request| Ok(Response::new(request.into_body())));
    let (control, served) = apus_rpc::Server::new(server).add_service(handler).start();
    tokio::spawn(served);
    let channel = Channel::new(client, to);
    let stream = open(&channel).await;
    let other = Channel::new(neighbour, channel.peer_addr());
    for command in [
        StreamCommand::Push { number: 0, end: true },
        StreamCommand::Pull { number: 0 },
        StreamCommand::Cancel,
    ] {
        let step = StreamHead { stream, command }.encode();
        assert_eq!(status_of(&other, step).await.code(), Code::Aborted);
    }
    assert_eq!(control.streams(), 1);
}

#[tokio::test]
async fn pulls_far_ahead_or_twice_are_refused() {
    let (channel, _) = serve(async |request: Request| Ok(Response::new(request.into_body()))).await;
    let stream = open(&channel).await;
    for number in [64, 1_000_000, u32::MAX] {
        let pull = StreamHead { stream, command: StreamCommand::Pull { number } };
        assert_eq!(status_of(&channel, pull.encode()).await.code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn pushes_that_no_handler_reads_are_bounded() {
    let (channel, _) = serve(async |request: Request| {
        let body = request.into_body();
        std::future::pending::<()>().await;
        Ok(Response::new(body))
    })
    .await;
    let stream = open(&channel).await;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..65 {
        let push = StreamHead { stream, command: StreamCommand::Push { number, end: false } };
        let channel = channel.clone();
        calls.spawn(async move { status_of(&channel, push.encode()).await });
    }
    // One of them has no room; the others wait for credit.
    let status = calls.join_next().await.unwrap().unwrap();
    assert_eq!(status.code(), Code::ResourceExhausted);
}

#[tokio::test]
async fn streams_are_bounded_per_host() {
    let (client, server) = endpoints().await;
    let to = server.local_addr();
    let handler = crate::Function(async |request: Request| Ok(Response::new(request.into_body())));
    let (control, served) =
        apus_rpc::Server::new(server).add_service(handler).max_streams(100, 3).start();
    tokio::spawn(served);
    let channel = Channel::new(client, to);
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(open(&channel).await);
    }
    let head = CallHead { method: "test/m".into(), open: true, ..CallHead::default() };
    let status = status_of(&channel, head.encode().unwrap()).await;
    assert_eq!(status.code(), Code::ResourceExhausted);
    assert_eq!(status.execution(), Execution::NotExecuted);
    let cancel = StreamHead { stream: streams[0], command: StreamCommand::Cancel };
    channel.endpoint().call(to, cancel.encode()).await.unwrap();
    until(|| control.streams() == 2).await;
    open(&channel).await;
}

/// A server that answers every request with the result of `answer`.
async fn lying(answer: impl Fn(Bytes) -> Bytes + Send + 'static) -> Channel {
    let (client, server) = endpoints().await;
    let to = server.local_addr();
    tokio::spawn(async move {
        while let Ok(request) = server.recv_request().await {
            let payload = answer(request.payload().clone());
            let _ = request.reply(payload).await;
        }
    });
    Channel::new(client, to)
}

#[tokio::test]
async fn the_response_of_another_method_is_a_typed_error() {
    let channel = lying(|_| {
        ResponseHead { echo: 8, head: Some(Metadata::new()), ..Default::default() }.encode()
    })
    .await;
    let request = Request::new("test/m", vec![]).with_signature(7);
    let status = channel.call(request).await.unwrap_err();
    assert_eq!(status.code(), Code::Internal);
    assert_eq!(status.execution(), Execution::Unknown);
    assert!(status.message().contains("another method"), "{status}");
}

#[tokio::test]
async fn a_response_that_is_no_envelope_is_a_typed_error() {
    for lie in [&b""[..], b"x", b"\xa1\x01\0\0\0\0\0\0", b"\xa1\x02\xff\0\0\0\0\0"] {
        let channel = lying(move |_| Bytes::from_static(lie)).await;
        let status = channel.call(Request::new("test/m", vec![])).await.unwrap_err();
        assert_eq!(status.code(), Code::Internal, "{lie:x?}");
        assert_eq!(status.execution(), Execution::Unknown);
    }
}

#[tokio::test]
async fn parts_of_another_stream_are_a_typed_error() {
    let channel = lying(|request| {
        let echo = u32::from_le_bytes(request[4..8].try_into().unwrap());
        let first = request[1] == 1;
        let more = Some(if first { 1 } else { 2 });
        let head = Some(Metadata::new());
        ResponseHead { echo, head, more, ..Default::default() }.encode()
    })
    .await;
    let response = channel.call(Request::new("test/m", vec![])).await.unwrap();
    let status = response.into_body().into_bytes(10).await.unwrap_err();
    assert!(status.message().contains("another stream"), "{status}");
}

#[tokio::test]
async fn a_response_that_never_ends_is_bounded_by_its_reader() {
    let channel = lying(|request| {
        let echo = u32::from_le_bytes(request[4..8].try_into().unwrap());
        let head = Some(Metadata::new());
        let head = ResponseHead { echo, head, more: Some(1), ..Default::default() };
        [&head.encode()[..], &[0; 1_000]].concat().into()
    })
    .await;
    let body = channel.call(Request::new("test/m", vec![])).await.unwrap().into_body();
    assert_eq!(body.into_bytes(10_000).await.unwrap_err().code(), Code::ResourceExhausted);
    let mut body: Body = channel.call(Request::new("test/m", vec![])).await.unwrap().into_body();
    assert!(body.next().await.unwrap().is_ok());
}
