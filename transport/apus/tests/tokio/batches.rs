//! Calls and replies that are made together, by tasks.

use crate::{assert_at_rest, bytes, echo_pair, on_each_runtime, pair, patient, patient_config};
use apus::tokio::{Endpoint, EndpointBuilder, Request};
use apus::{CallOptions, OutgoingCall, Payload};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;

/// Messages of up to 10,000 bytes, at most two in flight.
fn small() -> EndpointBuilder {
    let config =
        patient_config().max_message(10_000).max_send_bytes_per_peer(20_000).max_send_bytes(20_000);
    patient().config(config.build().unwrap())
}

/// Calls of this length to `to`, with their places as cookies.
fn calls(to: SocketAddr, count: u64, length: usize) -> Vec<OutgoingCall> {
    let call = |cookie| OutgoingCall { to, request: bytes(cookie as usize, length).into(), cookie };
    (0..count).map(call).collect()
}

/// Receives completions of calls 0 to `count`, each with its request.
async fn expect(client: &Endpoint, count: u64, length: usize) {
    let mut cookies = Vec::new();
    for _ in 0..count {
        let completion = client.recv_completion().await.unwrap();
        assert_eq!(completion.result.unwrap(), bytes(completion.cookie as usize, length));
        cookies.push(completion.cookie);
    }
    cookies.sort_unstable();
    assert_eq!(cookies, (0..count).collect::<Vec<_>>());
}

/// Receives requests, and returns them with themselves as replies.
async fn echoes(server: &Endpoint, count: usize) -> Vec<(Request, Payload)> {
    let mut requests = Vec::new();
    while requests.len() < count {
        let left = count - requests.len();
        server.recv_requests(&mut requests, left).await.unwrap();
    }
    let back = |request: Request| {
        let payload = request.payload().clone().into();
        (request, payload)
    };
    requests.into_iter().map(back).collect()
}

/// Polls a future once, and checks that it is pending.
async fn begin<F: Future>(mut future: std::pin::Pin<&mut F>) {
    let pending = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
    assert!(pending, "it takes longer");
}

#[test]
fn each_call_is_answered_however_many_there_are() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        for count in [0, 1, 65, 300] {
            let mut all = calls(server.local_addr(), count, 100);
            client.send_many(&mut all, CallOptions::new()).await.unwrap();
            let mut replies = echoes(&server, count as usize).await;
            server.reply_many(&mut replies).await.unwrap();
            assert!(all.is_empty() && replies.is_empty());
            expect(&client, count, 100).await;
        }
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn without_room_the_sender_waits() {
    on_each_runtime(async || {
        let (client, server, address) = echo_pair(&small()).await;
        let mut all = calls(address, 100, 9_000);
        let sent = client.send_many(&mut all, CallOptions::new());
        let (sent, ()) = tokio::join!(sent, expect(&client, 100, 9_000));
        sent.unwrap();
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn calls_and_replies_of_a_dropped_future_that_were_not_sent_are_left() {
    on_each_runtime(async || {
        let (client, server) = pair(&small()).await;
        let mut all = calls(server.local_addr(), 4, 9_000);
        {
            let mut sending = pin!(client.send_many(&mut all, CallOptions::new()));
            begin(sending.as_mut()).await;
        }
        let left: Vec<_> = all.iter().map(|call| (call.cookie, call.request.len())).collect();
        assert_eq!(left, [(2, 9_000), (3, 9_000)]);
        let mut replies = echoes(&server, 2).await;
        server.reply_many(&mut replies).await.unwrap();
        client.send_many(&mut all, CallOptions::new()).await.unwrap();
        let mut replies = echoes(&server, 2).await;
        server.reply_many(&mut replies).await.unwrap();
        expect(&client, 4, 9_000).await;

        let mut all = calls(server.local_addr(), 4, 10);
        client.send_many(&mut all, CallOptions::new()).await.unwrap();
        let mut replies = echoes(&server, 4).await;
        for (request, payload) in &mut replies {
            let cookie = request.payload()[0];
            *payload = vec![cookie; 9_000].into();
        }
        {
            let mut replying = pin!(server.reply_many(&mut replies));
            begin(replying.as_mut()).await;
        }
        let left: Vec<_> = replies.iter().map(|(_, payload)| payload.len()).collect();
        assert_eq!(left, [9_000; 2]);
        server.reply_many(&mut replies).await.unwrap();
        assert!(replies.is_empty());
        for _ in 0..4 {
            let completion = client.recv_completion().await.unwrap();
            let first = bytes(completion.cookie as usize, 1)[0];
            assert_eq!(completion.result.unwrap(), vec![first; 9_000]);
        }
        assert_at_rest(&[&client, &server]).await;
    });
}
