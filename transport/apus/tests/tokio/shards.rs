//! Async endpoints with several shards, over UDP on the loopback interface.

use crate::{assert_at_rest, bytes, on_each_runtime, patient};
use apus::Closed;
use apus::tokio::{Endpoint, EndpointBuilder};
use std::collections::HashSet;
use std::time::Duration;
use tokio::task::JoinHandle;

const SHARDS: usize = 4;

fn builder() -> EndpointBuilder {
    patient().shards(SHARDS).local(false)
}

/// Starts a task that echoes until the endpoint is closed, and returns how many requests it has
/// served.
fn echo(server: &Endpoint) -> JoinHandle<u64> {
    let server = server.clone();
    tokio::spawn(async move {
        let mut served = 0;
        while let Ok(mut request) = server.recv_request().await {
            let payload = request.take_payload();
            let _ = request.reply(payload).await;
            served += 1;
        }
        served
    })
}

#[test]
fn many_clients_share_a_server_with_shards() {
    on_each_runtime(async || {
        let server = builder().bind("127.0.0.1:0").await.unwrap();
        let to = server.local_addr();
        // One task receives the requests of all shards.
        let receiver = echo(&server);
        let clients: Vec<_> = (0..32)
            .map(|seed| {
                tokio::spawn(async move {
                    let client = patient().local(false).client().await.unwrap();
                    for call in 0..10 {
                        let request = bytes(seed, 1 + 500 * call);
                        assert_eq!(client.call(to, request.clone()).await.unwrap(), request);
                    }
                    assert_at_rest(&[&client]).await;
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        let shards = server.shard_metrics();
        let served = shards.iter().map(|shard| shard.protocol.progress.server_requests_done);
        let served: Vec<_> = served.collect();
        assert_eq!(served.iter().sum::<u64>(), 320);
        assert!(served.iter().filter(|served| **served > 0).count() > 1, "{served:?}");
        assert!(server.metrics().engine.steals > 0);
        assert_at_rest(&[&server]).await;
        server.shutdown();
        assert_eq!(receiver.await.unwrap(), 320);
    });
}

#[test]
fn tasks_call_through_shards_in_both_directions() {
    on_each_runtime(async || {
        let a = builder().bind("127.0.0.1:0").await.unwrap();
        let b = builder().bind("127.0.0.1:0").await.unwrap();
        for endpoint in [&a, &a, &b, &b] {
            echo(endpoint);
        }
        let calls: Vec<_> = (0..32)
            .map(|seed| {
                let (here, to) = if seed % 2 == 0 {
                    (a.clone(), b.local_addr())
                } else {
                    (b.clone(), a.local_addr())
                };
                tokio::spawn(async move {
                    for call in 0..10 {
                        let request = bytes(seed, 1 + 900 * call);
                        assert_eq!(here.call(to, request.clone()).await.unwrap(), request);
                    }
                })
            })
            .collect();
        for call in calls {
            call.await.unwrap();
        }
        assert_at_rest(&[&a, &b]).await;
    });
}

#[test]
fn completions_are_received_by_one_task() {
    on_each_runtime(async || {
        let server = builder().bind("127.0.0.1:0").await.unwrap();
        let client = builder().client().await.unwrap();
        echo(&server);
        for sender in 0..8 {
            let (client, to) = (client.clone(), server.local_addr());
            tokio::spawn(async move {
                for call in 0..50 {
                    client.send(to, bytes(call, 80), (sender * 50 + call) as u64).await.unwrap();
                }
            });
        }
        let mut cookies = HashSet::new();
        while cookies.len() < 400 {
            let completion = client.recv_completion().await.unwrap();
            assert_eq!(completion.result.unwrap(), bytes(completion.cookie as usize % 50, 80));
            assert!(cookies.insert(completion.cookie), "each once");
        }
        assert_at_rest(&[&client, &server]).await;
    });
}

/// A task that was asked to steal, and is dropped before it does, leaves the message to another
/// one.
#[test]
fn dropped_receivers_lose_no_request() {
    on_each_runtime(async || {
        let server = builder().bind("127.0.0.1:0").await.unwrap();
        let to = server.local_addr();
        let receiver = echo(&server);
        let impatient: Vec<_> = (0..4)
            .map(|_| {
                let server = server.clone();
                tokio::spawn(async move {
                    loop {
                        let wait = Duration::from_micros(50);
                        match server.recv_request_timeout(wait).await {
                            Ok(Some(request)) => request.reply("impatient").await.unwrap(),
                            Ok(None) => {}
                            Err(closed) => return closed,
                        }
                    }
                })
            })
            .collect();
        let clients: Vec<_> = (0..16)
            .map(|_| {
                tokio::spawn(async move {
                    let client = patient().local(false).client().await.unwrap();
                    for _ in 0..20 {
                        client.call(to, "x").await.unwrap();
                    }
                })
            })
            .collect();
        for client in clients {
            client.await.unwrap();
        }
        server.shutdown();
        receiver.await.unwrap();
        for task in impatient {
            assert!(matches!(task.await.unwrap(), Closed::ShutDown));
        }
    });
}
