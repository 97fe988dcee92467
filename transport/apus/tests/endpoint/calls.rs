//! Calls and their completions, cancellation, deadlines, refusals.

use crate::fixtures::{patient, patient_config};
use crate::{assert_at_rest, bytes, echo_pair, pair};
use apus::{
    Bytes, CallError, CallOptions, Endpoint, Execution, FailureKind, Payload, Refusal, ReplyError,
};
use std::time::Duration;

/// Empty, one byte, about one packet (1472 bytes less 56 of header), many packets, a megabyte.
const SIZES: [usize; 9] = [0, 1, 2, 1415, 1416, 1417, 10_000, 100_000, 1_000_000];

#[test]
fn messages_of_all_sizes_come_back_unchanged() {
    let (client, server, echo) = echo_pair(&patient());
    for (seed, size) in SIZES.into_iter().enumerate() {
        let request = bytes(seed, size);
        assert_eq!(client.call(server, request.clone()).unwrap(), request, "{size}");
    }
    assert_at_rest(&[&client, &echo.endpoint]);
}

#[test]
fn a_message_in_slices_arrives_as_one() {
    let (client, server, _echo) = echo_pair(&patient());
    let slices = [bytes(1, 10), bytes(2, 3_000), bytes(3, 1)];
    let whole = slices.concat();
    let payload: Payload = slices.map(Bytes::from).into();
    assert_eq!(client.call(server, payload).unwrap(), whole);
}

#[test]
fn completions_have_the_cookies_of_their_calls() {
    let (client, server, echo) = echo_pair(&patient());
    for cookie in 0..200 {
        client.send(server, bytes(cookie, 1 + cookie * 20), cookie as u64).unwrap();
    }
    let mut seen = [false; 200];
    for _ in 0..200 {
        let end = client.recv_completion().unwrap();
        let cookie = end.cookie as usize;
        assert_eq!(end.result.unwrap(), bytes(cookie, 1 + cookie * 20));
        assert!(!std::mem::replace(&mut seen[cookie], true), "each completion is received once");
    }
    assert!(client.try_recv_completion().unwrap().is_none());
    assert_at_rest(&[&client, &echo.endpoint]);
}

#[test]
fn available_messages_are_received_together() {
    let (client, server) = pair(&patient());
    for cookie in 0..50 {
        client.send(server.local_addr(), bytes(cookie, 10), cookie as u64).unwrap();
    }
    let mut requests = Vec::new();
    assert_eq!(server.recv_requests(&mut requests, 0).unwrap(), 0);
    while requests.len() < 50 {
        let before = requests.len();
        let got = server.recv_requests(&mut requests, 7).unwrap();
        assert!((1..=7).contains(&got));
        assert_eq!(requests.len(), before + got, "they are appended");
    }
    for mut request in requests {
        let payload = request.take_payload();
        request.reply(payload).unwrap();
    }
    let mut ends = Vec::new();
    while ends.len() < 50 {
        assert!((1..=30).contains(&client.recv_completions(&mut ends, 30).unwrap()));
    }
    ends.sort_unstable_by_key(|end| end.cookie);
    for (cookie, end) in ends.into_iter().enumerate() {
        assert_eq!((end.cookie, end.result.unwrap()), (cookie as u64, bytes(cookie, 10).into()));
    }
    assert_at_rest(&[&client, &server]);
    server.shutdown();
    assert!(server.recv_requests(&mut Vec::new(), 1).is_err());
}

#[test]
fn an_endpoint_calls_and_serves_at_the_same_time() {
    let (a, b) = pair(&patient());
    let echo = |endpoint: &Endpoint| crate::echo(endpoint.clone());
    let servers = [echo(&a), echo(&b)];
    for i in 0..50 {
        assert_eq!(a.call(b.local_addr(), bytes(i, 500)).unwrap(), bytes(i, 500));
        assert_eq!(b.call(a.local_addr(), bytes(i, 50)).unwrap(), bytes(i, 50));
    }
    a.shutdown();
    b.shutdown();
    let served: u64 = servers.into_iter().map(|server| server.join().unwrap()).sum();
    assert_eq!(served, 100);
}

#[test]
fn a_cancelled_call_has_no_completion_and_its_server_is_notified() {
    let (client, server) = pair(&patient());
    let call = client.send(server.local_addr(), "never mind", 1).unwrap();
    // The client's loop must run to confirm the first contact.
    let request = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| server.recv_request().unwrap());
        while !receiver.is_finished() {
            assert!(client.try_recv_completion().unwrap().is_none());
        }
        receiver.join().unwrap()
    });
    assert!(client.cancel(call));
    assert!(!client.cancel(call), "once");
    // Nothing overtakes the cancellation: the server has read it when it has the next request.
    client.send(server.local_addr(), "go on", 2).unwrap();
    let next = server.recv_request().unwrap();
    let answered = request.reply("too late");
    assert!(matches!(answered, Err(ReplyError::ClientGone)), "{answered:?}");
    next.reply("done").unwrap();
    assert_eq!(client.recv_completion().unwrap().cookie, 2, "the first has no completion");
    assert!(client.try_recv_completion().unwrap().is_none());
    assert_at_rest(&[&client, &server]);
}

#[test]
fn a_deadline_ends_a_call_that_is_not_answered() {
    let (client, server) = pair(&patient());
    let options = CallOptions::new().timeout(Duration::from_millis(20));
    let error = client.call_with(server.local_addr(), "hello?", options).unwrap_err();
    let CallError::Failed(error) = error else { panic!("{error}") };
    assert_eq!(error.kind, FailureKind::DeadlineExceeded);
}

#[test]
fn a_request_that_is_dropped_fails_at_its_client() {
    let (client, server) = pair(&patient());
    let address = server.local_addr();
    std::thread::scope(|scope| {
        scope.spawn(|| drop(server.recv_request().unwrap()));
        let error = client.call(address, "please").unwrap_err();
        let CallError::Failed(error) = error else { panic!("{error}") };
        assert_eq!(error.kind, FailureKind::Refused(Refusal::Abandoned));
        assert_eq!(error.execution, Execution::Unknown);
    });
    assert_at_rest(&[&client, &server]);
}

/// A reply that is too long says so, to the server and to the client.
#[test]
fn a_reply_that_is_too_long_is_an_error_for_both() {
    let small = patient_config().max_message(1_000).build().unwrap();
    let (client, server) = pair(&patient().config(small));
    let to = server.local_addr();
    let refused = |client: &Endpoint| {
        let error = client.recv_completion().unwrap().result.unwrap_err();
        assert_eq!(error.kind, FailureKind::Refused(Refusal::ResponseTooLarge));
        assert_eq!(error.execution, Execution::Executed);
    };
    let too_long = |result: Result<(), ReplyError>| {
        let text = result.unwrap_err().to_string();
        assert!(text.contains("1001 bytes") && text.contains("1000"), "{text}");
    };
    client.send(to, "too much", 0).unwrap();
    too_long(server.recv_request().unwrap().reply(vec![0; 1_001]));
    refused(&client);
    client.send(to, "too much", 1).unwrap();
    let request = server.recv_request().unwrap();
    too_long(server.reply_many(&mut vec![(request, vec![0; 1_001].into())]));
    refused(&client);
    // The request may be answered with less.
    client.send(to, "too much", 2).unwrap();
    let mut request = server.recv_request().unwrap();
    too_long(request.reply_or_keep(vec![0; 1_001]));
    request.reply("less").unwrap();
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "less");
    assert_at_rest(&[&client, &server]);
}

/// Both lengths are stated if the client's limit is the smaller one.
#[test]
fn a_response_beyond_the_clients_limit_states_both_lengths() {
    for local in [false, true] {
        let server = patient().local(local).bind("127.0.0.1:0").unwrap();
        let small = patient_config().max_message(1_000).build().unwrap();
        let client = patient().local(local).config(small).client().unwrap();
        for cookie in 0..4 {
            // Over the network, and then through shared memory.
            client.send(server.local_addr(), "x", cookie).unwrap();
            server.recv_request().unwrap().reply(vec![0; 1_001]).unwrap();
            let error = client.recv_completion().unwrap().result.unwrap_err();
            assert_eq!(error.kind, FailureKind::ResponseTooLarge { length: 1_001, limit: 1_000 });
            assert_eq!(error.execution, Execution::Executed);
        }
    }
}

#[test]
fn an_endpoint_that_does_not_serve_says_so() {
    let (client, server) = pair(&patient().serve(false));
    let server_loop = crate::echo(server.clone());
    let error = client.call(server.local_addr(), "anybody?").unwrap_err();
    assert_eq!(error.execution(), Execution::NotExecuted);
    assert!(error.to_string().contains("not serving"), "{error}");
    server.shutdown();
    assert_eq!(server_loop.join().unwrap(), 0);
}

#[test]
fn arguments_out_of_range_are_refused() {
    let (client, server) = pair(&patient());
    let long = vec![0_u8; 64 * 1024 * 1024 + 1];
    let error = client.call(server.local_addr(), long).unwrap_err();
    assert!(error.to_string().contains("max_message"), "{error}");
    assert_eq!(error.execution(), Execution::NotExecuted);
    assert_at_rest(&[&client]);
}

#[test]
fn a_reply_out_of_range_is_refused_and_the_client_learns_it() {
    let (client, server) = pair(&patient());
    let address = server.local_addr();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let long = vec![0_u8; 64 * 1024 * 1024 + 1];
            let refused = server.recv_request().unwrap().reply(long);
            assert!(matches!(refused, Err(ReplyError::Rejected(_))), "{refused:?}");
        });
        let error = client.call(address, "please").unwrap_err();
        assert!(error.to_string().contains("longer than max_message"), "{error}");
    });
}
