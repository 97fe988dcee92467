//! Calls whose caller checks whether to keep waiting.

use crate::{assert_at_rest, pair};
use apus::{CallError, CallOptions, Closed, Endpoint, Execution, FailureKind};
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
