//! Back-pressure: a caller waits for room, or gets a typed error.

use crate::fixtures::{patient, patient_config};
use crate::{ShutDown, assert_at_rest, bytes, echo, echo_pair, pair};
use apus::{CallOptions, EndpointBuilder};
use std::time::Duration;

fn small() -> EndpointBuilder {
    let config = patient_config()
        .max_message(10_000)
        .max_send_bytes_per_peer(20_000)
        .max_send_bytes(20_000)
        .max_client_rpcs(8);
    patient().config(config.build().unwrap())
}

#[test]
fn a_caller_waits_for_room() {
    let (client, server, echo) = echo_pair(&small());
    // Far more than there is room for, from one thread: `send` runs the loop while it waits.
    std::thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            for _ in 0..100 {
                client.recv_completion().unwrap().result.unwrap();
            }
        });
        for cookie in 0..100 {
            client.send(server, bytes(0, 9_000), cookie).unwrap();
        }
        receiver.join().unwrap();
    });
    assert_at_rest(&[&client, &echo.endpoint]);
}

#[test]
fn a_caller_that_does_not_wait_gets_an_error() {
    let (client, server) = pair(&small());
    let options = CallOptions::new().no_wait(true);
    let mut sent = 0;
    // No responses yet, which would make room.
    let error = loop {
        match client.send_with(server.local_addr(), bytes(0, 9_000), 0, options) {
            Ok(_) => sent += 1,
            Err(error) => break error,
        }
        assert!(sent <= 2, "20,000 bytes are the limit");
    };
    assert!(error.is_back_pressure(), "{error}");
    let _shutdown = ShutDown(&[&server]);
    echo(server.clone());
    for _ in 0..sent {
        client.recv_completion().unwrap().result.unwrap();
    }
}

/// Requirement CAP-12.
#[test]
fn completions_that_are_not_received_count_as_calls() {
    let (client, server, _echo) = echo_pair(&small());
    for cookie in 0..8 {
        client.send(server, "x", cookie).unwrap();
    }
    // All eight end, but their completions are not received.
    let options = CallOptions::new().timeout(Duration::from_millis(30));
    let error = client.send_with(server, "one too many", 8, options).unwrap_err();
    assert!(error.to_string().contains("deadline"), "{error}");
    client.recv_completion().unwrap();
    client.send(server, "now", 8).unwrap();
}

/// CAP-2: the end of a call makes room, whichever thread receives it.
#[test]
fn callers_take_turns_when_one_call_is_the_limit() {
    let builder = patient().config(patient_config().max_client_rpcs(1).build().unwrap());
    let (client, server, echo) = echo_pair(&builder);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for i in 0..50 {
                    assert_eq!(client.call(server, bytes(i, 100)).unwrap(), bytes(i, 100));
                }
            });
        }
    });
    assert_at_rest(&[&client, &echo.endpoint]);
}

#[test]
fn a_deadline_covers_the_wait_for_room() {
    let (client, server) = pair(&small());
    client.send(server.local_addr(), bytes(0, 9_000), 0).unwrap();
    client.send(server.local_addr(), bytes(0, 9_000), 1).unwrap();
    let options = CallOptions::new().timeout(Duration::from_millis(20));
    let error = client.call_with(server.local_addr(), bytes(0, 9_000), options).unwrap_err();
    assert_eq!(error.execution(), apus::Execution::NotExecuted, "{error}");
}
