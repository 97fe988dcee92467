//! Calls and replies that are made together: `send_many`, `reply_many`.

use crate::fixtures::{patient, patient_config};
use crate::{ShutDown, assert_at_rest, bytes, echo_pair, pair};
use apus::{
    CallError, CallOptions, Closed, Endpoint, EndpointBuilder, Execution, OutgoingCall, Payload,
    ReplyError, Request,
};
use apus_driver::loopback::LoopbackNetwork;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

/// Messages of up to 10,000 bytes, at most two in flight.
fn small() -> EndpointBuilder {
    let config =
        patient_config().max_message(10_000).max_send_bytes_per_peer(20_000).max_send_bytes(20_000);
    patient().config(config.build().unwrap())
}

/// A call to `to` for each of these lengths, with its place as cookie.
fn calls(to: SocketAddr, lengths: impl IntoIterator<Item = usize>) -> Vec<OutgoingCall> {
    let call = |(cookie, length)| {
        let request = bytes(cookie as usize, length).into();
        OutgoingCall { to, request, cookie }
    };
    (0..).zip(lengths).map(call).collect()
}

/// Receives as many requests.
fn requests(server: &Endpoint, count: usize) -> Vec<Request> {
    let mut requests = Vec::new();
    while requests.len() < count {
        let left = count - requests.len();
        server.recv_requests(&mut requests, left).unwrap();
    }
    requests
}

/// The replies that send the requests back.
fn echoes(requests: Vec<Request>) -> Vec<(Request, Payload)> {
    let back = |request: Request| {
        let payload = request.payload().clone().into();
        (request, payload)
    };
    requests.into_iter().map(back).collect()
}

/// Receives completions of as many calls, which have succeeded. Returns their cookies in order,
/// after checking that each has its request back, of this length.
fn cookies(client: &Endpoint, count: usize, length: usize) -> Vec<u64> {
    let mut cookies = Vec::new();
    for _ in 0..count {
        let completion = client.recv_completion().unwrap();
        assert_eq!(completion.result.unwrap(), bytes(completion.cookie as usize, length));
        cookies.push(completion.cookie);
    }
    cookies.sort_unstable();
    cookies
}

#[test]
fn each_call_is_answered_however_many_there_are() {
    let (client, server) = pair(&patient());
    for count in [0, 1, 64, 65, 300] {
        let mut all = calls(server.local_addr(), vec![100; count]);
        client.send_many(&mut all, CallOptions::new()).unwrap();
        assert!(all.is_empty());
        let mut replies = echoes(requests(&server, count));
        server.reply_many(&mut replies).unwrap();
        assert!(replies.is_empty());
        assert_eq!(cookies(&client, count, 100), (0..count as u64).collect::<Vec<_>>());
    }
    assert_at_rest(&[&client, &server]);
}

#[test]
fn requests_at_several_shards_are_answered_together() {
    let builder = patient().local(false);
    let server = builder.clone().shards(2).bind("127.0.0.1:0").unwrap();
    let arrived = || {
        let shards = server.shard_metrics();
        let done = shards.iter().map(|shard| shard.protocol.progress.server_requests_done);
        done.collect::<Vec<_>>()
    };
    let mut clients = Vec::new();
    let mut replies = Vec::new();
    while arrived()[..2].contains(&0) {
        let client = builder.clone().client().unwrap();
        client.send_many(&mut calls(server.local_addr(), [100; 3]), CallOptions::new()).unwrap();
        replies.extend(echoes(requests(&server, 3)));
        clients.push(client);
    }
    // As mixed as can be.
    let half = replies.split_off(replies.len() / 2);
    let mut mixed: Vec<_> = replies.into_iter().zip(half).flat_map(|(a, b)| [a, b]).collect();
    let odd = 3 * clients.len() - mixed.len();
    server.reply_many(&mut mixed).unwrap();
    assert!(mixed.is_empty());
    let results = clients.iter().flat_map(|client| (0..3).map(|_| client.recv_completion()));
    let answered = results.filter(|completion| completion.as_ref().unwrap().result.is_ok());
    assert_eq!(answered.count(), 3 * clients.len() - odd, "one that was left out was dropped");
    assert_at_rest(&[&server]);
}

#[test]
fn calls_before_the_first_that_fails_are_sent_and_the_others_are_left() {
    let (client, server, _echo) = echo_pair(&small());
    let mut all = calls(server, [100, 100, 10_001, 100]);
    let error = client.send_many(&mut all, CallOptions::new()).unwrap_err();
    assert!(matches!(error, CallError::Rejected(_)) && !error.is_back_pressure(), "{error}");
    let left: Vec<_> = all.iter().map(|call| (call.cookie, call.request.len())).collect();
    assert_eq!(left, [(2, 10_001), (3, 100)]);
    assert_eq!(cookies(&client, 2, 100), [0, 1]);
    all.remove(0);
    client.send_many(&mut all, CallOptions::new()).unwrap();
    assert_eq!(cookies(&client, 1, 100), [3]);
    assert_at_rest(&[&client]);

    client.shutdown();
    let mut all = calls(server, [100, 100]);
    let error = client.send_many(&mut all, CallOptions::new()).unwrap_err();
    assert!(matches!(error, CallError::Closed(Closed::ShutDown)), "{error}");
    assert_eq!(all.len(), 2);
}

#[test]
fn without_room_the_sender_of_many_calls_waits_or_gets_an_error() {
    let (client, server) = pair(&small());
    let to = server.local_addr();
    let mut all = calls(to, [9_000; 5]);
    let error = client.send_many(&mut all, CallOptions::new().no_wait(true)).unwrap_err();
    assert!(error.is_back_pressure(), "{error}");
    assert_eq!(all.len(), 3);
    assert!(all.iter().all(|call| call.request.len() == 9_000), "payloads stay");

    // A deadline covers the wait.
    let options = CallOptions::new().timeout(Duration::from_millis(20));
    let error = client.send_many(&mut all, options).unwrap_err();
    assert_eq!((error.execution(), all.len()), (Execution::NotExecuted, 3), "{error}");

    thread::scope(|scope| {
        let _end = ShutDown(&[&server]);
        scope.spawn(|| {
            while let Ok(request) = server.recv_request() {
                let payload = request.payload().clone();
                request.reply(payload).unwrap();
            }
        });
        client.send_many(&mut all, CallOptions::new()).unwrap();
        assert_eq!(cookies(&client, 5, 9_000), [0, 1, 2, 3, 4]);
        assert_at_rest(&[&client, &server]);
    });
}

#[test]
fn without_room_the_sender_of_many_replies_waits() {
    let network = LoopbackNetwork::new();
    let client = patient().with_driver(Box::new(network.host())).unwrap();
    let server = small().with_driver(Box::new(network.host())).unwrap();
    let mut all = calls(server.local_addr(), [9_000; 50]);
    client.send_many(&mut all, CallOptions::new()).unwrap();
    let mut replies = echoes(requests(&server, 50));
    thread::scope(|scope| {
        let receiver = scope.spawn(|| cookies(&client, 50, 9_000));
        server.reply_many(&mut replies).unwrap();
        assert!(replies.is_empty());
        // This thread is the server's only one.
        assert!(server.drain(Duration::from_secs(60)));
        assert_eq!(receiver.join().unwrap(), (0..50).collect::<Vec<_>>());
    });
    assert_at_rest(&[&client, &server]);
}

#[test]
fn a_reply_that_fails_keeps_no_other_one_back() {
    let (client, server) = pair(&small());
    let to = server.local_addr();
    let gone = client.send(to, "cancelled", 7).unwrap();
    client.send(to, "too large", 8).unwrap();
    let mut all = calls(to, [100, 100]);
    client.send_many(&mut all, CallOptions::new()).unwrap();
    let mut arrived = requests(&server, 4);
    arrived.sort_by_key(|request| request.payload().len());
    assert!(client.cancel(gone));
    while server.info().len() == 4 {
        drop(server.try_recv_request().unwrap());
        drop(client.try_recv_completion().unwrap());
    }
    let mut replies = echoes(arrived);
    // Both have nine bytes.
    for (request, payload) in &mut replies {
        if request.payload() == "too large" {
            *payload = bytes(0, 10_001).into();
        }
    }
    replies.sort_by_key(|(_, payload)| payload.len() > 10_000);
    let error = server.reply_many(&mut replies).unwrap_err();
    assert!(matches!(error, ReplyError::ClientGone), "the first one: {error}");
    assert!(replies.is_empty());
    let mut ends: Vec<_> = (0..3).map(|_| client.recv_completion().unwrap()).collect();
    ends.sort_by_key(|end| end.cookie);
    assert_eq!(ends.iter().map(|end| end.result.is_ok()).collect::<Vec<_>>(), [true, true, false]);
    assert_at_rest(&[&client, &server]);

    client.send(to, "too late", 9).unwrap();
    let mut replies = echoes(requests(&server, 1));
    server.shutdown();
    let error = server.reply_many(&mut replies).unwrap_err();
    assert!(matches!(error, ReplyError::Closed(_)) && replies.is_empty(), "{error}");
}

#[test]
fn a_cork_holds_back_what_is_sent_together() {
    assert!((0..1_000).any(|_| calls_are_held_back()), "the cork holds nothing back");
}

/// Makes calls under a cork and without one. Returns whether the cork held them back: the
/// background poller sends what a cork holds, and it runs if the system has stopped this thread.
fn calls_are_held_back() -> bool {
    let (client, server) = pair(&patient());
    let sent = || client.metrics().protocol.sent(apus_proto::Kind::Data);
    let cork = client.cork();
    client.send_many(&mut calls(server.local_addr(), [10; 3]), CallOptions::new()).unwrap();
    let under_cork = sent();
    drop(cork);
    let without = sent();
    client.send_many(&mut calls(server.local_addr(), [10; 3]), CallOptions::new()).unwrap();
    let all = sent();
    // Without a cork nothing is left when the call returns.
    let held_back = (under_cork, without, all) == (0, 3, 6);
    let disturbed = client.metrics().engine.keeper_turns > 0;
    assert!(held_back || disturbed, "{under_cork} {without} {all}");
    held_back
}
