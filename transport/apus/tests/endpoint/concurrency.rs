//! Many threads that share an endpoint.

use crate::fixtures::patient;
use crate::{ShutDown, assert_at_rest, bytes, echo_pair, pair};
use apus::{Endpoint, PollMode};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn many_callers_share_an_endpoint() {
    for poll in [PollMode::Block, PollMode::default()] {
        let (client, server, echo) = echo_pair(&patient().poll_mode(poll));
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let client = &client;
                scope.spawn(move || {
                    for i in 0..100 {
                        let request = bytes(thread * 100 + i, 1 + (thread + i) * 37 % 5_000);
                        assert_eq!(client.call(server, request.clone()).unwrap(), request);
                    }
                });
            }
        });
        assert_at_rest(&[&client, &echo.endpoint]);
    }
}

#[test]
fn many_receivers_serve_one_endpoint() {
    let (client, server) = pair(&patient().poll_mode(PollMode::Block));
    let address = server.local_addr();
    let served = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let _end = ShutDown(&[&server]);
        for _ in 0..4 {
            scope.spawn(|| {
                while let Ok(request) = server.recv_request() {
                    served.fetch_add(1, Ordering::Relaxed);
                    let payload = request.payload().clone();
                    let _ = request.reply(payload);
                }
            });
        }
        for cookie in 0..1_000 {
            client.send(address, bytes(cookie, 100), cookie as u64).unwrap();
        }
        for _ in 0..1_000 {
            let end = client.recv_completion().unwrap();
            assert_eq!(end.result.unwrap(), bytes(end.cookie as usize, 100));
        }
        assert_at_rest(&[&client, &server]);
    });
    assert_eq!(served.load(Ordering::Relaxed), 1_000, "each request is received once");
}

/// Callers, receivers of completions and receivers of requests wait at the same time and pass the
/// poll role around.
#[test]
fn all_kinds_of_waiting_at_once() {
    let (a, b) = pair(&patient().poll_mode(PollMode::Block));
    let serve = |endpoint: &Endpoint| {
        while let Ok(request) = endpoint.recv_request() {
            let payload = request.payload().clone();
            let _ = request.reply(payload);
        }
    };
    let work = |here: &Endpoint, there: &Endpoint| {
        for i in 0..200 {
            let to = there.local_addr();
            here.send(to, bytes(i, 64), i as u64).unwrap();
            assert_eq!(here.call(to, bytes(i, 2_000)).unwrap(), bytes(i, 2_000));
            here.recv_completion().unwrap().result.unwrap();
        }
    };
    std::thread::scope(|scope| {
        let _end = ShutDown(&[&a, &b]);
        for endpoint in [&a, &a, &b, &b] {
            scope.spawn(move || serve(endpoint));
        }
        let workers = [scope.spawn(|| work(&a, &b)), scope.spawn(|| work(&b, &a))];
        for worker in workers {
            worker.join().unwrap();
        }
        assert_at_rest(&[&a, &b]);
    });
}

#[test]
fn a_waiting_thread_lets_corked_messages_leave() {
    let (client, server, _echo) = echo_pair(&patient());
    let _cork = client.cork();
    client.send(server, bytes(0, 100), 1).unwrap();
    assert_eq!(client.recv_completion().unwrap().result.unwrap(), bytes(0, 100));
    assert_eq!(client.call(server, bytes(1, 100)).unwrap(), bytes(1, 100));
}
