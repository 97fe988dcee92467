//! Back-pressure: a caller waits for room, or gets a typed error.

use crate::{assert_at_rest, bytes, echo_pair, on_each_runtime, pair, patient, patient_config};
use apus::CallOptions;
use apus::tokio::EndpointBuilder;
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
fn callers_wait_for_room() {
    on_each_runtime(async || {
        let (client, server, address) = echo_pair(&small()).await;
        // Far more than there is room for, from many tasks at once.
        let calls: Vec<_> = (0..100)
            .map(|i| {
                let client = client.clone();
                tokio::spawn(async move { client.call(address, bytes(i, 9_000)).await })
            })
            .collect();
        for (i, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap().unwrap(), bytes(i, 9_000));
        }
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn a_sender_waits_for_a_receiver_of_completions() {
    on_each_runtime(async || {
        let (client, server, address) = echo_pair(&small()).await;
        let sender = async {
            for cookie in 0..100 {
                client.send(address, bytes(0, 9_000), cookie).await.unwrap();
            }
        };
        let receiver = async {
            for _ in 0..100 {
                client.recv_completion().await.unwrap().result.unwrap();
            }
        };
        tokio::join!(sender, receiver);
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn a_caller_that_does_not_wait_gets_an_error() {
    on_each_runtime(async || {
        let (client, server) = pair(&small()).await;
        let options = CallOptions::new().no_wait(true);
        for cookie in 0..2 {
            let request = bytes(0, 9_000);
            client.send_with(server.local_addr(), request, cookie, options).await.unwrap();
        }
        let third = client.send_with(server.local_addr(), bytes(0, 9_000), 2, options).await;
        let error = third.unwrap_err();
        assert!(error.is_back_pressure(), "{error}");
    });
}

#[test]
fn a_deadline_covers_the_wait_for_room() {
    on_each_runtime(async || {
        let (client, server) = pair(&small()).await;
        let address = server.local_addr();
        client.send(address, bytes(0, 9_000), 0).await.unwrap();
        client.send(address, bytes(0, 9_000), 1).await.unwrap();
        let options = CallOptions::new().timeout(Duration::from_millis(20));
        let error = client.call_with(address, bytes(0, 9_000), options).await.unwrap_err();
        assert_eq!(error.execution(), apus::Execution::NotExecuted, "{error}");
        assert!(error.to_string().contains("deadline"), "{error}");
    });
}
