//! Async endpoints over the shared-memory path: their runtime sleeps on the doorbell.

use crate::bytes;
use apus::tokio::Endpoint;
use apus::{CallOptions, EndpointBuilder, FailureKind, OutgoingCall};
use std::time::Duration;
use tokio::runtime::Runtime;

fn one_thread() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn several_threads() -> Runtime {
    let mut several = tokio::runtime::Builder::new_multi_thread();
    several.worker_threads(2).enable_all().build().unwrap()
}

async fn echo(server: Endpoint) {
    while let Ok(request) = server.recv_request().await {
        let payload = request.payload().clone();
        // The client may have vanished.
        let _ = request.reply(payload).await;
    }
}

/// Calls until calls go through shared memory.
async fn connect(client: &Endpoint, server: &Endpoint) {
    while client.metrics().engine.local_calls == 0 {
        client.call(server.local_addr(), "are you there?").await.unwrap();
    }
}

#[test]
fn tasks_of_one_runtime_call_each_other() {
    for runtime in [one_thread(), several_threads()] {
        runtime.block_on(async {
            let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
            tokio::spawn(echo(server.clone()));
            let client = Endpoint::client().await.unwrap();
            connect(&client, &server).await;
            for (seed, size) in [0, 1, 100, 4_000, 100_000, 1_000_000].into_iter().enumerate() {
                let request = bytes(seed, size);
                let response = client.call(server.local_addr(), request.clone()).await.unwrap();
                assert_eq!(response, request, "{size}");
            }
            assert!(client.drain(Duration::from_secs(60)).await);
            assert!(server.drain(Duration::from_secs(60)).await);
            assert!(client.metrics().engine.local_calls >= 7);
            assert_eq!(client.metrics().engine.spurious_wakeups, 0, "ENGINE-3");
        });
    }
}

/// Messages through shared memory are not left to the task of the loop, as packets are.
#[test]
fn calls_and_replies_that_a_task_makes_together_leave_at_once() {
    one_thread().block_on(async {
        let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
        let echoes = tokio::spawn(echo(server.clone()));
        let client = Endpoint::client().await.unwrap();
        connect(&client, &server).await;
        echoes.abort();
        assert!(echoes.await.unwrap_err().is_cancelled());
        let task = tokio::spawn(async move {
            let to = server.local_addr();
            let call = |cookie| OutgoingCall { to, request: bytes(0, 50).into(), cookie };
            let before = client.metrics().engine.local_calls;
            client.send_many(&mut (0..50).map(call).collect(), CallOptions::new()).await.unwrap();
            assert_eq!(client.metrics().engine.local_calls - before, 50);
            let mut replies = Vec::new();
            while replies.len() < 50 {
                let request = server.recv_request().await.unwrap();
                replies.push((request, bytes(0, 60).into()));
            }
            server.reply_many(&mut replies).await.unwrap();
            for _ in 0..50 {
                let end = client.recv_completion().await.unwrap();
                assert_eq!(end.result.unwrap(), bytes(0, 60));
            }
        });
        task.await.unwrap();
    });
}

/// A thread that blocks and a runtime that sleeps call each other.
#[test]
fn a_thread_calls_a_task_and_a_task_calls_a_thread() {
    let runtime = several_threads();
    let server = runtime.block_on(Endpoint::bind("127.0.0.1:0")).unwrap();
    runtime.spawn(echo(server.clone()));
    let client =
        EndpointBuilder::default().poll_mode(apus::PollMode::Block).bind("127.0.0.1:0").unwrap();
    let thread = crate::echo(client.clone());
    while client.metrics().engine.local_calls < 100 {
        assert_eq!(client.call(server.local_addr(), bytes(1, 500)).unwrap(), bytes(1, 500));
    }
    runtime.block_on(async {
        while server.metrics().engine.local_calls < 100 {
            let response = server.call(client.local_addr(), bytes(2, 500)).await.unwrap();
            assert_eq!(response, bytes(2, 500));
        }
    });
    client.shutdown();
    thread.join().unwrap();
}

/// A packet woke a sleeper that then did not poll the socket, since messages had just arrived
/// through shared memory: threads slept and were woken a thousand times; tasks, which are woken
/// once, waited for a second.
#[test]
fn a_sleeper_polls_the_network_that_has_woken_it_whatever_arrived_through_memory() {
    let runtime = several_threads();
    let task = runtime.block_on(Endpoint::bind("127.0.0.1:0")).unwrap();
    runtime.spawn(echo(task.clone()));
    let sleeper =
        EndpointBuilder::default().poll_mode(apus::PollMode::Block).bind("127.0.0.1:0").unwrap();
    let thread = crate::echo(sleeper.clone());
    let near = EndpointBuilder::default().poll_mode(apus::PollMode::Block).client().unwrap();
    let far =
        EndpointBuilder::default().poll_mode(apus::PollMode::Block).local(false).client().unwrap();
    let sleeps = || [task.metrics().engine.sleeps, sleeper.metrics().engine.sleeps];
    for (index, server) in [task.local_addr(), sleeper.local_addr()].into_iter().enumerate() {
        let enough = near.metrics().engine.local_calls + 100;
        while near.metrics().engine.local_calls < enough {
            near.call(server, bytes(1, 500)).unwrap();
        }
        let before = sleeps()[index];
        for _ in 0..3 {
            assert_eq!(far.call(server, bytes(2, 500)).unwrap(), bytes(2, 500));
        }
        let times = sleeps()[index] - before;
        assert!(times < 200, "{index}: slept {times} times during three calls");
    }
    sleeper.shutdown();
    thread.join().unwrap();
}

#[test]
fn a_deadline_ends_a_call_of_a_task() {
    let runtime = one_thread();
    runtime.block_on(async {
        let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
        let answering = tokio::spawn(echo(server.clone()));
        let client = Endpoint::client().await.unwrap();
        connect(&client, &server).await;
        answering.abort();
        let _ = answering.await;
        let options = CallOptions::new().timeout(Duration::from_millis(10));
        let error = client.call_with(server.local_addr(), "hello?", options).await.unwrap_err();
        let apus::CallError::Failed(error) = error else { panic!("{error}") };
        assert_eq!(error.kind, FailureKind::DeadlineExceeded);
    });
}
