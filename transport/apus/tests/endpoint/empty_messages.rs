//! Messages of 0 bytes, which are messages like others (RPC-1).

use crate::fixtures::{patient, patient_config};
use crate::{ShutDown, assert_at_rest, bytes, echo_pair, pair};
use apus::{CallError, CallOptions, Endpoint, Execution, FailureKind, Refusal};
use std::thread::JoinHandle;

/// Serves until the endpoint is shut down: `reply` gives the reply to a request, or `None` to drop
/// it.
fn serve(
    server: &Endpoint,
    reply: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static,
) -> JoinHandle<()> {
    let server = server.clone();
    std::thread::spawn(move || {
        while let Ok(request) = server.recv_request() {
            if let Some(reply) = reply(request.payload()) {
                // The client may have vanished.
                let _ = request.reply(reply);
            }
        }
    })
}

#[test]
fn either_message_may_be_empty() {
    let (client, server) = pair(&patient());
    let _end = ShutDown(&[&client, &server]);
    // An empty request gets a byte, any other an empty reply.
    let thread =
        serve(&server, |request| Some(if request.is_empty() { vec![7] } else { Vec::new() }));
    for i in 0..200 {
        let request = bytes(i, i % 3 * 50_000);
        let expected: &[u8] = if request.is_empty() { &[7] } else { &[] };
        assert_eq!(client.call(server.local_addr(), request).unwrap(), expected, "call {i}");
    }
    assert_at_rest(&[&client, &server]);
    server.shutdown();
    thread.join().unwrap();
}

/// A key-value server of 30 lines sends an empty reply to a `PUT`.
#[test]
fn many_calls_with_empty_messages_in_both_directions() {
    const CALLS: u64 = 500;
    let (client, server, echo) = echo_pair(&patient());
    let before = echo.endpoint.metrics().engine.messages;
    let cork = client.cork();
    for cookie in 0..CALLS {
        client.send(server, "", cookie).unwrap();
    }
    drop(cork);
    let mut completions = Vec::new();
    while completions.len() < CALLS as usize {
        client.recv_completions(&mut completions, 64).unwrap();
    }
    let mut cookies: Vec<u64> = completions.iter().map(|end| end.cookie).collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..CALLS).collect::<Vec<_>>(), "each call ends once");
    assert!(completions.iter().all(|end| end.result.as_ref().unwrap().is_empty()));
    assert_eq!(echo.endpoint.metrics().engine.messages - before, CALLS, "they are counted");
    assert_at_rest(&[&client, &echo.endpoint]);
}

/// A failed call has no message, an empty response is one: only the latter frees anything.
#[test]
fn empty_responses_and_failures_are_distinguished() {
    let (client, server) = pair(&patient());
    let _end = ShutDown(&[&client, &server]);
    let thread = serve(&server, |request| (request == b"empty").then(Vec::new));
    for _ in 0..100 {
        assert_eq!(client.call(server.local_addr(), "empty").unwrap(), "");
        for request in ["drop", ""] {
            let Err(CallError::Failed(error)) = client.call(server.local_addr(), request) else {
                panic!("the request is dropped")
            };
            assert_eq!(error.kind, FailureKind::Refused(Refusal::Abandoned));
            assert_eq!(error.execution, Execution::Unknown);
        }
    }
    assert_at_rest(&[&client, &server]);
    server.shutdown();
    thread.join().unwrap();
}

/// CAP-2, CAP-12: empty messages count as calls, although they have no bytes.
#[test]
fn the_number_of_empty_calls_is_limited() {
    let config = patient_config().max_client_rpcs(3).build().unwrap();
    let (client, server) = pair(&patient().config(config));
    let _end = ShutDown(&[&client, &server]);
    let no_wait = CallOptions::new().no_wait(true);
    let send = |cookie| client.send_with(server.local_addr(), "", cookie, no_wait);
    for cookie in 0..3 {
        send(cookie).unwrap();
    }
    assert!(send(3).unwrap_err().is_back_pressure());
    server.recv_request().unwrap().reply("").unwrap();
    assert!(send(3).unwrap_err().is_back_pressure(), "the completion was not received");
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "");
    send(4).unwrap();
    for _ in 0..3 {
        server.recv_request().unwrap().reply("").unwrap();
        client.recv_completion().unwrap().result.unwrap();
    }
    assert_at_rest(&[&client, &server]);
}
