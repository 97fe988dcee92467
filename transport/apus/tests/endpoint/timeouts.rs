//! Deadlines of calls, and the timeout of calls that have none.

use crate::fixtures::{patient, patient_config};
use crate::pair;
use apus::{CallOptions, Endpoint, EndpointBuilder, Execution, FailureKind};
use std::net::SocketAddr;
use std::time::Duration;

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

/// Checks that a call fails because of the timeout.
fn fails(client: &Endpoint, server: SocketAddr) {
    let apus::CallError::Failed(error) = client.call(server, "x").unwrap_err() else {
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
    let server = Endpoint::bind("127.0.0.1:0").unwrap();
    let client = hasty().client().unwrap();
    let address = server.local_addr();
    if !client.has_local_path() {
        eprintln!("SKIPPED: the system grants no shared memory");
        return;
    }
    // The first calls go over the network while the two endpoints connect.
    while client.metrics().engine.local_calls < 2 {
        begin_session(&client, &server);
    }
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

#[test]
fn without_a_timeout_a_call_waits_for_its_server() {
    let (client, server) = pair(&patient().call_timeout(Duration::MAX));
    client.send(server.local_addr(), "x", 1).unwrap();
    assert!(client.recv_completion_timeout(Duration::from_millis(50)).unwrap().is_none());
    server.recv_request().unwrap().reply("y").unwrap();
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "y");
}
