//! Calls whose caller checks whether to keep waiting.

use crate::fixtures::patient_config;
use crate::{assert_at_rest, bytes, pair};
use apus::{CallError, CallOptions, Closed, Endpoint, Execution, FailureKind, ReplyError};
use std::cell::Cell;
use std::time::Duration;

/// A period so short that a call outlasts it.
const INTERVAL: Duration = Duration::from_micros(200);

#[test]
fn a_response_after_several_intervals_arrives() {
    let (server, client) = pair(&Endpoint::builder());
    let to = server.local_addr();
    let asked = Cell::new(0);
    let result = client.call_interruptible(to, "late", CallOptions::new(), INTERVAL, || {
        asked.set(asked.get() + 1);
        if asked.get() == 3 {
            // The caller's own thread may use endpoints during the wait.
            server.recv_request().unwrap().reply("at last").unwrap();
        }
        true
    });
    assert_eq!(result.unwrap(), "at last");
    assert!(asked.get() >= 3);
}

#[test]
fn a_caller_that_gives_up_cancels_the_call() {
    let (server, client) = pair(&Endpoint::builder());
    let to = server.local_addr();
    let result = client.call_interruptible(to, "hello", CallOptions::new(), INTERVAL, || false);
    let Err(CallError::Failed(error)) = result else { panic!("{result:?}") };
    assert_eq!((error.kind, error.execution), (FailureKind::Cancelled, Execution::Unknown));
    assert_at_rest(&[&client]);
}

#[test]
fn an_endpoint_that_is_shut_down_meanwhile_ends_the_call() {
    let (server, client) = pair(&Endpoint::builder());
    let to = server.local_addr();
    let result = client.call_interruptible(to, "hello", CallOptions::new(), INTERVAL, || {
        client.shutdown();
        true
    });
    match result {
        Err(CallError::Failed(error)) => assert_eq!(error.kind, FailureKind::ShutDown),
        Err(CallError::Closed(Closed::ShutDown)) => {}
        other => panic!("{other:?}"),
    }
}

/// Endpoints with room for two messages of 9,000 bytes.
fn small_pair() -> (Endpoint, Endpoint) {
    let config = patient_config()
        .max_message(10_000)
        .max_send_bytes_per_peer(20_000)
        .max_send_bytes(20_000)
        .build();
    pair(&Endpoint::builder().config(config.unwrap()))
}

#[test]
fn a_wait_for_room_ends_when_its_caller_gives_up() {
    let (server, client) = small_pair();
    let to = server.local_addr();
    for cookie in 0..2 {
        client.send(to, bytes(0, 9_000), cookie).unwrap();
    }
    let asked = Cell::new(0);
    let give_up = || {
        asked.set(asked.get() + 1);
        asked.get() % 3 != 0
    };
    let options = CallOptions::new();
    let sent = client.send_interruptible(to, bytes(0, 9_000), 2, options, INTERVAL, give_up);
    let called = client.call_interruptible(to, bytes(0, 9_000), options, INTERVAL, give_up);
    for result in [sent.map(drop), called.map(drop)] {
        let Err(CallError::Failed(error)) = result else { panic!("{result:?}") };
        assert_eq!((error.kind, error.execution), (FailureKind::Cancelled, Execution::NotExecuted));
    }
    assert_eq!(asked.get(), 6);
    // Nothing is left of both, and the others go on.
    for _ in 0..2 {
        server.recv_request().unwrap().reply("").unwrap();
        client.recv_completion().unwrap().result.unwrap();
    }
    assert_at_rest(&[&client]);
}

#[test]
fn a_wait_for_room_of_a_reply_ends_and_keeps_the_request() {
    let (server, client) = small_pair();
    let to = server.local_addr();
    for cookie in 0..3 {
        client.send(to, "x", cookie).unwrap();
    }
    let mut requests: Vec<_> = (0..3).map(|_| server.recv_request().unwrap()).collect();
    let mut last = requests.pop().unwrap();
    // No thread runs the client's loop, so the responses are not acknowledged.
    for request in requests {
        request.reply(bytes(0, 9_000)).unwrap();
    }
    let interrupted = last.reply_interruptible(bytes(0, 9_000), INTERVAL, || false);
    assert!(matches!(interrupted, Err(ReplyError::GivenUp)), "{interrupted:?}");
    std::thread::scope(|scope| {
        scope.spawn(|| last.reply(bytes(0, 9_000)).unwrap());
        for _ in 0..3 {
            assert_eq!(client.recv_completion().unwrap().result.unwrap().len(), 9_000);
        }
    });
}
