//! Endpoints with several shards, over UDP on the loopback interface.

use crate::fixtures::patient;
use crate::ports::free_address;
use crate::{ShutDown, assert_at_rest, bytes};
use apus::{
    Arrival, CallOptions, Closed, Endpoint, EndpointBuilder, Engine, FailureKind, PollMode, Shards,
};
use std::collections::{BTreeSet, HashSet};
use std::sync::{Barrier, Mutex};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// Number of shards of most endpoints here.
const SHARDS: usize = 4;

fn builder() -> EndpointBuilder {
    patient().shards(SHARDS).local(false).poll_mode(PollMode::Block)
}

fn server(builder: &EndpointBuilder) -> Endpoint {
    builder.clone().bind("127.0.0.1:0").unwrap()
}

fn client() -> Endpoint {
    patient().local(false).poll_mode(PollMode::Block).client().unwrap()
}

/// Starts `threads` threads that echo until `server` is closed. Each returns how many requests it
/// has served.
fn echo<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    server: &'env Endpoint,
    threads: usize,
) -> Vec<ScopedJoinHandle<'scope, u64>> {
    let serve = || {
        let mut served = 0;
        while let Ok(mut request) = server.recv_request() {
            let payload = request.take_payload();
            let _ = request.reply(payload);
            served += 1;
        }
        served
    };
    (0..threads).map(|_| scope.spawn(serve)).collect()
}

/// Requests that each shard of `endpoint` has handed to the application.
fn requests_by_shard(endpoint: &Endpoint) -> Vec<u64> {
    let shards = endpoint.shard_metrics();
    shards.iter().map(|metrics| metrics.protocol.progress.server_requests_done).collect()
}

#[test]
fn each_path_of_a_client_leads_to_a_shard_of_its_own() {
    // Another process may have a port that follows the client's first one: then the next client
    // counts.
    loop {
        let (server, client) = (server(&builder()), builder().client().unwrap());
        let ports = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            let _end = ShutDown(&[&server]);
            scope.spawn(|| {
                while let Ok(request) = server.recv_request() {
                    ports.lock().unwrap().insert(request.peer_addr().port());
                    let _ = request.reply("x");
                }
            });
            thread::scope(|calls| {
                for _ in 0..SHARDS {
                    calls.spawn(|| client.call(server.local_addr(), "x").unwrap());
                }
            });
        });
        let ports = ports.into_inner().unwrap();
        assert_eq!(ports.len(), SHARDS, "each thread has a path of its own");
        let (first, last) = (ports.first().unwrap(), ports.last().unwrap());
        if usize::from(last - first) == SHARDS - 1 {
            assert_eq!(requests_by_shard(&server), [1; SHARDS]);
            return;
        }
    }
}

#[test]
fn each_client_belongs_to_one_shard_and_each_shard_has_clients() {
    const CLIENTS: usize = 64;
    const CALLS: usize = 5;
    let server = server(&builder());
    assert_eq!((server.shards(), client().shards()), (SHARDS, 1));
    thread::scope(|scope| {
        let _end = ShutDown(&[&server]);
        echo(scope, &server, SHARDS);
        for seed in 0..CLIENTS {
            let client = client();
            let before = requests_by_shard(&server);
            for call in 0..CALLS {
                let request = bytes(seed + call, 100 + 4_000 * call);
                assert_eq!(client.call(server.local_addr(), request.clone()).unwrap(), request);
            }
            let after = requests_by_shard(&server);
            let mut served: Vec<_> =
                after.iter().zip(&before).map(|(now, then)| now - then).collect();
            served.sort_unstable();
            assert_eq!(served, [0, 0, 0, CALLS as u64], "one shard serves a client");
            assert_at_rest(&[&client]);
        }
        let served = requests_by_shard(&server);
        assert!(served.iter().all(|served| *served > 0), "{served:?}");
        assert_at_rest(&[&server]);
    });
}

#[test]
fn one_thread_receives_the_requests_of_all_shards() {
    for engine in [Engine::Waiters, Engine::Dedicated { cpu: None }] {
        let server = server(&builder().engine(engine));
        thread::scope(|scope| {
            let _end = ShutDown(&[&server]);
            echo(scope, &server, 1);
            thread::scope(|scope| {
                for seed in 0..32 {
                    let to = server.local_addr();
                    scope.spawn(move || {
                        let client = client();
                        for call in 0..10 {
                            let request = bytes(seed, 10 + call);
                            assert_eq!(client.call(to, request.clone()).unwrap(), request);
                        }
                    });
                }
            });
            let engine = server.metrics().engine;
            assert!(engine.steals > 0, "{engine:?}");
            assert_eq!(requests_by_shard(&server).iter().sum::<u64>(), 320);
            assert_at_rest(&[&server]);
        });
    }
}

/// Both requests are at one shard, and each waits for the other one to be received, too.
#[test]
fn a_request_of_a_busy_shard_is_stolen_by_an_idle_thread() {
    for poll in [PollMode::Block, PollMode::default()] {
        let server = server(&builder().shards(2).poll_mode(poll));
        let both = Barrier::new(2);
        thread::scope(|scope| {
            let _end = ShutDown(&[&server]);
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Ok(request) = server.recv_request() {
                        both.wait();
                        let _ = request.reply("done");
                    }
                });
            }
            let client = client();
            for round in 0..20 {
                client.send(server.local_addr(), "one", round).unwrap();
                client.send(server.local_addr(), "two", round).unwrap();
                for _ in 0..2 {
                    assert_eq!(client.recv_completion().unwrap().result.unwrap(), "done");
                }
            }
            assert_eq!(server.metrics().engine.steals, 20);
            assert_at_rest(&[&client, &server]);
        });
    }
}

#[test]
fn a_client_has_a_path_for_each_shard() {
    let server = server(&builder());
    let client = builder().client().unwrap();
    let paths = Mutex::new(HashSet::new());
    thread::scope(|scope| {
        let _end = ShutDown(&[&server]);
        for _ in 0..SHARDS {
            scope.spawn(|| {
                while let Ok(request) = server.recv_request() {
                    paths.lock().unwrap().insert(request.peer_addr());
                    let _ = request.reply("");
                }
            });
        }
        thread::scope(|scope| {
            for _ in 0..SHARDS {
                scope.spawn(|| {
                    for _ in 0..20 {
                        client.call(server.local_addr(), "x").unwrap();
                    }
                });
            }
        });
        assert_at_rest(&[&client, &server]);
    });
    let paths = paths.into_inner().unwrap();
    assert_eq!(paths.len(), SHARDS, "each thread has one of its own");
    assert!(paths.iter().any(|path| path.port() == client.local_addr().port()));
    assert_eq!(client.shard_metrics().len(), SHARDS);
}

/// The thread that receives the completions differs from the one that has sent the calls.
#[test]
fn completions_are_received_by_any_thread() {
    const CALLS: u64 = 200;
    let (server, client) = (server(&builder()), builder().client().unwrap());
    thread::scope(|scope| {
        let _end = ShutDown(&[&server, &client]);
        echo(scope, &server, SHARDS);
        let senders = 2 * SHARDS as u64;
        for sender in 0..senders {
            let (client, to) = (&client, server.local_addr());
            scope.spawn(move || {
                for call in 0..CALLS {
                    client.send(to, bytes(call as usize, 50), sender * CALLS + call).unwrap();
                }
            });
        }
        let mut cookies: Vec<_> = (0..senders * CALLS)
            .map(|_| {
                let completion = client.recv_completion().unwrap();
                let call = completion.cookie % CALLS;
                assert_eq!(completion.result.unwrap(), bytes(call as usize, 50));
                completion.cookie
            })
            .collect();
        cookies.sort_unstable();
        assert!(cookies.into_iter().eq(0..senders * CALLS), "each once");
        assert_at_rest(&[&client, &server]);
    });
}

#[test]
fn endpoints_that_serve_with_shards_call_each_other() {
    let (a, b) = (server(&builder()), server(&builder()));
    thread::scope(|scope| {
        let _end = ShutDown(&[&a, &b]);
        echo(scope, &a, SHARDS);
        echo(scope, &b, SHARDS);
        assert_eq!(a.shard_metrics().len(), SHARDS, "no call has been made");
        thread::scope(|scope| {
            for seed in 0..2 * SHARDS {
                let (here, there) = if seed % 2 == 0 { (&a, &b) } else { (&b, &a) };
                scope.spawn(move || {
                    for call in 0..20 {
                        let request = bytes(seed, 1 + 700 * call);
                        let response = here.call(there.local_addr(), request.clone()).unwrap();
                        assert_eq!(response, request);
                    }
                });
            }
        });
        assert_eq!(a.shard_metrics().len(), 2 * SHARDS);
        assert_at_rest(&[&a, &b]);
    });
}

#[test]
fn a_call_is_cancelled_at_its_shard() {
    let (server, client) = (server(&builder()), builder().client().unwrap());
    let calls: Vec<_> = thread::scope(|scope| {
        let send = || client.send(server.local_addr(), "never answered", 0).unwrap();
        let senders: Vec<_> = (0..SHARDS).map(|_| scope.spawn(send)).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    for call in &calls {
        assert!(client.cancel(*call), "it is outstanding");
        assert!(!client.cancel(*call), "it is cancelled");
    }
    assert_eq!(client.metrics().queues.calls, 0);
}

#[test]
fn shutdown_reaches_all_threads_and_all_calls() {
    let (server, client) = (server(&builder()), builder().client().unwrap());
    thread::scope(|scope| {
        let receivers = echo(scope, &server, 0);
        assert!(receivers.is_empty());
        let waiting: Vec<_> = (0..2 * SHARDS)
            .map(|_| {
                scope.spawn(|| {
                    let mut unanswered = Vec::new();
                    while let Ok(request) = server.recv_request() {
                        unanswered.push(request);
                    }
                    unanswered.len()
                })
            })
            .collect();
        let calls: Vec<_> = (0..SHARDS)
            .map(|_| {
                let (client, to) = (&client, server.local_addr());
                scope.spawn(move || client.call_with(to, "x", CallOptions::new()))
            })
            .collect();
        while server.metrics().engine.messages < SHARDS as u64 {
            thread::yield_now();
        }
        server.shutdown();
        let unanswered: usize = waiting.into_iter().map(|thread| thread.join().unwrap()).sum();
        assert_eq!(unanswered, SHARDS);
        for call in calls {
            let error = call.join().unwrap().unwrap_err();
            let apus::CallError::Failed(failed) = &error else { panic!("{error}") };
            assert!(matches!(failed.kind, FailureKind::Refused(_)), "{error}");
        }
    });
    assert!(matches!(server.recv_request(), Err(Closed::ShutDown)));
    client.shutdown();
    assert!(matches!(client.recv_completion(), Err(Closed::ShutDown)));
}

#[test]
fn completions_of_all_shards_can_be_received_after_the_end() {
    let client = builder().client().unwrap();
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    thread::scope(|scope| {
        for cookie in 0..2 * SHARDS as u64 {
            let client = &client;
            scope.spawn(move || client.send(to, "x", cookie).unwrap());
        }
    });
    client.shutdown();
    let mut ended = 0;
    while client.recv_completion().is_ok() {
        ended += 1;
    }
    assert_eq!(ended, 2 * SHARDS);
}

#[test]
fn a_server_with_shards_is_restarted_at_its_port() {
    let options = CallOptions::new().idempotent(true);
    let first = builder().bind(free_address()).unwrap();
    let address = first.local_addr();
    let occupied = builder().bind(address).unwrap_err().to_string();
    assert!(occupied.starts_with(&format!("bind {address}: ")), "{occupied}");
    let clients: Vec<_> = (0..8).map(|_| client()).collect();
    let call_all = |server: &Endpoint| {
        thread::scope(|scope| {
            let _end = ShutDown(&[server]);
            echo(scope, server, 2);
            for client in &clients {
                assert_eq!(client.call_with(address, "again", options).unwrap(), "again");
            }
        });
    };
    call_all(&first);
    drop(first);
    call_all(&builder().bind(address).unwrap());
}

#[test]
fn peers_of_this_host_use_shared_memory() {
    let builder = builder().local(true);
    let (server, client) = (server(&builder), builder.clone().client().unwrap());
    assert!(server.has_local_path() && client.has_local_path());
    thread::scope(|scope| {
        let _end = ShutDown(&[&server]);
        echo(scope, &server, SHARDS);
        thread::scope(|scope| {
            for seed in 0..SHARDS {
                let (client, to) = (&client, server.local_addr());
                scope.spawn(move || {
                    for call in 0..200 {
                        let request = bytes(seed, 1 + 100 * call);
                        assert_eq!(client.call(to, request.clone()).unwrap(), request);
                    }
                });
            }
        });
        // Calls go over the network until the two are connected.
        while client.metrics().engine.local_calls == 0 {
            client.call(server.local_addr(), "x").unwrap();
        }
        assert_at_rest(&[&client, &server]);
    });
}

#[test]
fn one_thread_owns_all_arrivals() {
    let (a, b) = (server(&builder()), server(&builder()));
    thread::scope(|scope| {
        let _end = ShutDown(&[&b]);
        echo(scope, &b, SHARDS);
        for cookie in 0..10 {
            a.send(b.local_addr(), "out", cookie).unwrap();
        }
        let callers: Vec<_> = (0..10).map(|_| client()).collect();
        for caller in &callers {
            caller.send(a.local_addr(), "in", 0).unwrap();
        }
        let (mut requests, mut completions) = (0, 0);
        while (requests, completions) != (10, 10) {
            match a.recv_arrival(&[], Duration::MAX).unwrap() {
                Some(Arrival::Request(request)) => {
                    request.reply("").unwrap();
                    requests += 1;
                }
                Some(Arrival::Completion(completion)) => {
                    assert_eq!(completion.result.unwrap(), "out");
                    completions += 1;
                }
                None => panic!("no companion, no time limit"),
            }
        }
    });
}

#[test]
fn requests_are_found_without_waiting_at_whatever_shard() {
    let server = server(&builder());
    let clients: Vec<_> = (0..16).map(|_| client()).collect();
    for client in &clients {
        client.send(server.local_addr(), "x", 0).unwrap();
    }
    let mut received = 0;
    while received < clients.len() {
        if let Some(request) = server.try_recv_request().unwrap() {
            request.reply("").unwrap();
            received += 1;
        }
    }
}

#[test]
fn drivers_of_the_application_have_one_shard() {
    let network = apus_driver::loopback::LoopbackNetwork::new();
    let endpoint = builder().shards(Shards::Auto).with_driver(Box::new(network.host())).unwrap();
    assert_eq!((endpoint.shards(), endpoint.shard_metrics().len()), (1, 1));
}
