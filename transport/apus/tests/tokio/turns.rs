//! Turns of the task that runs the loop: its sends for other tasks, and its waits.

use crate::{assert_at_rest, bytes, echo_pair, on_each_runtime, patient, until};
use apus::tokio::Endpoint;
use apus::{CallOptions, OutgoingCall, PollMode};
use apus_driver::loopback::LoopbackNetwork;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Packets of messages that the endpoint has given to its driver. Others, such as acks, leave when
/// their timers say so.
fn sent(endpoint: &Endpoint) -> u64 {
    endpoint.metrics().protocol.sent(apus_proto::Kind::Data)
}

fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// Requirement SEND-10.
#[test]
fn packets_of_tasks_leave_together_when_the_loop_has_its_turn() {
    one_thread().block_on(async {
        let builder = patient().poll_mode(PollMode::Spin);
        let (client, server, address) = echo_pair(&builder).await;
        client.call(address, "first").await.unwrap();
        let task = client.clone();
        let sends = tokio::spawn(async move { leave_to_the_loop(&task, address).await });
        sends.await.unwrap();
        assert_at_rest(&[&client, &server]).await;
    });
}

async fn leave_to_the_loop(client: &Endpoint, address: SocketAddr) {
    let before = sent(client);
    client.send(address, bytes(0, 100), 0).await.unwrap();
    assert_eq!(sent(client), before, "it is left to the loop");
    for cookie in 1..64 {
        client.send(address, bytes(0, 100), cookie).await.unwrap();
    }
    assert!(sent(client) - before >= 32, "no more than 31 are left to it");
    for _ in 0..64 {
        client.recv_completion().await.unwrap().result.unwrap();
    }
}

/// Requirement SEND-10.
#[test]
fn packets_of_calls_that_a_task_makes_together_are_left_to_the_loop_as_well() {
    one_thread().block_on(async {
        let builder = patient().poll_mode(PollMode::Spin);
        let (client, server, address) = echo_pair(&builder).await;
        client.call(address, "first").await.unwrap();
        let task = client.clone();
        let sends = tokio::spawn(async move {
            let call = |cookie| OutgoingCall { to: address, request: bytes(0, 100).into(), cookie };
            let before = sent(&task);
            task.send_many(&mut (0..10).map(call).collect(), CallOptions::new()).await.unwrap();
            assert_eq!(sent(&task), before, "they are left to the loop");
            task.send_many(&mut (10..64).map(call).collect(), CallOptions::new()).await.unwrap();
            assert!(sent(&task) - before >= 32, "no more than 31 are left to it");
        });
        sends.await.unwrap();
        for _ in 0..64 {
            client.recv_completion().await.unwrap().result.unwrap();
        }
        assert_at_rest(&[&client, &server]).await;
    });
}

/// Requirement SEND-10.
#[test]
fn packets_leave_at_once_while_the_loop_sleeps_or_runs_on_another_thread() {
    let runtime = one_thread();
    let (client, address) = runtime.block_on(async {
        let (client, _, address) = echo_pair(&patient().poll_mode(PollMode::Block)).await;
        client.call(address, "first").await.unwrap();
        let sleeps = client.metrics().engine.sleeps;
        until(|| client.metrics().engine.sleeps > sleeps).await;
        let before = sent(&client);
        client.send(address, "second", 2).await.unwrap();
        assert_eq!(sent(&client) - before, 1, "the loop sleeps");
        client.recv_completion().await.unwrap().result.unwrap();
        (client, address)
    });
    // A thread other than the loop's, and then another runtime; neither drives the loop.
    let send = move || {
        let client = client.clone();
        let sends = async move {
            let before = sent(&client);
            client.send(address, "third", 3).await.unwrap();
            sent(&client) - before
        };
        one_thread().block_on(async { tokio::spawn(sends).await.unwrap() })
    };
    assert_eq!(std::thread::scope(|scope| scope.spawn(&send).join().unwrap()), 1);
    assert_eq!(send(), 1);
    // Not before here: the endpoint ends with it.
    drop(runtime);
}

/// Messages left to the loop leave although its runtime ends before its turn.
#[test]
fn a_reply_leaves_before_its_runtime_ends() {
    let (client, server) = (one_thread(), one_thread());
    let network = LoopbackNetwork::new();
    let open = |runtime: &tokio::runtime::Runtime| {
        let builder = patient().poll_mode(PollMode::Spin);
        runtime.block_on(builder.with_driver(Box::new(network.host()))).unwrap()
    };
    let (caller, answering) = (open(&client), open(&server));
    let address = answering.local_addr();
    let call = std::thread::spawn(move || client.block_on(caller.call(address, "request")));
    let replies = async move {
        let request = answering.recv_request().await.unwrap();
        request.reply("response").await.unwrap();
    };
    server.block_on(async { tokio::spawn(replies).await.unwrap() });
    drop(server);
    assert_eq!(call.join().unwrap().unwrap(), "response");
}

/// COOP-1: the main future and other tasks run while the loop spins.
#[test]
fn a_loop_that_spins_lets_all_tasks_run() {
    on_each_runtime(async || {
        let (client, _, address) = echo_pair(&patient().poll_mode(PollMode::Spin)).await;
        let ticks = tokio::spawn(async {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
        });
        tokio::time::sleep(Duration::from_millis(1)).await;
        ticks.await.unwrap();
        assert_eq!(client.call(address, "x").await.unwrap(), "x");
    });
}

/// A call that is dropped before the loop has sent it is cancelled.
#[test]
fn a_call_that_was_left_to_the_loop_can_be_dropped() {
    one_thread().block_on(async {
        let (client, server, address) = echo_pair(&patient().poll_mode(PollMode::Spin)).await;
        client.call(address, "first").await.unwrap();
        let task = client.clone();
        let drops = tokio::spawn(async move {
            for length in [0, 100, 100_000] {
                let mut call = pin!(task.call(address, bytes(1, length)));
                let polled = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await;
                assert!(polled.is_pending());
            }
        });
        drops.await.unwrap();
        assert_eq!(client.call(address, "last").await.unwrap(), "last");
        assert_at_rest(&[&client, &server]).await;
    });
}
