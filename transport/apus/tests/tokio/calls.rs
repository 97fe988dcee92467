//! Calls and their completions, cancellation, deadlines, refusals.

use crate::{
    assert_at_rest, bytes, echo, echo_pair, on_each_runtime, pair, patient, patient_config, until,
};
use apus::tokio::Endpoint;
use apus::{
    Bytes, CallError, CallOptions, Execution, FailureKind, MessageProgress, OutgoingCall, Payload,
    PollMode, Refusal, UdpConfig,
};
use std::time::{Duration, Instant};

/// Empty, one byte, about one packet (1472 bytes less 56 of header), many packets, a megabyte.
const SIZES: [usize; 9] = [0, 1, 2, 1415, 1416, 1417, 10_000, 100_000, 1_000_000];

#[test]
fn messages_of_all_sizes_come_back_unchanged() {
    on_each_runtime(async || {
        let (client, server, address) = echo_pair(&patient()).await;
        for (seed, size) in SIZES.into_iter().enumerate() {
            let request = bytes(seed, size);
            assert_eq!(client.call(address, request.clone()).await.unwrap(), request, "{size}");
        }
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn packets_that_may_wait_wake_the_task() {
    on_each_runtime(async || {
        let open = || {
            let udp = UdpConfig { receive_coalescing_usecs: 300, ..UdpConfig::default() };
            patient().local(false).poll_mode(PollMode::Block).udp(udp).bind("127.0.0.1:0")
        };
        let (client, server) = (open().await.unwrap(), open().await.unwrap());
        echo(server.clone());
        for len in [2_000, 1_000_000] {
            let message = bytes(1, len);
            let reply = client.call(server.local_addr(), message.clone()).await.unwrap();
            assert_eq!(reply, message, "{len}");
        }
    });
}

#[test]
fn a_message_in_slices_arrives_as_one() {
    on_each_runtime(async || {
        let (client, _server, address) = echo_pair(&patient()).await;
        let slices = [bytes(1, 10), bytes(2, 3_000), bytes(3, 1)];
        let whole = slices.concat();
        let payload: Payload = slices.map(Bytes::from).into();
        assert_eq!(client.call(address, payload).await.unwrap(), whole);
    });
}

#[test]
fn completions_have_the_cookies_of_their_calls() {
    on_each_runtime(async || {
        let (client, server, address) = echo_pair(&patient()).await;
        for cookie in 0..200 {
            client.send(address, bytes(cookie, 1 + cookie * 20), cookie as u64).await.unwrap();
        }
        let mut seen = [false; 200];
        for _ in 0..200 {
            let end = client.recv_completion().await.unwrap();
            let cookie = end.cookie as usize;
            assert_eq!(end.result.unwrap(), bytes(cookie, 1 + cookie * 20));
            assert!(
                !std::mem::replace(&mut seen[cookie], true),
                "each completion is received once"
            );
        }
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn an_endpoint_calls_and_serves_at_the_same_time() {
    on_each_runtime(async || {
        let (a, b) = pair(&patient()).await;
        let servers = [echo(a.clone()), echo(b.clone())];
        for i in 0..50 {
            assert_eq!(a.call(b.local_addr(), bytes(i, 500)).await.unwrap(), bytes(i, 500));
            assert_eq!(b.call(a.local_addr(), bytes(i, 50)).await.unwrap(), bytes(i, 50));
        }
        a.shutdown();
        b.shutdown();
        for server in servers {
            assert_eq!(server.await.unwrap(), 50);
        }
    });
}

#[test]
fn a_request_knows_its_client() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let to = server.local_addr();
        let call = client.call(to, "who am I?");
        let serve = async {
            let request = server.recv_request().await.unwrap();
            assert_eq!(request.peer_addr(), client.local_addr());
            assert_eq!(request.payload(), "who am I?");
            request.reply("you").await.unwrap();
        };
        assert_eq!(tokio::join!(call, serve).0.unwrap(), "you");
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn a_deadline_ends_a_call_that_is_not_answered() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let options = CallOptions::new().timeout(Duration::from_millis(20));
        let error = client.call_with(server.local_addr(), "hello?", options).await.unwrap_err();
        let CallError::Failed(error) = error else { panic!("{error}") };
        assert_eq!(error.kind, FailureKind::DeadlineExceeded);
        let options = CallOptions::new().timeout(Duration::from_millis(20));
        client.send_with(server.local_addr(), "and now?", 5, options).await.unwrap();
        let end = client.recv_completion().await.unwrap();
        assert_eq!((end.cookie, end.result.unwrap_err().kind), (5, FailureKind::DeadlineExceeded));
    });
}

#[test]
fn a_request_that_is_dropped_fails_at_its_client() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let drops = async { drop(server.recv_request().await.unwrap()) };
        let (result, ()) = tokio::join!(client.call(server.local_addr(), "please"), drops);
        let CallError::Failed(error) = result.unwrap_err() else { panic!("the server answered") };
        assert_eq!(error.kind, FailureKind::Refused(Refusal::Abandoned));
        assert_eq!(error.execution, Execution::Unknown);
        assert_at_rest(&[&client, &server]).await;
    });
}

/// RPC-8.
#[test]
fn a_call_whose_deadline_has_passed_is_not_sent() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let to = server.local_addr();
        let now = Instant::now();
        let late =
            CallOptions::new().deadline(now.checked_sub(Duration::from_secs(1)).unwrap_or(now));
        let mut many = vec![OutgoingCall { to, request: "late".into(), cookie: 7 }];
        let failures = [
            client.call_with(to, "late", late).await.unwrap_err(),
            client
                .call_with(to, "late", CallOptions::new().timeout(Duration::ZERO))
                .await
                .unwrap_err(),
            client.send_with(to, "late", 7, late).await.unwrap_err(),
            client.send_many(&mut many, late).await.unwrap_err(),
        ];
        for failure in failures {
            let CallError::Failed(error) = failure else { panic!("{failure}") };
            assert_eq!(error.kind, FailureKind::DeadlineExceeded);
            assert_eq!(error.execution, Execution::NotExecuted);
        }
        client.send(to, "in time", 1).await.unwrap();
        let request = server.recv_request().await.unwrap();
        assert_eq!(request.payload(), "in time");
        request.reply("").await.unwrap();
        client.recv_completion().await.unwrap().result.unwrap();
    });
}

#[test]
fn a_reply_that_is_too_long_leaves_the_request() {
    on_each_runtime(async || {
        let small = patient_config().max_message(1_000).build().unwrap();
        let (client, server) = pair(&patient().config(small)).await;
        let to = server.local_addr();
        client.send(to, "too much", 0).await.unwrap();
        let mut request = server.recv_request().await.unwrap();
        request.reply_or_keep(vec![0; 1_001]).await.unwrap_err();
        request.reply("less").await.unwrap();
        assert_eq!(client.recv_completion().await.unwrap().result.unwrap(), "less");
        client.send(to, "too much", 0).await.unwrap();
        server.recv_request().await.unwrap().reply(vec![0; 1_001]).await.unwrap_err();
        let error = client.recv_completion().await.unwrap().result.unwrap_err();
        assert_eq!(error.kind, FailureKind::Refused(Refusal::ResponseTooLarge));
        assert_eq!(error.execution, Execution::Executed);
    });
}

#[test]
fn a_cancelled_call_has_no_completion() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let call = client.send(server.local_addr(), "never mind", 1).await.unwrap();
        let request = server.recv_request().await.unwrap();
        assert!(client.cancel(call));
        assert!(!client.cancel(call), "once");
        until(|| server.info().is_empty()).await;
        assert!(matches!(request.reply("too late").await, Err(apus::ReplyError::ClientGone)));
        client.send(server.local_addr(), "another", 2).await.unwrap();
        server.recv_request().await.unwrap().reply("yes").await.unwrap();
        assert_eq!(
            client.recv_completion().await.unwrap().cookie,
            2,
            "the first has no completion"
        );
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn an_endpoint_that_does_not_serve_says_so() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient().serve(false)).await;
        let error = client.call(server.local_addr(), "anybody?").await.unwrap_err();
        assert_eq!(error.execution(), Execution::NotExecuted);
        assert!(error.to_string().contains("not serving"), "{error}");
    });
}

#[test]
fn arguments_out_of_range_are_refused() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let address = server.local_addr();
        let long = vec![0_u8; 64 * 1024 * 1024 + 1];
        let error = client.call(address, long.clone()).await.unwrap_err();
        assert!(error.to_string().contains("max_message"), "{error}");
        assert_eq!(error.execution(), Execution::NotExecuted);
        assert_at_rest(&[&client]).await;

        let refuse = async {
            let refused = server.recv_request().await.unwrap().reply(long).await;
            assert!(matches!(refused, Err(apus::ReplyError::Rejected(_))), "{refused:?}");
        };
        let (result, ()) = tokio::join!(client.call(address, "please"), refuse);
        let error = result.unwrap_err();
        assert!(error.to_string().contains("longer than max_message"), "{error}");
    });
}

/// RPC-1: either message may be empty.
#[test]
fn empty_messages_are_messages() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let address = server.local_addr();
        let serve = {
            let server = server.clone();
            tokio::spawn(async move {
                while let Ok(request) = server.recv_request().await {
                    let reply = if request.payload().is_empty() { "a byte" } else { "" };
                    // The client may have vanished.
                    let _ = request.reply(reply).await;
                }
            })
        };
        for _ in 0..50 {
            assert_eq!(client.call(address, "").await.unwrap(), "a byte");
            assert_eq!(client.call(address, "put").await.unwrap(), "");
        }
        for cookie in 0..100 {
            client.send(address, ["", "put"][cookie as usize % 2], cookie).await.unwrap();
        }
        for _ in 0..100 {
            let end = client.recv_completion().await.unwrap();
            let expected = ["a byte", ""][end.cookie as usize % 2];
            assert_eq!(end.result.unwrap(), expected);
        }
        assert_at_rest(&[&client, &server]).await;
        server.shutdown();
        serve.await.unwrap();
    });
}

#[test]
fn live_rpcs_are_reported() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        client.send(server.local_addr(), bytes(0, 100), 0).await.unwrap();
        let info = client.info();
        assert_eq!(info.len(), 1);
        assert_eq!(info[0].peer, server.local_addr());
        let all_sent = MessageProgress { length: 100, done: 100, granted: 100 };
        assert_eq!(info[0].outgoing, Some(all_sent));
        assert_eq!(client.metrics().protocol.progress.client_requests_started, 1);
    });
}

#[test]
fn it_speaks_udp() {
    on_each_runtime(async || {
        let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr();
        echo(server.clone());
        let client = Endpoint::client().await.unwrap();
        for (seed, size) in [1, 100, 5_000, 2_000_000].into_iter().enumerate() {
            let request = bytes(seed, size);
            assert_eq!(client.call(address, request.clone()).await.unwrap(), request, "{size}");
        }
        assert_at_rest(&[&client, &server]).await;
    });
}
