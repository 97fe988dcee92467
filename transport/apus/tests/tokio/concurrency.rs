//! Many tasks that share an endpoint.

use crate::{assert_at_rest, bytes, echo, echo_pair, on_each_runtime, pair, patient};
use apus::tokio::Endpoint;

#[test]
fn many_callers_share_an_endpoint() {
    on_each_runtime(async || {
        let (client, server, address) = echo_pair(&patient()).await;
        let tasks: Vec<_> = (0..64)
            .map(|task| {
                let client = client.clone();
                tokio::spawn(async move {
                    for i in 0..20 {
                        let request = bytes(task * 100 + i, 1 + (task + i) * 37 % 5_000);
                        assert_eq!(client.call(address, request.clone()).await.unwrap(), request);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert_at_rest(&[&client, &server]).await;
    });
}

#[test]
fn many_receivers_serve_one_endpoint() {
    on_each_runtime(async || {
        let (client, server) = pair(&patient()).await;
        let receivers: Vec<_> = (0..8).map(|_| echo(server.clone())).collect();
        for cookie in 0..1_000 {
            client.send(server.local_addr(), bytes(cookie, 100), cookie as u64).await.unwrap();
        }
        for _ in 0..1_000 {
            let end = client.recv_completion().await.unwrap();
            assert_eq!(end.result.unwrap(), bytes(end.cookie as usize, 100));
        }
        assert_at_rest(&[&client, &server]).await;
        server.shutdown();
        let mut served = 0;
        for receiver in receivers {
            served += receiver.await.unwrap();
        }
        assert_eq!(served, 1_000, "each request is received once");
    });
}

/// Callers, receivers of completions and receivers of requests wait at the same time.
#[test]
fn all_kinds_of_waiting_at_once() {
    on_each_runtime(async || {
        let (a, b) = pair(&patient()).await;
        for endpoint in [&a, &a, &b, &b] {
            echo(endpoint.clone());
        }
        let work = |here: &Endpoint, there: &Endpoint| {
            let (here, to) = (here.clone(), there.local_addr());
            tokio::spawn(async move {
                for i in 0..100 {
                    here.send(to, bytes(i, 64), i as u64).await.unwrap();
                    assert_eq!(here.call(to, bytes(i, 2_000)).await.unwrap(), bytes(i, 2_000));
                    here.recv_completion().await.unwrap().result.unwrap();
                }
            })
        };
        let workers = [work(&a, &b), work(&b, &a)];
        for worker in workers {
            worker.await.unwrap();
        }
        assert_at_rest(&[&a, &b]).await;
    });
}
