//! Behaviour that shows only on a path with packets: corks, batches, quotas, live RPCs.

use crate::fixtures::patient;
use crate::{assert_at_rest, bytes, echo_pair, pair};
use apus::{Endpoint, MessageProgress};

#[test]
fn live_rpcs_are_reported() {
    let (client, server) = pair(&patient());
    client.send(server.local_addr(), bytes(0, 100), 0).unwrap();
    let info = client.info();
    assert_eq!(info.len(), 1);
    assert_eq!(info[0].peer, server.local_addr());
    let all_sent = MessageProgress { length: 100, done: 100, granted: 100 };
    assert_eq!(info[0].outgoing, Some(all_sent));
    assert_eq!(client.metrics().protocol.progress.client_requests_started, 1);
}

/// Requirement SEND-10.
#[test]
fn a_cork_lets_messages_leave_together() {
    assert!((0..1_000).any(|_| leave_together_undisturbed()), "the background poller always runs");
}

/// Sends messages under a cork. Returns `false`, and has checked less, if the background poller has
/// run in between: it sends held-back messages, and it runs if the system has stopped this thread.
fn leave_together_undisturbed() -> bool {
    let (client, server, echo) = echo_pair(&patient());
    let cork = client.cork();
    for cookie in 0..10 {
        client.send(server, bytes(0, 100), cookie).unwrap();
    }
    let early = sent_before_background_poll(&client);
    assert!(matches!(early, None | Some(0)), "held back, but {early:?} were sent");
    for cookie in 10..64 {
        client.send(server, bytes(0, 100), cookie).unwrap();
    }
    let full = sent_before_background_poll(&client);
    assert!(full.is_none_or(|sent| sent == 64), "the cork was full twice, but {full:?} were sent");
    client.send(server, bytes(0, 100), 64).unwrap();
    drop(cork);
    for _ in 0..65 {
        client.recv_completion().unwrap().result.unwrap();
    }
    assert_at_rest(&[&client, &echo.endpoint]);
    full.is_some()
}

/// Returns the number of packets that `endpoint` has sent; `None` if the background poller has run.
fn sent_before_background_poll(endpoint: &Endpoint) -> Option<u64> {
    let metrics = endpoint.metrics();
    let sent = metrics.protocol.packets_sent.iter().sum();
    (metrics.engine.keeper_turns == 0).then_some(sent)
}

/// Requirement SEND-10.
#[test]
fn a_cork_of_a_thread_that_computes_does_not_delay_messages_forever() {
    let (client, server, _echo) = echo_pair(&patient());
    let _cork = client.cork();
    client.send(server, bytes(0, 100), 0).unwrap();
    while client.metrics().protocol.progress.client_responses_done == 0 {
        // This thread neither waits nor sends; the background poller does.
        std::thread::yield_now();
    }
    assert!(client.metrics().engine.keeper_turns > 0);
}

#[test]
fn a_receive_batch_is_as_large_as_the_builder_says() {
    for packets in [0, 1] {
        let (client, address, _server) = echo_pair(&patient().receive_batch(packets));
        assert_eq!(client.call(address, vec![7; 200_000]).unwrap().len(), 200_000);
        let metrics = client.metrics().engine;
        assert!(metrics.packets_arrived > 20, "{metrics:?}");
        assert_eq!(metrics.receive_batches, metrics.packets_arrived, "one by one");
    }
}

/// While the application computes, the background poller sends GRANTs, RESENDs and ACKs.
#[test]
fn the_loop_runs_while_no_thread_waits() {
    let (client, server) = pair(&patient());
    // Far more than the unscheduled bytes: it needs grants.
    client.send(server.local_addr(), bytes(1, 400_000), 0).unwrap();
    while server.metrics().protocol.progress.server_requests_done == 0 {
        // Neither side waits for anything.
        std::thread::yield_now();
    }
    assert!(server.metrics().engine.keeper_turns > 0);
    let request = server.try_recv_request().unwrap().unwrap();
    assert_eq!(*request.payload(), bytes(1, 400_000));
}

/// A pass of the loop ends, however long the message.
#[test]
fn a_long_message_uses_up_quotas() {
    let (client, server, echo) = echo_pair(&patient());
    while client.metrics().engine.quota_exhaustions == 0
        || echo.endpoint.metrics().engine.quota_exhaustions == 0
    {
        let payload = bytes(1, 3_000_000);
        assert_eq!(client.call(server, payload.clone()).unwrap(), payload);
    }
    assert_at_rest(&[&client, &echo.endpoint]);
}
