//! The choice between shared memory and network, and its changes.

use crate::ports::free_address;
use crate::{assert_at_rest, bytes, connect, echo, pair};
use apus::{CallOptions, Config, Endpoint, EndpointBuilder, OutgoingCall, Payload, Request};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

#[test]
fn calls_go_through_memory_and_their_server_sees_the_clients_address() {
    let (client, server) = pair(&EndpointBuilder::default());
    let before = [&client, &server].map(|endpoint| endpoint.metrics().engine);
    client.send(server.local_addr(), bytes(0, 300_000), 7).unwrap();
    let request = server.recv_request().unwrap();
    assert_eq!(request.peer_addr(), client.local_addr());
    assert_eq!(*request.payload(), bytes(0, 300_000));
    request.reply(bytes(1, 200_000)).unwrap();
    let end = client.recv_completion().unwrap();
    assert_eq!((end.cookie, end.result.unwrap()), (7, bytes(1, 200_000).into()));
    let after = [&client, &server].map(|endpoint| endpoint.metrics().engine);
    assert_eq!(after[0].local_calls - before[0].local_calls, 1);
    assert_eq!(after[1].local_requests - before[1].local_requests, 1);
    assert_at_rest(&[&client, &server]);
}

#[test]
fn every_address_of_the_host_leads_to_the_same_memory() {
    let addresses = [("127.0.0.1:0", "127.0.0.1"), ("0.0.0.0:0", "127.0.0.1"), ("[::1]:0", "::1")];
    let more = [("[::]:0", "::1"), ("[::]:0", "127.0.0.1"), ("[::]:0", "::ffff:127.0.0.1")];
    for (bind, host) in addresses.into_iter().chain(more) {
        let Ok(server) = Endpoint::bind(bind) else {
            eprintln!("SKIPPED: {bind} cannot be bound");
            continue;
        };
        assert!(server.has_local_path());
        let thread = echo(server.clone());
        let client = Endpoint::client().unwrap();
        let to = SocketAddr::new(host.parse().unwrap(), server.local_addr().port());
        while client.metrics().engine.local_calls == 0 {
            client.call(to, "hello").unwrap_or_else(|error| {
                server.shutdown();
                panic!("{bind} {host}: {error}");
            });
        }
        server.shutdown();
        thread.join().unwrap();
    }
}

/// The path is disabled at the client, which does not connect, or at the server, which cannot be
/// found.
#[test]
fn without_the_memory_path_messages_go_over_the_network() {
    for local in [(true, false), (false, true)] {
        let server = Endpoint::builder().local(local.0).bind("127.0.0.1:0").unwrap();
        let client = Endpoint::builder().local(local.1).client().unwrap();
        assert_eq!((server.has_local_path(), client.has_local_path()), local);
        let thread = echo(server.clone());
        for i in 0..50 {
            assert_eq!(client.call(server.local_addr(), bytes(i, 100)).unwrap(), bytes(i, 100));
        }
        assert_eq!(client.metrics().engine.local_calls, 0);
        assert_eq!(client.metrics().protocol.progress.client_responses_done, 50);
        server.shutdown();
        thread.join().unwrap();
    }
}

/// Messages that are longer than the rings proceed while the applications on both sides compute.
#[test]
fn the_loop_runs_while_no_thread_waits() {
    let (client, server) = pair(&EndpointBuilder::default());
    let before = server.metrics().engine;
    client.send(server.local_addr(), bytes(1, 4_000_000), 0).unwrap();
    while server.metrics().engine.local_requests == before.local_requests {
        std::thread::yield_now();
    }
    // On a busy machine the background poller may have taken the poll role before `before`.
    assert!(server.metrics().engine.keeper_turns > 0, "no thread waited");
    let request = server.try_recv_request().unwrap().unwrap();
    assert_eq!(*request.payload(), bytes(1, 4_000_000));
}

#[test]
fn a_restarted_server_is_found_again() {
    let client = Endpoint::client().unwrap();
    let first = Endpoint::bind(free_address()).unwrap();
    let address = first.local_addr();
    connect(&client, &first);
    drop(first);
    let second = Endpoint::bind(address).unwrap();
    let before = client.metrics().engine.local_calls;
    let thread = echo(second.clone());
    // The first calls may fail with the earlier server.
    let mut failed = 0;
    let options = || CallOptions::new().timeout(Duration::from_secs(60));
    while client.metrics().engine.local_calls < before + 10 {
        failed += u64::from(client.call_with(address, "again", options()).is_err());
        assert!(failed < 10, "calls continue to fail");
    }
    assert_eq!(client.metrics().engine.local_pairs_ended, 1);
    second.shutdown();
    thread.join().unwrap();
}

/// Requests that a server refuses at its shutdown were not executed. For requests that its
/// application has received, execution is unknown.
#[test]
fn a_server_that_is_shut_down_says_what_it_did_not_execute() {
    let (client, server) = pair(&EndpointBuilder::default());
    for cookie in 0..10 {
        client.send(server.local_addr(), "please", cookie).unwrap();
    }
    let received = server.recv_request().unwrap();
    // All have arrived.
    while server.metrics().protocol.live.receive_bytes < 9 * 6 {
        std::thread::yield_now();
    }
    server.shutdown();
    let mut unknown = 0;
    for _ in 0..10 {
        let error = client.recv_completion().unwrap().result.unwrap_err();
        unknown += u32::from(error.execution == apus::Execution::Unknown);
    }
    assert_eq!(unknown, 1, "the one that was received");
    drop(received);
}

/// A wildcard address names this host alone.
#[test]
fn an_address_of_another_host_is_not_searched_for_on_this_host() {
    let server = Endpoint::bind("0.0.0.0:0").unwrap();
    let client = Endpoint::client().unwrap();
    // An address reserved for documentation, which does not respond, with the port of a server on
    // this host.
    let to = SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), server.local_addr().port());
    for _ in 0..3 {
        let options = CallOptions::new().timeout(Duration::from_millis(5));
        let _ = client.call_with(to, "hello?", options);
    }
    assert_eq!(client.metrics().engine.local_calls, 0);
    assert_eq!(server.metrics().engine.local_requests, 0);
}

/// They have left when the methods return: neither side waits afterwards.
#[test]
fn calls_and_replies_that_are_made_together_go_through_memory() {
    assert!((0..1_000).any(|_| all_have_left_undisturbed()), "the background poller always runs");
}

/// Takes messages that have been sent until there are `count`. Returns them, and whether each was
/// there at once: one that a background poller is just reading is not.
fn take<T>(count: usize, mut next: impl FnMut() -> Option<T>) -> (Vec<T>, bool) {
    let (mut all, mut at_once) = (Vec::new(), true);
    while all.len() < count {
        match next() {
            Some(message) => all.push(message),
            None => at_once = false,
        }
    }
    (all, at_once)
}

/// Returns the next request with itself as reply.
fn next_echo(server: &Endpoint) -> Option<(Request, Payload)> {
    let request = server.try_recv_request().unwrap()?;
    let payload = request.payload().clone().into();
    Some((request, payload))
}

/// Makes calls and replies together. Returns `false` if one of them was not there at once.
fn all_have_left_undisturbed() -> bool {
    const COUNT: usize = 100;
    let (client, server) = pair(&EndpointBuilder::default());
    let before = [&client, &server].map(|endpoint| endpoint.metrics().engine);
    let mut calls = (0..COUNT as u64).map(|cookie| call(&server, cookie)).collect();
    client.send_many(&mut calls, CallOptions::new()).unwrap();
    let (mut replies, arrived_at_once) = take(COUNT, || next_echo(&server));
    server.reply_many(&mut replies).unwrap();
    let (ends, ended_at_once) = take(COUNT, || client.try_recv_completion().unwrap());
    for end in ends {
        assert_eq!(end.result.unwrap(), bytes(end.cookie as usize, 50));
    }
    assert!(server.try_recv_request().unwrap().is_none(), "that was all");
    assert!(client.try_recv_completion().unwrap().is_none(), "that was all");
    let after = [&client, &server].map(|endpoint| endpoint.metrics().engine);
    assert_eq!(after[0].local_calls - before[0].local_calls, COUNT as u64);
    assert_eq!(after[1].local_requests - before[1].local_requests, COUNT as u64);
    arrived_at_once && ended_at_once
}

/// A record in the ring is visible: the test need not wait.
#[test]
fn a_cork_does_not_hold_back_what_is_sent_together_through_memory() {
    assert!((0..1_000).any(|_| passes_the_cork_undisturbed()), "the background poller always runs");
}

/// Makes calls and replies together under corks. Returns `false` if one of them was not there at
/// once.
fn passes_the_cork_undisturbed() -> bool {
    let (client, server) = pair(&EndpointBuilder::default());
    let _corks = [client.cork(), server.cork()];
    client.send(server.local_addr(), bytes(9, 50), 9).unwrap();
    let mut calls = (0..3).map(|cookie| call(&server, cookie)).collect();
    client.send_many(&mut calls, CallOptions::new()).unwrap();
    let (mut replies, arrived_at_once) = take(4, || next_echo(&server));
    let texts: Vec<_> = replies.iter().map(|(request, _)| request.payload().clone()).collect();
    assert_eq!(texts, [9, 0, 1, 2].map(|cookie| bytes(cookie, 50)), "what was held back is first");
    let (request, payload) = replies.remove(0);
    request.reply(payload).unwrap();
    server.reply_many(&mut replies).unwrap();
    let next = || client.try_recv_completion().unwrap().map(|end| end.cookie);
    let (cookies, ended_at_once) = take(4, next);
    assert_eq!(cookies, [9, 0, 1, 2]);
    assert_eq!(next(), None);
    arrived_at_once && ended_at_once
}

/// Those to each server in turn, so that batches of pairs and messages over the network alternate.
#[test]
fn messages_that_are_made_together_find_their_peers_on_both_paths() {
    let bind = |local| EndpointBuilder::default().local(local).bind("127.0.0.1:0").unwrap();
    let client = bind(true);
    let servers = [bind(true), bind(false), bind(true)];
    let (mut calls, mut threads) = (Vec::new(), Vec::new());
    for (cookie, server) in (0..200).zip([0, 0, 1, 2, 1, 1, 2, 2, 0, 1].into_iter().cycle()) {
        calls.push(call(&servers[server], cookie));
    }
    for server in servers.clone() {
        threads.push(std::thread::spawn(move || {
            let mut requests = Vec::new();
            while server.recv_requests(&mut requests, 64).is_ok() {
                let back = |request: Request| {
                    let payload = request.payload().clone().into();
                    (request, payload)
                };
                server.reply_many(&mut requests.drain(..).map(back).collect()).unwrap();
            }
        }));
    }
    let local_calls = || client.metrics().engine.local_calls;
    for server in [0, 2] {
        let before = local_calls();
        while local_calls() == before {
            client.call(servers[server].local_addr(), "are you there?").unwrap();
        }
    }
    let before = local_calls();
    client.send_many(&mut calls, CallOptions::new()).unwrap();
    assert!(calls.is_empty());
    let mut cookies = Vec::new();
    while cookies.len() < 200 {
        let end = client.recv_completion().unwrap();
        assert_eq!(end.result.unwrap(), bytes(end.cookie as usize, 50));
        cookies.push(end.cookie);
    }
    cookies.sort_unstable();
    assert_eq!(cookies, (0..200).collect::<Vec<_>>());
    assert_eq!(local_calls() - before, 120, "six of ten");
    servers.iter().for_each(|server| server.shutdown());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Before and after the end of the pair has been received. The server has read none of the calls.
#[test]
fn calls_that_are_made_together_survive_their_server() {
    for knows in [false, true] {
        let client = Endpoint::client().unwrap();
        let first = Endpoint::bind(free_address()).unwrap();
        let address = first.local_addr();
        connect(&client, &first);
        drop(first);
        while knows && client.metrics().engine.local_pairs_ended == 0 {
            drop(client.try_recv_completion().unwrap());
        }
        let second = Endpoint::bind(address).unwrap();
        let mut calls = (0..100).map(|cookie| call(&second, cookie)).collect();
        // The first server is reachable over the network, too.
        client.send_many(&mut calls, CallOptions::new().idempotent(true)).unwrap();
        let thread = echo(second.clone());
        for _ in 0..100 {
            let end = client.recv_completion().unwrap();
            assert_eq!(end.result.unwrap(), bytes(end.cookie as usize, 50));
        }
        second.shutdown();
        thread.join().unwrap();
    }
}

/// Requests count until they are answered.
#[test]
fn without_room_calls_that_are_made_together_are_left_or_wait() {
    const COUNT: u64 = 1_000;
    let config = Config::builder().max_message(10_000).max_send_bytes_per_peer(20_000);
    let config = config.max_send_bytes(20_000).build().unwrap();
    let (client, server) = pair(&EndpointBuilder::default().config(config));
    let mut calls: Vec<_> = (0..COUNT).map(|cookie| call(&server, cookie)).collect();
    let error = client.send_many(&mut calls, CallOptions::new().no_wait(true)).unwrap_err();
    assert!(error.is_back_pressure(), "{error}");
    assert_eq!((calls.len() as u64, calls[0].cookie), (COUNT - 400, 400), "20,000 bytes");
    let thread = echo(server.clone());
    client.send_many(&mut calls, CallOptions::new()).unwrap();
    for _ in 0..COUNT {
        let end = client.recv_completion().unwrap();
        assert_eq!(end.result.unwrap(), bytes(end.cookie as usize, 50));
    }
    server.shutdown();
    thread.join().unwrap();
}

/// A call to `server` with 50 bytes.
fn call(server: &Endpoint, cookie: u64) -> OutgoingCall {
    let request = bytes(cookie as usize, 50).into();
    OutgoingCall { to: server.local_addr(), request, cookie }
}

/// Neither side waits, so messages under the cork do not leave.
#[test]
fn a_cork_holds_back_what_goes_through_memory() {
    assert!((0..1_000).any(|_| calls_are_held_back()), "the cork holds nothing back");
}

/// Makes calls under a cork. Returns whether it held them back: the client's background poller
/// sends what a cork holds, and it runs if the system has stopped this thread.
fn calls_are_held_back() -> bool {
    let (client, server) = pair(&EndpointBuilder::default());
    let requests = || server.metrics().engine.local_requests;
    let turns = || client.metrics().engine.keeper_turns;
    let before = (requests(), turns());
    let cork = client.cork();
    for cookie in 0..31 {
        client.send(server.local_addr(), bytes(0, 100), cookie).unwrap();
    }
    let found = server.try_recv_request().unwrap();
    if found.is_some() || requests() != before.0 {
        assert_ne!(turns(), before.1, "they left without the background poller");
        return false;
    }
    client.send(server.local_addr(), bytes(0, 100), 31).unwrap();
    let mut got = Vec::new();
    while got.len() < 32 {
        server.recv_requests(&mut got, 32).unwrap();
    }
    // A cancelled call does not leave.
    let call = client.send(server.local_addr(), bytes(0, 100), 32).unwrap();
    assert!(client.cancel(call));
    client.send(server.local_addr(), bytes(1, 10), 33).unwrap();
    drop(cork);
    let next = server.recv_request().unwrap();
    if *next.payload() != bytes(1, 10) {
        assert_ne!(turns(), before.1, "it left without the background poller");
        return false;
    }
    drop(next);
    drop(got);
    for _ in 0..33 {
        client.recv_completion().unwrap().result.unwrap_err();
    }
    assert_at_rest(&[&client, &server]);
    true
}
