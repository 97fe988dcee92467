//! Stages of a call between tasks.

use crate::{Tracing, names, only, unhurried};
use apus::tokio::Endpoint;
use apus::trace::{Event, Side};
use apus_driver::loopback::LoopbackNetwork;

#[test]
fn messages_are_handed_off_to_tasks_that_are_woken() {
    let tracing = Tracing::all();
    let runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
    let (from, to) = runtime.block_on(async {
        let network = LoopbackNetwork::new();
        let builder = || Endpoint::builder().config(unhurried());
        let on = async || builder().with_driver(Box::new(network.host())).await.unwrap();
        let (client, server) = (on().await, on().await);
        let to = server.local_addr();
        tokio::spawn(async move {
            while let Ok(request) = server.recv_request().await {
                let payload = request.payload().clone();
                let _ = request.reply(payload).await;
            }
        });
        for _ in 0..3 {
            client.call(to, "hello").await.unwrap();
        }
        (client.local_addr(), to)
    });
    drop(runtime);
    let mine = tracing.of(from, Side::Client);
    let last = only(&mine, Event::Call)[2].rpc().unwrap();
    let of_last = |records: Vec<apus::trace::Record>| -> Vec<_> {
        records.into_iter().filter(|record| record.rpc().unwrap().id() == last.id()).collect()
    };
    // The client acknowledges its last response when it ends, and the server may have ended by
    // then.
    let beside = ["data", "cutoffs", "ack"];
    let stages = |records| {
        let all = names(&of_last(records));
        all.into_iter()
            .filter(|name| !beside.iter().any(|word| name.contains(word)))
            .collect::<Vec<_>>()
    };
    let client =
        ["call", "queued", "to_kernel", "from_kernel", "parsed", "handed_off", "woken", "returned"];
    assert_eq!(stages(mine), client);
    let server = [
        "from_kernel",
        "parsed",
        "handed_off",
        "woken",
        "request_returned",
        "reply",
        "queued",
        "to_kernel",
    ];
    let mut seen = stages(tracing.of(to, Side::Server));
    // The client's ack may arrive when the server has ended the RPC already.
    if seen.last() == Some(&"dropped") {
        seen.pop();
    }
    assert_eq!(seen, server);
}
