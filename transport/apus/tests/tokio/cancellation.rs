//! Futures that are dropped before they are ready.

use crate::gate::Gate;
use crate::{assert_at_rest, bytes, echo, on_each_runtime, pair, patient, patient_config, until};
use apus::tokio::Endpoint;
use apus::{ConfigBuilder, ReplyError};
use apus_driver::Driver;
use apus_driver::loopback::LoopbackNetwork;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Polls a future once, and checks that it is pending.
async fn begin<F: Future>(mut future: std::pin::Pin<&mut F>) {
    let pending = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
    assert!(pending, "it takes longer");
}

#[test]
fn a_dropped_call_is_cancelled_and_its_server_is_notified() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let address = server.local_addr();
        let request = {
            let mut call = pin!(client.call(address, "never mind"));
            begin(call.as_mut()).await;
            server.recv_request().await.unwrap()
        };
        assert!(client.info().is_empty(), "the call is gone with its future");
        until(|| server.info().is_empty()).await;
        assert!(matches!(request.reply("too late").await, Err(ReplyError::ClientGone)));
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn other_calls_continue() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let address = server.local_addr();
        let mut kept = Vec::new();
        for i in 0..40 {
            let client = client.clone();
            let call = tokio::spawn(async move { client.call(address, bytes(i, 20_000)).await });
            kept.push((i, call));
        }
        until(|| client.info().len() == 40).await;
        let mut i = 0;
        kept.retain(|(_, call)| {
            i += 1;
            if i % 2 == 0 {
                call.abort();
            }
            i % 2 == 1
        });
        until(|| client.info().len() <= 20).await;
        let served = echo(server.clone());
        for (i, call) in kept {
            assert_eq!(call.await.unwrap().unwrap(), bytes(i, 20_000));
        }
        assert_at_rest(&[&client, &server]).await;
        server.shutdown();
        served.await.unwrap();
    });
}

/// A call is dropped in the middle of a long request: the server must not keep the received part.
#[test]
fn a_half_sent_request_leaves_nothing() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let address = server.local_addr();
        let is_complete = || server.metrics().queues.requests_waiting > 0;
        {
            let mut call = pin!(client.call(address, bytes(0, 5_000_000)));
            begin(call.as_mut()).await;
            let is_arriving =
                || server.info().iter().any(|rpc| rpc.incoming.is_some_and(|it| it.done > 0));
            until(|| is_arriving() || is_complete()).await;
        }
        // On a busy machine all of it arrives before this task runs again, and the cancellation may
        // arrive at any time.
        while !server.info().is_empty() {
            drop(server.recv_request_timeout(Duration::from_millis(1)).await.unwrap());
        }
        assert_at_rest(&[&client, &server]).await;
    });
}

/// The response has arrived, but the future is dropped before it is polled.
#[test]
fn a_response_that_is_not_received_is_freed() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        {
            let mut call = pin!(client.call(server.local_addr(), "hello"));
            begin(call.as_mut()).await;
            server.recv_request().await.unwrap().reply(bytes(0, 1_000)).await.unwrap();
            until(|| client.metrics().protocol.progress.client_responses_done == 1).await;
            assert_eq!(client.metrics().protocol.live.receive_bytes, 1_000);
        }
        assert_eq!(client.metrics().protocol.live.receive_bytes, 0);
        assert_at_rest(&[&client, &server]).await;
    });
}

/// Receivers are created and dropped while requests arrive. A receiver that is dropped after it was
/// notified passes its request on.
#[test]
fn a_dropped_receiver_loses_no_message() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        for i in 0..200 {
            let mut impatient = [0; 2].map(|_| Box::pin(server.recv_request()));
            for receiver in &mut impatient {
                begin(receiver.as_mut()).await;
            }
            client.send(server.local_addr(), bytes(i, 8), i as u64).await.unwrap();
            let arrived = |n: u64| server.metrics().protocol.progress.server_requests_done == n;
            until(|| arrived(i as u64 + 1)).await;
            let mut waiting = pin!(server.recv_request());
            drop(impatient);
            let request = waiting.as_mut().await.unwrap();
            assert_eq!(*request.payload(), bytes(i, 8));

            let mut impatient = Box::pin(client.recv_completion());
            begin(impatient.as_mut()).await;
            request.reply("done").await.unwrap();
            until(|| client.metrics().protocol.progress.client_responses_done == i as u64 + 1)
                .await;
            drop(impatient);
            assert_eq!(client.recv_completion().await.unwrap().cookie, i as u64);
        }
        assert_at_rest(&[&client, &server]).await;
    });
}

fn narrow() -> ConfigBuilder {
    patient_config().max_message(10_000).max_send_bytes_per_peer(10_000).max_send_bytes(10_000)
}

#[test]
fn a_call_dropped_while_it_waits_for_room_was_never_made() {
    on_each_runtime(async || {
        let (client, server) = pair(&Endpoint::builder().config(narrow().build().unwrap())).await;
        let address = server.local_addr();
        client.send(address, bytes(0, 9_000), 1).await.unwrap();
        {
            let mut call = pin!(client.call(address, bytes(1, 9_000)));
            begin(call.as_mut()).await;
        }
        server.recv_request().await.unwrap().reply("first").await.unwrap();
        assert_eq!(client.recv_completion().await.unwrap().result.unwrap(), "first");
        assert_eq!(client.metrics().protocol.progress.client_requests_started, 1);
        assert_at_rest(&[&client, &server]).await;
    });
}

/// A reply that waits for room is dropped: the client is notified that none will follow.
#[test]
fn a_dropped_reply_abandons_its_request() {
    on_each_runtime(async || {
        let (network, gate) = (LoopbackNetwork::new(), Gate::default());
        let on = async |config: ConfigBuilder, driver: Box<dyn Driver>| {
            let builder = Endpoint::builder().config(config.build().unwrap());
            builder.with_driver(driver).await.unwrap()
        };
        // A server that sends no NEED_ACK: acknowledgments arrive with the client's next request.
        let client = on(patient_config(), gate.in_front_of(network.host())).await;
        let silent = narrow().need_ack_usecs(10_000_000);
        let server = on(silent, Box::new(network.host())).await;
        client.send(server.local_addr(), "x", 1).await.unwrap();
        client.send(server.local_addr(), "y", 2).await.unwrap();
        let first = server.recv_request().await.unwrap();
        let second = server.recv_request().await.unwrap();
        // The client does not acknowledge the first reply before the second one waits for room.
        gate.close();
        first.reply(bytes(0, 9_000)).await.unwrap();
        {
            let mut reply = pin!(second.reply(bytes(1, 9_000)));
            begin(reply.as_mut()).await;
        }
        gate.open();
        assert_eq!(client.recv_completion().await.unwrap().result.unwrap(), bytes(0, 9_000));
        let error = client.recv_completion().await.unwrap().result.unwrap_err();
        assert!(error.to_string().contains("without a reply"), "{error}");
        client.send(server.local_addr(), "z", 3).await.unwrap();
        let third = server.recv_request().await.unwrap();
        assert_eq!(server.metrics().protocol.live.send_bytes, 0, "the acknowledgment came along");
        third.reply(bytes(2, 9_000)).await.unwrap();
        assert_eq!(client.recv_completion().await.unwrap().result.unwrap(), bytes(2, 9_000));
    });
}
