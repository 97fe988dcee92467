//! Hedged calls.

use crate::{Running, call, servers, until};
use apus_rpc::layers::{Budget, Hedge, HedgeCounts};
use apus_rpc::{Balance, Request, names};
use std::time::Duration;

fn request(idempotent: bool) -> Request {
    Request::new("test/m", vec![]).with_idempotent(idempotent)
}

/// A hedging client with enough calls for its percentile.
async fn warm(client: apus::tokio::Endpoint, servers: &[Running]) -> Hedge<Balance> {
    let addresses = servers.iter().map(|server| server.address);
    let balance = Balance::new(client, names::list(addresses));
    // No hedge during the warm-up: the delay is longer than any of its calls.
    let hedge = Hedge::new(balance).min_delay(Duration::from_millis(20)).budget(Budget::new(5, 10));
    for _ in 0..200 {
        call(&hedge, request(true)).await.unwrap();
    }
    hedge
}

#[tokio::test]
async fn a_stalled_server_does_not_delay_idempotent_calls() {
    let (client, servers) = servers(2).await;
    let hedge = warm(client, &servers).await;
    let before = hedge.counts();
    servers[0].stall.send(true).unwrap();
    let executed = [servers[0].executed(), servers[1].executed()];
    // Repeat until the first copy goes to the stalled server.
    while hedge.counts().second_first == before.second_first {
        assert_eq!(call(&hedge, request(true)).await.unwrap(), 1, "the other server answers");
    }
    // On a busy machine, calls to the other server may have been slow enough for a hedge as well.
    let counts = hedge.counts();
    let hedged = counts.hedged - before.hedged;
    assert!(hedged >= 1, "{counts:?}");
    let calls = counts.calls - before.calls;
    let at_both = servers[0].executed() + servers[1].executed() - executed[0] - executed[1];
    let at_both = u64::from(at_both);
    assert!(at_both > calls && at_both <= calls + hedged, "{at_both} executions of {calls} calls");
    // The loser is cancelled: its server ends the call.
    servers[0].stall.send(false).unwrap();
    until(|| servers[0].control.running() == 0).await;
}

#[tokio::test]
async fn a_call_that_is_not_idempotent_is_never_hedged() {
    let (client, servers) = servers(2).await;
    let hedge = warm(client, &servers).await;
    let before: u32 = servers.iter().map(Running::executed).sum();
    servers.iter().for_each(|server| server.stall.send(true).unwrap());
    let pending = tokio::spawn({
        let hedge = hedge.clone();
        async move { call(&hedge, request(false)).await }
    });
    // A hedge of an idempotent call is sent later than a hedge of this call would be.
    let idempotent = tokio::spawn({
        let hedge = hedge.clone();
        async move { call(&hedge, request(true)).await }
    });
    let hedged = |counts: HedgeCounts| counts.hedged;
    let known = hedged(hedge.counts());
    until(|| hedged(hedge.counts()) > known).await;
    let executed = || servers.iter().map(Running::executed).sum::<u32>() - before;
    until(|| executed() == 3).await;
    servers.iter().for_each(|server| server.stall.send(false).unwrap());
    pending.await.unwrap().unwrap();
    idempotent.await.unwrap().unwrap();
    assert_eq!(executed(), 3, "one, and one with its copy");
}

#[tokio::test]
async fn no_server_executes_a_call_twice() {
    let (client, servers) = servers(1).await;
    let hedge = warm(client, &servers).await;
    servers[0].stall.send(true).unwrap();
    let before = servers[0].executed();
    let pending = tokio::spawn({
        let hedge = hedge.clone();
        async move { call(&hedge, request(true)).await }
    });
    let known = hedge.counts().hedged;
    // Without another server the copy is not sent, and the client waits for the first one.
    until(|| hedge.counts().hedged > known).await;
    servers[0].stall.send(false).unwrap();
    pending.await.unwrap().unwrap();
    assert_eq!(servers[0].executed() - before, 1);
}
