//! The choice of a server.

use crate::{call, servers, until};
use apus_rpc::{Balance, Code, Execution, Request, names};
use std::time::Duration;

fn request() -> Request {
    Request::new("test/m", vec![])
}

#[tokio::test]
async fn all_servers_get_calls() {
    let (client, servers) = servers(4).await;
    let balance = Balance::new(client, names::list(servers.iter().map(|server| server.address)));
    // Also a server whose first call was slow, as the first call to a peer may be.
    while servers.iter().any(|server| server.executed() < 20) {
        call(&balance, request()).await.unwrap();
    }
}

#[tokio::test]
async fn a_server_with_outstanding_calls_gets_fewer() {
    let (client, servers) = servers(2).await;
    let balance = Balance::new(client, names::list(servers.iter().map(|server| server.address)));
    for _ in 0..50 {
        call(&balance, request()).await.unwrap();
    }
    servers[0].stall.send(true).unwrap();
    let mut calls = tokio::task::JoinSet::new();
    let before = servers[0].executed();
    // Calls to the stalled server stay pending; the others return at once.
    for _ in 0..200 {
        let balance = balance.clone();
        calls.spawn(async move { call(&balance, request()).await });
        until(|| calls.len() <= 200).await;
        tokio::task::yield_now().await;
    }
    until(|| servers[1].executed() + servers[0].executed() >= 250).await;
    let stalled = servers[0].executed() - before;
    assert!(stalled < 100, "{stalled} of 200 calls went to the stalled server");
    servers[0].stall.send(false).unwrap();
    while let Some(result) = calls.join_next().await {
        result.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_server_that_drains_is_ejected_and_returns_when_it_is_ready() {
    let (client, servers) = servers(2).await;
    let balance = Balance::new(client, names::list(servers.iter().map(|server| server.address)));
    servers[0].control.set_ready(false);
    let mut refused = 0;
    for _ in 0..100 {
        match call(&balance, request()).await {
            Ok(name) => assert_eq!(name, 1),
            Err(status) => {
                assert_eq!(status.execution(), Execution::NotExecuted);
                refused += 1;
            }
        }
    }
    assert!(refused <= 1, "one refusal ejects: {refused}");
    until(|| balance.servers() == (2, 1)).await;
    servers[0].control.set_ready(true);
    until(|| balance.servers() == (2, 2)).await;
    let before = servers[0].executed();
    for _ in 0..100 {
        call(&balance, request()).await.unwrap();
    }
    assert!(servers[0].executed() > before);
}

#[tokio::test]
async fn if_all_are_ejected_calls_are_sent_nevertheless() {
    let (client, servers) = servers(1).await;
    let balance = Balance::new(client, names::list([servers[0].address]));
    servers[0].control.set_ready(false);
    call(&balance, request()).await.unwrap_err();
    until(|| balance.servers() == (1, 0)).await;
    servers[0].control.set_ready(true);
    call(&balance, request()).await.unwrap();
}

#[tokio::test]
async fn servers_come_and_go_and_none_is_a_typed_error() {
    let (client, servers) = servers(2).await;
    let (sender, receiver) = tokio::sync::watch::channel(vec![]);
    let balance = Balance::new(client, names::watch(receiver));
    let status = call(&balance, request().with_timeout(Duration::from_secs(60))).await;
    let status = status.unwrap_err();
    assert_eq!((status.code(), status.execution()), (Code::Unavailable, Execution::NotExecuted));
    for server in [0, 1, 0] {
        sender.send(vec![servers[server].address]).unwrap();
        for _ in 0..10 {
            assert_eq!(usize::from(call(&balance, request()).await.unwrap()), server);
        }
    }
}
