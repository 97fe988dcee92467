//! The async endpoint, polled by hand where the order of events matters.

use crate::bytes;
use apus::tokio::{Endpoint, EndpointBuilder};
use apus::{Config, Execution};
use apus_driver::loopback::LoopbackNetwork;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::runtime::Runtime;

/// A runtime whose worker runs the loops while the test's own thread polls.
fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Two endpoints on a separate network; `runtime` runs their loops.
fn pair(runtime: &Runtime, builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let network = LoopbackNetwork::new();
    let host = || builder.clone().with_driver(Box::new(network.host()));
    let on = || runtime.block_on(host()).unwrap();
    (on(), on())
}

fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// A task that is notified of a completion receives it although the endpoint is shut down in
/// between.
#[test]
fn completions_are_received_although_the_endpoint_was_shut_down() {
    let runtime = runtime();
    let (client, server) = pair(&runtime, &Endpoint::builder());
    runtime.block_on(client.send(server.local_addr(), "x", 5)).unwrap();
    let mut recv = Box::pin(client.recv_completion());
    assert!(poll(&mut recv).is_pending(), "there is no response");
    client.shutdown();
    let Poll::Ready(Ok(end)) = poll(&mut recv) else { panic!("the call has ended") };
    assert_eq!(end.cookie, 5);
    assert!(end.result.is_err());
    drop(recv);
    assert!(runtime.block_on(client.recv_completion()).is_err(), "that was the only one");
}

#[test]
fn cancelling_the_last_call_ends_a_drain() {
    let runtime = runtime();
    let (client, server) = pair(&runtime, &Endpoint::builder());
    let call = runtime.block_on(client.send(server.local_addr(), "x", 5)).unwrap();
    let mut drain = Box::pin(client.drain(Duration::from_secs(60)));
    assert!(poll(&mut drain).is_pending(), "there is no response");
    assert!(client.cancel(call));
    assert!(poll(&mut drain).is_ready(), "nothing is left to be acknowledged");
    assert_eq!(client.metrics().engine.spurious_wakeups, 0, "ENGINE-3");
}

#[test]
fn a_drain_that_was_notified_ends_whatever_is_sent_then() {
    let runtime = runtime();
    let (client, server) = pair(&runtime, &Endpoint::builder());
    let call = runtime.block_on(client.send(server.local_addr(), "x", 5)).unwrap();
    let mut drain = Box::pin(client.drain(Duration::from_secs(60)));
    assert!(poll(&mut drain).is_pending());
    assert!(client.cancel(call));
    runtime.block_on(client.send(server.local_addr(), "y", 6)).unwrap();
    assert!(poll(&mut drain).is_ready());
    assert_eq!(client.metrics().engine.spurious_wakeups, 0, "ENGINE-3");
}

#[test]
fn a_call_that_is_cancelled_makes_room() {
    let runtime = runtime();
    let builder = Endpoint::builder().config(Config::builder().max_client_rpcs(1).build().unwrap());
    let (client, server) = pair(&runtime, &builder);
    let call = runtime.block_on(client.send(server.local_addr(), "x", 5)).unwrap();
    let mut send = Box::pin(client.send(server.local_addr(), "y", 6));
    assert!(poll(&mut send).is_pending(), "one call is the limit");
    assert!(client.cancel(call));
    assert!(matches!(poll(&mut send), Poll::Ready(Ok(_))));
}

/// The task that runs the loop ends without having been polled once.
#[test]
fn an_endpoint_is_closed_with_a_runtime_that_never_ran() {
    let idle = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (client, _server) = pair(&idle, &Endpoint::builder());
    drop(idle);
    let error = runtime().block_on(client.recv_request()).unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}

/// The calls of an endpoint end, even if the runtime that runs its loop ends first.
#[test]
fn an_endpoint_is_closed_with_its_runtime() {
    let worker = runtime();
    let (client, server) = pair(&worker, &Endpoint::builder());
    let mut call = Box::pin(client.call(server.local_addr(), bytes(0, 100)));
    assert!(poll(&mut call).is_pending());
    drop(worker);
    let Poll::Ready(Err(error)) = poll(&mut call) else { panic!("no response can arrive") };
    assert_ne!(error.execution(), Execution::Executed, "{error}");
    drop(call);
    let error = runtime().block_on(client.recv_request()).unwrap_err();
    assert!(error.to_string().contains("runtime"), "{error}");
}
