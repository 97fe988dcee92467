//! Engines and poll modes, and their cost in handoffs.

use crate::fixtures::patient;
use crate::{ShutDown, assert_at_rest, bytes, echo_pair, pair};
use apus::{Endpoint, Engine, PollMode};
use std::net::SocketAddr;
use std::time::Duration;

#[test]
fn every_engine_works_with_every_poll_mode() {
    for poll in [PollMode::Spin, PollMode::default(), PollMode::Block] {
        for engine in [Engine::Waiters, Engine::Dedicated { cpu: None }] {
            let builder = patient().poll_mode(poll).engine(engine);
            let (client, server, echo) = echo_pair(&builder);
            for i in 0..20 {
                assert_eq!(client.call(server, bytes(i, 3_000)).unwrap(), bytes(i, 3_000));
            }
            assert_at_rest(&[&client, &echo.endpoint]);
        }
    }
}

/// If no packet arrives and no timer is set, only the deadline ends a wait.
#[test]
fn a_deadline_ends_every_way_to_wait() {
    for poll in [PollMode::Spin, PollMode::default(), PollMode::Block] {
        for engine in [Engine::Waiters, Engine::Dedicated { cpu: None }] {
            let (endpoint, _other) = pair(&patient().poll_mode(poll).engine(engine));
            assert!(endpoint.try_recv_completion().unwrap().is_none());
            assert!(endpoint.try_recv_request().unwrap().is_none());
            assert!(endpoint.recv_completion_timeout(Duration::from_millis(3)).unwrap().is_none());
            assert!(endpoint.recv_request_timeout(Duration::from_millis(3)).unwrap().is_none());
        }
    }
}

/// A waiting thread polls the network itself: its message needs no handoff and no wake-up.
#[test]
fn a_receiver_that_polls_itself_needs_no_handoff() {
    let (client, server, echo) = echo_pair(&patient().poll_mode(PollMode::Spin));
    let metrics = || [&client, &echo.endpoint].map(|endpoint| endpoint.metrics().engine);
    let handoffs = || metrics().map(|metrics| metrics.handoffs);
    let before = metrics().map(|metrics| metrics.messages);
    // While the system stops a thread for milliseconds, the background poller runs the loop and
    // hands off what arrives. The endpoint's fault would be that most calls need that.
    let (mut calls, mut own) = (0, 0);
    while own < 500 {
        assert!(calls < 50_000, "only {own} calls came without a handoff: {:?}", metrics());
        let before = handoffs();
        client.call(server, bytes(calls, 64)).unwrap();
        calls += 1;
        own += u32::from(handoffs() == before);
    }
    for (metrics, before) in metrics().into_iter().zip(before) {
        assert_eq!(metrics.messages - before, calls as u64);
        assert_eq!(metrics.spurious_wakeups, 0);
        if metrics.keeper_turns == 0 {
            assert_eq!(metrics.handoffs, 0, "{metrics:?}");
        }
    }
}

/// The background poller watches an idle endpoint and leaves the poll role to the thread that
/// calls.
#[test]
fn a_call_of_an_idle_endpoint_waits_for_no_other_thread() {
    const WANTED: u32 = 20;
    let idle_pair = || echo_pair(&patient().poll_mode(PollMode::Spin));
    let (mut client, mut server, mut _echo) = idle_pair();
    let mut undisturbed = 0;
    // Under load, most calls may be disturbed: the endpoint's fault would be that all are.
    for i in 0..100 * WANTED {
        if call_while_poller_rests(&client, server, &bytes(i as usize, 64)) {
            undisturbed += 1;
            if undisturbed == WANTED {
                return;
            }
        } else {
            // A turn of its poller may have ended without a sleep, and be mistaken for one that
            // continues.
            (client, server, _echo) = idle_pair();
        }
    }
    panic!(
        "{undisturbed} of {} calls were undisturbed: {:?}",
        100 * WANTED,
        client.metrics().engine
    );
}

/// Calls, and waits until the background poller sleeps. Returns `false`, and has checked less, if
/// the poller ran the loop during the call. It is right to if the system stops the calling thread
/// for milliseconds before that has the poll role.
fn call_while_poller_rests(client: &Endpoint, server: SocketAddr, content: &[u8]) -> bool {
    let before = client.metrics().engine;
    assert_eq!(client.call(server, content.to_vec()).unwrap(), content);
    let ended = client.metrics().engine;
    // The thread that called does not sleep, so this is the background poller.
    while client.metrics().engine.sleeps == before.sleeps {
        std::thread::yield_now();
    }
    let after = client.metrics().engine;
    // A turn ends in a sleep, unless another thread wants the poll role: this one had not ended.
    let ran_before = before.keeper_turns != before.sleeps;
    let ran_during = ended.keeper_turns != before.keeper_turns;
    // The poller runs the loop once when the call has ended.
    if ran_before || ran_during || after.keeper_turns - before.keeper_turns > 1 {
        return false;
    }
    // A poller that sleeps with the poll role would be kicked in each of the calls.
    assert_eq!(after.handoffs, before.handoffs, "{after:?}");
    assert_eq!(after.turn_passes, before.turn_passes, "{after:?}");
    assert_eq!(after.kicks, before.kicks, "{after:?}");
    true
}

/// A thread that calls `try_recv` repeatedly polls as well as one that waits, even if the
/// background poller had the poll role at its start.
#[test]
fn a_thread_that_never_waits_takes_the_poll_role_from_the_background_poller() {
    let (client, server, _echo) = echo_pair(&patient());
    while client.metrics().engine.keeper_turns == 0 {
        std::thread::yield_now();
    }
    // On a busy machine the background poller may have the poll role for a while, but not forever.
    let (mut own, mut handoffs) = (0, 0);
    for cookie in 0..100_000 {
        client.send(server, "hello", cookie).unwrap();
        while client.try_recv_completion().unwrap().is_none() {
            std::thread::yield_now();
        }
        let before = std::mem::replace(&mut handoffs, client.metrics().engine.handoffs);
        own += u32::from(handoffs == before);
        if own == 500 {
            return;
        }
    }
    panic!("the background poller handed off {handoffs} messages, and only {own} came without it");
}

/// docs/reference/papers.md, *Double handoff*: exactly one handoff per message, whatever the number
/// of receivers.
#[test]
fn a_dedicated_engine_hands_each_message_off_once() {
    for receivers in 1..=4 {
        let builder = patient().poll_mode(PollMode::Block);
        let (client, server) = {
            let network = apus_driver::loopback::LoopbackNetwork::new();
            let client = builder.clone().with_driver(Box::new(network.host())).unwrap();
            let engine = Engine::Dedicated { cpu: None };
            let server = builder.engine(engine).with_driver(Box::new(network.host())).unwrap();
            (client, server)
        };
        std::thread::scope(|scope| {
            let _end = ShutDown(&[&server]);
            for _ in 0..receivers {
                scope.spawn(|| {
                    while let Ok(request) = server.recv_request() {
                        let payload = request.payload().clone();
                        let _ = request.reply(payload);
                    }
                });
            }
            for i in 0..500 {
                client.call(server.local_addr(), bytes(i, 64)).unwrap();
            }
            let metrics = server.metrics().engine;
            assert_eq!((metrics.messages, metrics.handoffs), (500, 500), "{receivers} receivers");
            assert_eq!(metrics.spurious_wakeups, 0);
        });
    }
}

#[test]
fn pinning_to_a_cpu_that_does_not_exist_is_an_error() {
    let engine = Engine::Dedicated { cpu: Some(1_000_000) };
    let error = Endpoint::builder().engine(engine).bind("127.0.0.1:0").unwrap_err();
    assert!(error.to_string().contains("CPU 1000000"), "{error}");
}

#[test]
fn udp_carries_ipv4_ipv6_and_both() {
    let ways = [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1"), ("[::]:0", "127.0.0.1")];
    for (bind, address) in ways {
        let server = match Endpoint::bind(bind) {
            Ok(server) => server,
            Err(error) => {
                eprintln!("SKIPPED: {bind}: {error}");
                continue;
            }
        };
        let to = SocketAddr::new(address.parse().unwrap(), server.local_addr().port());
        let thread = crate::echo(server.clone());
        let client = Endpoint::client().unwrap();
        for (i, size) in [1, 100, 5_000, 2_000_000].into_iter().enumerate() {
            assert_eq!(client.call(to, bytes(i, size)).unwrap(), bytes(i, size), "{bind}");
        }
        server.shutdown();
        thread.join().unwrap();
    }
}
