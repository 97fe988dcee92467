//! Start, shutdown and loss of endpoints, and what their peers see of it.

use crate::fixtures::{patient, patient_config};
use crate::{bytes, pair};
use apus::{Closed, Config, Endpoint, Execution, Profile};
use apus_driver::loopback::LoopbackNetwork;
use std::time::Duration;

#[test]
fn shutting_down_ends_every_wait() {
    let (a, b) = pair(&patient());
    std::thread::scope(|scope| {
        let waits = [
            scope.spawn(|| a.recv_completion().map(drop)),
            scope.spawn(|| a.recv_request().map(drop)),
            scope.spawn(|| a.recv_request().map(drop)),
        ];
        let call = scope.spawn(|| a.call(b.local_addr(), "hello"));
        // b never responds; wait until a's call is outstanding.
        while a.metrics().protocol.live.client_rpcs == 0 {
            std::thread::yield_now();
        }
        a.shutdown();
        for wait in waits {
            assert!(matches!(wait.join().unwrap(), Err(Closed::ShutDown)));
        }
        let error = call.join().unwrap().unwrap_err();
        assert!(error.to_string().contains("shut down"), "{error}");
    });
    assert!(matches!(a.recv_request(), Err(Closed::ShutDown)));
    assert!(a.send(b.local_addr(), "more", 0).is_err());
}

#[test]
fn completions_from_before_a_shutdown_can_be_received_after_it() {
    let (client, server) = pair(&patient());
    let to = server.local_addr();
    client.send(to, "x", 5).unwrap();
    // The second call has no reply, however late this thread shuts its endpoint down.
    server.recv_request().unwrap().reply("x").unwrap();
    while client.metrics().protocol.progress.client_responses_done == 0 {
        // The loop must run, and the completion must stay available.
        assert!(client.recv_request_timeout(Duration::from_millis(1)).unwrap().is_none());
    }
    client.send(to, bytes(0, 10), 6).unwrap();
    client.shutdown();
    let first = client.recv_completion().unwrap();
    assert_eq!((first.cookie, first.result.unwrap()), (5, "x".into()));
    let second = client.recv_completion().unwrap();
    assert_eq!(second.cookie, 6);
    assert!(second.result.is_err());
    assert!(client.recv_completion().is_err());
}

#[test]
fn a_call_to_a_closed_port_fails_at_once() {
    let network = LoopbackNetwork::new();
    let client = patient().with_driver(Box::new(network.host())).unwrap();
    let gone = patient().with_driver(Box::new(network.host())).unwrap();
    let address = gone.local_addr();
    drop(gone);
    let error = client.call(address, "hello").unwrap_err();
    assert!(error.to_string().contains("port closed"), "{error}");
    assert_eq!(error.execution(), Execution::NotExecuted);
}

#[test]
fn a_silent_peer_is_given_up() {
    let network = LoopbackNetwork::new();
    let config = Config::builder().timeout_usecs(50_000).build().unwrap();
    let client = patient().config(config).with_driver(Box::new(network.host())).unwrap();
    // A host that receives packets and never responds.
    let silent = network.host();
    let address = apus_driver::Driver::local_addr(&silent);
    let error = client.call(address, "hello").unwrap_err();
    assert!(error.to_string().contains("peer silent"), "{error}");
    assert_eq!(error.execution(), Execution::NotExecuted, "it never asked for a confirmation");
}

/// In the kernel profile ids are unique per host: the owner of a driver sets the first one.
#[test]
fn ids_begin_where_the_builder_says() {
    let network = LoopbackNetwork::new();
    let config = patient_config().profile(Profile::Kernel).build().unwrap();
    let builder = patient().config(config).first_id(1 << 40);
    let client = builder.with_driver(Box::new(network.host())).unwrap();
    let silent = network.host();
    let address = apus_driver::Driver::local_addr(&silent);
    client.send(address, "one", 1).unwrap();
    client.send(address, "two", 2).unwrap();
    let mut ids: Vec<u64> = client.info().iter().map(|info| info.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1 << 40, (1 << 40) + 2]);
}

#[test]
fn the_last_clone_ends_the_endpoint() {
    let (a, b) = pair(&patient());
    let address = a.local_addr();
    let clone = a.clone();
    drop(a);
    let server = crate::echo(clone.clone());
    assert_eq!(b.call(address, "still there?").unwrap(), "still there?");
    clone.shutdown();
    server.join().unwrap();
    drop(clone);
    assert!(b.call(address, "and now?").is_err());
}

#[test]
fn a_reply_arrives_although_its_server_ends() {
    let (client, server) = pair(&patient());
    let address = server.local_addr();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let request = server.recv_request().unwrap();
            request.reply(bytes(7, 300_000)).unwrap();
            assert!(server.drain(Duration::from_secs(60)));
        });
        assert_eq!(client.call(address, "the last words").unwrap(), bytes(7, 300_000));
        // The server waits for the acknowledgment, for which the client's loop must run.
        assert!(client.recv_request_timeout(Duration::from_millis(100)).is_ok());
    });
}

/// Messages that were discarded have not arrived.
#[test]
fn a_drain_does_not_confuse_a_shutdown_with_an_arrival() {
    let (a, b) = pair(&patient());
    assert!(a.drain(Duration::ZERO), "nothing was sent");
    a.send(b.local_addr(), "hello", 0).unwrap();
    a.shutdown();
    assert!(!a.drain(Duration::ZERO), "b has never polled");
    b.shutdown();
    assert!(b.drain(Duration::ZERO), "nothing was sent");
}

/// AMO-5: the application has the request and may have executed it.
#[test]
fn a_shutdown_does_not_promise_that_a_request_in_service_was_not_executed() {
    let (client, server) = pair(&patient());
    let address = server.local_addr();
    std::thread::scope(|scope| {
        let call = scope.spawn(|| client.call(address, "order"));
        let request = server.recv_request().unwrap();
        server.shutdown();
        let error = call.join().unwrap().unwrap_err();
        assert_eq!(error.execution(), Execution::Unknown, "{error}");
        drop(request);
    });
}

#[test]
fn bad_addresses_are_named() {
    let error = Endpoint::bind("no such address").unwrap_err();
    assert!(error.to_string().contains("no such address"), "{error}");
    let taken = Endpoint::bind("127.0.0.1:0").unwrap();
    let error = Endpoint::bind(taken.local_addr()).unwrap_err();
    assert!(error.to_string().contains(&taken.local_addr().to_string()), "{error}");
}

/// A waiter that was passed the poll role is still on the lists of waiters until it runs. A
/// shutdown in that moment notified it a second time (found by `many_callers_share_an_endpoint`).
#[test]
fn shutting_down_at_any_moment() {
    for round in 0..50 {
        let (a, b) = pair(&patient().poll_mode(apus::PollMode::Block));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| while b.recv_request().is_ok_and(|r| r.reply("x").is_ok()) {});
            }
            for _ in 0..3 {
                scope.spawn(|| while a.call(b.local_addr(), "y").is_ok() {});
            }
            for _ in 0..round {
                std::thread::yield_now();
            }
            b.shutdown();
            a.shutdown();
        });
    }
}
