//! Both kinds of endpoint behave the same, and descriptors announce available messages.

use apus::{Bytes, CallOptions, Completion, Execution, Payload};
use apus_bindings::{Endpoint, EndpointOptions, Failure, Patience, Request, Status};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::thread;
use std::time::Duration;

/// Ends a test that hangs.
const WATCHDOG: Duration = Duration::from_secs(60);

const NOW: Duration = Duration::ZERO;

fn options(descriptors: bool) -> EndpointOptions {
    EndpointOptions::parse("poll = 'hybrid=20'", descriptors).unwrap()
}

/// A server and a client, and the server's address.
fn pair(descriptors: bool) -> (Endpoint, Endpoint, SocketAddr) {
    let server = Endpoint::open(Some("127.0.0.1:0"), options(descriptors)).unwrap();
    let client = Endpoint::open(None, options(descriptors)).unwrap();
    let to = server.handle().local_addr();
    (server, client, to)
}

fn requests(server: &Endpoint, limit: usize) -> Vec<Request> {
    let mut requests = Vec::new();
    server.recv_requests(&mut requests, limit, Patience::up_to(Some(WATCHDOG))).unwrap();
    requests
}

fn completions(client: &Endpoint, limit: usize) -> Vec<Completion> {
    let mut completions = Vec::new();
    client.recv_completions(&mut completions, limit, Patience::up_to(Some(WATCHDOG))).unwrap();
    completions
}

fn is_readable(descriptor: BorrowedFd<'_>, wait: Duration) -> bool {
    let mut fds = [PollFd::new(&descriptor, PollFlags::IN)];
    let time = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
    poll(&mut fds, Some(&time)).unwrap() == 1
}

#[test]
fn a_call_gets_its_response() {
    for descriptors in [false, true] {
        let (server, client, to) = pair(descriptors);
        thread::scope(|scope| {
            scope.spawn(|| {
                for mut request in requests(&server, 1) {
                    assert_eq!(request.peer_addr().port(), client.handle().local_addr().port());
                    let shout = request.payload().to_ascii_uppercase();
                    request.reply(shout.into(), None).unwrap();
                }
            });
            let response = client.call(to, "hello".into(), CallOptions::new(), None);
            assert_eq!(response.unwrap(), "HELLO");
        });
    }
}

#[test]
fn many_calls_complete_in_batches() {
    const CALLS: u64 = 500;
    for descriptors in [false, true] {
        let (server, client, to) = pair(descriptors);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut served = 0;
                while served < CALLS {
                    for mut request in requests(&server, 64) {
                        let payload = request.payload().clone();
                        request.reply(payload.into(), None).unwrap();
                        served += 1;
                    }
                }
            });
            for cookie in 0..CALLS {
                let payload = Bytes::copy_from_slice(&cookie.to_ne_bytes());
                client.send(to, payload.into(), cookie, CallOptions::new(), None).unwrap();
            }
            let mut seen = Vec::new();
            while (seen.len() as u64) < CALLS {
                for completion in completions(&client, 64) {
                    assert_eq!(completion.result.unwrap()[..], completion.cookie.to_ne_bytes());
                    seen.push(completion.cookie);
                }
            }
            seen.sort_unstable();
            assert_eq!(seen, (0..CALLS).collect::<Vec<_>>());
        });
        assert!(client.drain(Patience::up_to(Some(WATCHDOG))));
    }
}

#[test]
fn waits_end_at_their_limits() {
    for descriptors in [false, true] {
        let (server, client, to) = pair(descriptors);
        let (mut requests, mut completions) = (Vec::new(), Vec::new());
        for timeout in [NOW, Duration::from_millis(2)] {
            let patience = || Patience::up_to(Some(timeout));
            assert_eq!(server.recv_requests(&mut requests, 8, patience()).unwrap(), 0);
            assert_eq!(client.recv_completions(&mut completions, 8, patience()).unwrap(), 0);
        }
        // A limit of 0 does not wait.
        assert_eq!(server.recv_requests(&mut requests, 0, Patience::up_to(None)).unwrap(), 0);
        assert_eq!(client.recv_completions(&mut completions, 0, Patience::up_to(None)).unwrap(), 0);

        let short = CallOptions::new().timeout(Duration::from_millis(2));
        let failure = Failure::from(client.call(to, "slow".into(), short, None).unwrap_err());
        assert_eq!(failure.status, Status::DeadlineExceeded, "{failure}");
    }
}

#[test]
fn a_caller_can_stop_waiting() {
    for descriptors in [false, true] {
        let (server, client, to) = pair(descriptors);
        let mut never = || false;
        let patience = Patience { timeout: None, keep_waiting: Some(&mut never) };
        assert_eq!(server.recv_requests(&mut Vec::new(), 8, patience).unwrap(), 0);
        let mut never = || false;
        let patience = Patience { timeout: None, keep_waiting: Some(&mut never) };
        assert_eq!(client.recv_completions(&mut Vec::new(), 8, patience).unwrap(), 0);

        let result = client.call(to, "hello".into(), CallOptions::new(), Some(&mut || false));
        let failure = Failure::from(result.unwrap_err());
        assert_eq!((failure.status, failure.execution), (Status::Cancelled, Execution::Unknown));
    }
}

#[test]
fn failures_say_what_happened_and_whether_the_request_was_executed() {
    for descriptors in [false, true] {
        let (server, client, to) = pair(descriptors);
        client.send(to, "drop me".into(), 1, CallOptions::new(), None).unwrap();
        drop(requests(&server, 1));
        let failure = Failure::from(completions(&client, 1)[0].result.clone().unwrap_err());
        assert_eq!(failure.status, Status::Abandoned, "{failure}");

        let huge = Payload::from(vec![0; 70 << 20]);
        let failure = Failure::from(client.call(to, huge, CallOptions::new(), None).unwrap_err());
        assert_eq!(failure.status, Status::MessageTooLarge);
        assert_eq!(failure.execution, Execution::NotExecuted);

        // A client serves no requests.
        let client_address =
            SocketAddr::from(([127, 0, 0, 1], client.handle().local_addr().port()));
        let result = server.call(client_address, "hello".into(), CallOptions::new(), None);
        let failure = Failure::from(result.unwrap_err());
        assert_eq!(failure.status, Status::NotServing, "{failure}");
        assert_eq!(failure.execution, Execution::NotExecuted);

        let call = client.send(to, "cancelled".into(), 2, CallOptions::new(), None).unwrap();
        let request = requests(&server, 1).pop().unwrap();
        assert!(client.handle().cancel(call));
        assert!(!client.handle().cancel(call));
        drop(request);

        client.handle().shutdown();
        let failure =
            Failure::from(client.call(to, "x".into(), CallOptions::new(), None).unwrap_err());
        assert_eq!(failure.status, Status::Closed, "{failure}");
        assert!(client.recv_completions(&mut Vec::new(), 1, Patience::up_to(None)).is_err());
        assert!(client.recv_requests(&mut Vec::new(), 1, Patience::up_to(None)).is_err());
    }
}

#[test]
fn a_limit_is_reported_at_once_if_the_caller_does_not_wait() {
    for descriptors in [false, true] {
        let server = Endpoint::open(Some("127.0.0.1:0"), options(descriptors)).unwrap();
        let few = EndpointOptions::parse("[protocol]\nmax_client_rpcs = 2", descriptors).unwrap();
        let client = Endpoint::open(None, few).unwrap();
        let to = server.handle().local_addr();
        let send =
            |cookie| client.send(to, "x".into(), cookie, CallOptions::new().no_wait(true), None);
        let failure = (0..100).find_map(|cookie| send(cookie).err()).expect("the limit is reached");
        let failure = Failure::from(failure);
        assert!(failure.is_back_pressure(), "{failure:?}");
    }
}

#[test]
fn endpoints_that_cannot_be_opened_say_why() {
    for descriptors in [false, true] {
        for (address, status) in
            [("no address", Status::AddressUnresolved), ("192.0.2.1:1", Status::OpenFailed)]
        {
            let failure = Endpoint::open(Some(address), options(descriptors)).unwrap_err();
            assert_eq!(failure.status, status, "{failure}");
        }
        let failure = EndpointOptions::parse("polling = 'spin'", descriptors).unwrap_err();
        assert_eq!(failure.status, Status::InvalidOptions);
        assert!(failure.text.contains("polling"), "{failure}");
    }
    let (endpoint, _, _) = pair(false);
    assert_eq!(endpoint.completion_descriptor().unwrap_err().status, Status::NoDescriptors);
    assert_eq!(endpoint.request_descriptor().unwrap_err().status, Status::NoDescriptors);
}

#[test]
fn descriptors_announce_what_is_there_and_nothing_else() {
    let (server, client, to) = pair(true);
    let (mut arrived, mut ended) = (Vec::new(), Vec::new());
    let now = || Patience::up_to(Some(NOW));
    let requests = server.request_descriptor().unwrap();
    let completions = client.completion_descriptor().unwrap();
    for descriptor in [requests, completions] {
        assert!(is_readable(descriptor, NOW), "the first check arms it");
    }
    assert_eq!(server.recv_requests(&mut arrived, 8, now()).unwrap(), 0);
    assert_eq!(client.recv_completions(&mut ended, 8, now()).unwrap(), 0);

    for round in 0..50 {
        assert!(!is_readable(requests, NOW) && !is_readable(completions, NOW));
        for cookie in 0..3 {
            client.send(to, "x".into(), cookie, CallOptions::new(), None).unwrap();
        }
        // A limit below the number of messages leaves the descriptor readable.
        while arrived.len() < 3 {
            assert!(is_readable(requests, WATCHDOG), "round {round}: {} requests", arrived.len());
            server.recv_requests(&mut arrived, 1, now()).unwrap();
        }
        assert_eq!(server.recv_requests(&mut arrived, 8, now()).unwrap(), 0);
        for mut request in arrived.drain(..) {
            request.reply("y".into(), None).unwrap();
        }
        while ended.len() < 3 {
            assert!(is_readable(completions, WATCHDOG), "round {round}");
            client.recv_completions(&mut ended, 8, now()).unwrap();
        }
        ended.clear();
        assert_eq!(client.recv_completions(&mut ended, 8, now()).unwrap(), 0);
    }

    client.handle().shutdown();
    assert!(is_readable(completions, WATCHDOG), "the end is announced");
    assert!(client.recv_completions(&mut ended, 8, now()).is_err());
    assert!(is_readable(completions, NOW), "and stays so");
}

#[test]
fn threads_may_share_an_endpoint_with_descriptors() {
    const CALLS: usize = 400;
    let (server, client, to) = pair(true);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut requests = Vec::new();
                while server.recv_requests(&mut requests, 4, Patience::up_to(None)).is_ok() {
                    for mut request in requests.drain(..) {
                        let payload = request.payload().clone();
                        // The client may have ended: the test ends when it has all responses.
                        let _ = request.reply(payload.into(), None);
                    }
                }
            });
        }
        let callers: Vec<_> = (0..4)
            .map(|caller| {
                let client = &client;
                scope.spawn(move || {
                    for call in 0..CALLS / 4 {
                        let text = format!("{caller} {call}");
                        let request = text.clone().into();
                        let response = client.call(to, request, CallOptions::new(), None).unwrap();
                        assert_eq!(response, text);
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.join().unwrap();
        }
        server.handle().shutdown();
    });
}

/// A check that ends a wait when it is first called.
fn give_up() -> impl FnMut() -> bool {
    || false
}

#[test]
fn every_wait_for_room_and_for_acknowledgements_can_be_ended() {
    for descriptors in [false, true] {
        let server = Endpoint::open(Some("127.0.0.1:0"), options(descriptors)).unwrap();
        let few = EndpointOptions::parse("[protocol]\nmax_client_rpcs = 2", descriptors).unwrap();
        let client = Endpoint::open(None, few).unwrap();
        let to = server.handle().local_addr();
        let hour = CallOptions::new().timeout(Duration::from_secs(3_600));
        for cookie in 0..2 {
            client.send(to, "x".into(), cookie, hour, None).unwrap();
        }
        let sent = client.send(to, "x".into(), 2, hour, Some(&mut give_up()));
        let called = client.call(to, "x".into(), hour, Some(&mut give_up()));
        for failure in [sent.map(drop).unwrap_err(), called.map(drop).unwrap_err()] {
            let failure = Failure::from(failure);
            assert_eq!(failure.status, Status::Cancelled);
            // The first call may have found room in the memory that both share.
            assert!(descriptors || failure.execution == Execution::NotExecuted, "{failure:?}");
        }
        let mut never = give_up();
        let patience = Patience { timeout: None, keep_waiting: Some(&mut never) };
        assert!(!client.drain(patience));
        client.handle().shutdown();
        assert!(!client.drain(Patience::up_to(None)), "a closed endpoint returns at once");
    }
}

#[test]
fn a_reply_that_was_not_sent_may_be_repeated() {
    for descriptors in [false, true] {
        let text = "[protocol]\nmax_message = 1000";
        let small = EndpointOptions::parse(text, descriptors).unwrap();
        let server = Endpoint::open(Some("127.0.0.1:0"), small).unwrap();
        let client = Endpoint::open(None, options(descriptors)).unwrap();
        let to = server.handle().local_addr();
        for cookie in 0..2 {
            client.send(to, "x".into(), cookie, CallOptions::new(), None).unwrap();
            let mut request = requests(&server, 1).pop().unwrap();
            let failure = request.reply(vec![0; 1_001].into(), None).unwrap_err();
            assert_eq!(failure.status, Status::MessageTooLarge, "{failure}");
            if cookie == 0 {
                request.reply("less".into(), None).unwrap();
                assert_eq!(completions(&client, 1)[0].result.as_ref().unwrap(), "less");
            }
        }
        let failure = Failure::from(completions(&client, 1)[0].result.clone().unwrap_err());
        assert_eq!(failure.status, Status::ResponseTooLarge, "{failure}");
        assert_eq!(failure.execution, Execution::Executed);
    }
}

#[test]
fn a_call_whose_time_is_over_is_not_sent() {
    for descriptors in [false, true] {
        let (server, client, to) = pair(descriptors);
        let late = CallOptions::new().timeout(NOW);
        let failures = [
            client.call(to, "late".into(), late, None).map(drop).unwrap_err(),
            client.send(to, "late".into(), 1, late, None).map(drop).unwrap_err(),
        ];
        for failure in failures.map(Failure::from) {
            assert_eq!(failure.status, Status::DeadlineExceeded);
            assert_eq!(failure.execution, Execution::NotExecuted);
        }
        client.send(to, "in time".into(), 2, CallOptions::new(), None).unwrap();
        assert_eq!(requests(&server, 1)[0].payload(), "in time");
    }
}
