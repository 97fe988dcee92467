//! Deadlines of calls, and the timeout of calls that have none.

use crate::fixtures::{patient, patient_config};
use crate::pair;
use apus::{
    CallError, CallOptions, Endpoint, EndpointBuilder, Execution, FailureKind, OutgoingCall,
};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A builder of endpoints whose calls fail soon.
fn hasty() -> EndpointBuilder {
    patient().call_timeout(Duration::from_millis(20))
}

/// Makes a call that succeeds. The server can execute requests of this session as soon as they
/// arrive, which a call that fails cannot exclude.
fn begin_session(client: &Endpoint, server: &Endpoint) {
    let options = CallOptions::new().timeout(Duration::MAX);
    client.send_with(server.local_addr(), "hello", 0, options).unwrap();
    server.recv_request().unwrap().reply("hello").unwrap();
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "hello");
}

/// Returns two endpoints that share memory, the client built with `builder`; `None` if the system
/// grants none.
fn local_pair(builder: &EndpointBuilder) -> Option<(Endpoint, Endpoint)> {
    let server = Endpoint::bind("127.0.0.1:0").unwrap();
    let client = builder.clone().client().unwrap();
    if !client.has_local_path() {
        eprintln!("SKIPPED: the system grants no shared memory");
        return None;
    }
    // The first calls go over the network while the two endpoints connect.
    while client.metrics().engine.local_calls < 2 {
        begin_session(&client, &server);
    }
    Some((client, server))
}

/// Checks that a call fails because of the timeout.
fn fails(client: &Endpoint, server: SocketAddr) {
    let CallError::Failed(error) = client.call(server, "x").unwrap_err() else {
        panic!("the call was made")
    };
    assert_eq!(error.kind, FailureKind::DeadlineExceeded);
    assert_eq!(error.execution, Execution::Unknown);
}

#[test]
fn a_call_without_a_deadline_fails_after_the_timeout_of_the_endpoint() {
    let (client, server) = pair(&hasty());
    begin_session(&client, &server);
    fails(&client, server.local_addr());
    // The intervals restart after a time without calls.
    fails(&client, server.local_addr());
}

#[test]
fn a_call_through_shared_memory_fails_after_the_timeout_of_the_endpoint() {
    let Some((client, server)) = local_pair(&hasty()) else { return };
    let address = server.local_addr();
    let before = client.metrics().engine.local_calls;
    fails(&client, address);
    assert_eq!(client.metrics().engine.local_calls, before + 1);
}

#[test]
fn a_call_with_a_deadline_of_its_own_has_no_other() {
    let (client, server) = pair(&hasty());
    begin_session(&client, &server);
    let to = server.local_addr();
    let patient = CallOptions::new().timeout(Duration::MAX);
    client.send_with(to, "patient", 1, patient).unwrap();
    client
        .send_with(to, "an hour", 2, CallOptions::new().timeout(Duration::from_secs(3600)))
        .unwrap();
    client.send(to, "hasty", 3).unwrap();
    assert_eq!(client.recv_completion().unwrap().cookie, 3);
    fails(&client, to);
    assert_eq!(client.metrics().queues.calls, 2, "the others are outstanding");
    for _ in 0..2 {
        server.recv_request().unwrap().reply("at last").unwrap();
    }
    for _ in 0..2 {
        assert_eq!(client.recv_completion().unwrap().result.unwrap(), "at last");
    }
}

#[test]
fn the_wait_for_room_ends_with_the_timeout() {
    let one = patient_config().max_client_rpcs(1).build().unwrap();
    let (client, server) = pair(&hasty().config(one));
    let patient = CallOptions::new().timeout(Duration::MAX);
    client.send_with(server.local_addr(), "first", 1, patient).unwrap();
    let error = client.call(server.local_addr(), "second").unwrap_err();
    assert!(error.to_string().contains("deadline"), "{error}");
    assert_eq!(error.execution(), Execution::NotExecuted);
}

/// Waits until this time has passed.
fn pass(at: Instant) {
    while Instant::now() <= at {
        std::thread::yield_now();
    }
}

/// Options whose deadline has passed.
fn too_late() -> [CallOptions; 3] {
    let now = Instant::now();
    let options = [
        CallOptions::new().deadline(now.checked_sub(Duration::from_secs(1)).unwrap_or(now)),
        CallOptions::new().timeout(Duration::ZERO),
        CallOptions::new().timeout(Duration::from_micros(1)),
    ];
    pass(now + Duration::from_micros(10));
    options
}

/// Checks that a call was too late to be sent.
fn assert_not_sent<T: std::fmt::Debug>(result: Result<T, CallError>) {
    let error = match result {
        Err(CallError::Failed(error)) => error,
        other => panic!("{other:?}"),
    };
    assert_eq!(error.kind, FailureKind::DeadlineExceeded);
    assert_eq!(error.execution, Execution::NotExecuted);
}

/// RPC-8: calls of each kind whose deadline has passed fail, and nothing of them arrives.
fn nothing_is_sent(client: &Endpoint, server: &Endpoint) {
    let to = server.local_addr();
    for options in too_late() {
        assert_not_sent(client.call_with(to, "late", options));
        assert_not_sent(client.send_with(to, "late", 7, options));
        let mut calls = vec![OutgoingCall { to, request: "late".into(), cookie: 7 }];
        assert_not_sent(client.send_many(&mut calls, options));
        assert_eq!(calls.len(), 1, "the caller still has the request");
        assert_not_sent(client.call_interruptible(to, "late", options, Duration::MAX, || true));
    }
    // A cork holds a call back until its deadline has passed.
    let cork = client.cork();
    let at = Instant::now() + Duration::from_micros(100);
    client.send_with(to, "held back", 8, CallOptions::new().deadline(at)).unwrap();
    pass(at);
    drop(cork);
    let completion = client.recv_completion().unwrap();
    assert_eq!(completion.cookie, 8);
    let error = completion.result.unwrap_err();
    assert_eq!(error.kind, FailureKind::DeadlineExceeded);
    // The background poller may have sent it in time; then it arrives, and the error says so.
    if error.execution == Execution::Unknown {
        assert_eq!(server.recv_request().unwrap().payload(), "held back");
    } else {
        assert_eq!(error.execution, Execution::NotExecuted);
    }
    // The next request that arrives is one that is in time.
    client.send(to, "in time", 9).unwrap();
    let request = server.recv_request().unwrap();
    assert_eq!(request.payload(), "in time");
    request.reply("").unwrap();
    assert_eq!(client.recv_completion().unwrap().cookie, 9);
}

#[test]
fn a_call_whose_deadline_has_passed_is_not_sent() {
    let (client, server) = pair(&patient());
    begin_session(&client, &server);
    nothing_is_sent(&client, &server);
}

#[test]
fn a_call_whose_deadline_has_passed_is_not_sent_through_shared_memory() {
    let Some((client, server)) = local_pair(&patient()) else { return };
    let before = client.metrics().engine.local_calls;
    nothing_is_sent(&client, &server);
    assert_eq!(client.metrics().engine.local_calls, before + 2, "held back, and in time");
}

#[test]
fn with_a_timeout_of_zero_a_call_is_not_sent() {
    let (client, server) = pair(&patient().call_timeout(Duration::ZERO));
    let to = server.local_addr();
    assert_not_sent(client.call(to, "late"));
    assert_not_sent(client.send(to, "late", 7));
    // A deadline of its own has precedence.
    begin_session(&client, &server);
    if let Some((client, server)) = local_pair(&patient().call_timeout(Duration::ZERO)) {
        assert_not_sent(client.call(server.local_addr(), "late"));
    }
}

#[test]
fn without_a_timeout_a_call_waits_for_its_server() {
    let (client, server) = pair(&patient().call_timeout(Duration::MAX));
    client.send(server.local_addr(), "x", 1).unwrap();
    assert!(client.recv_completion_timeout(Duration::from_millis(50)).unwrap().is_none());
    server.recv_request().unwrap().reply("y").unwrap();
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "y");
}
