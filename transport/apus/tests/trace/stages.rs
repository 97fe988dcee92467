//! Stages of a call in the time trace, and their order.

use crate::{Tracing, names, only, pair, pair_in_memory, serve_while, unhurried};
use apus::trace::{Event, Record, Sampling, Side};
use apus::{CallOptions, Endpoint, EndpointBuilder, Engine, OutgoingCall, PollMode};
use std::collections::BTreeSet;

fn builder() -> EndpointBuilder {
    EndpointBuilder::default().config(unhurried())
}

/// Returns the records of the last call of `client`, at the client and at its server.
fn last_call(tracing: &Tracing, client: &Endpoint, server: &Endpoint) -> [Vec<Record>; 2] {
    let mine = tracing.of(client.local_addr(), Side::Client);
    let last = only(&mine, Event::Call).last().unwrap().rpc().unwrap().id();
    let of_last = |records: Vec<Record>| {
        records.into_iter().filter(|record| record.rpc().unwrap().id() == last).collect()
    };
    [of_last(mine), of_last(tracing.of(server.local_addr(), Side::Server))]
}

/// Returns the names of the stage events, without packet events. On a busy machine a server
/// requests the ack before the client has sent it.
fn stages(records: &[Record]) -> Vec<&'static str> {
    let packets = [
        "data_sent",
        "data_received",
        "cutoffs_sent",
        "cutoffs_received",
        "need_ack_sent",
        "need_ack_received",
        "ack_sent",
        "ack_received",
    ];
    names(records).into_iter().filter(|name| !packets.contains(name)).collect()
}

const CLIENT: [&str; 8] =
    ["call", "queued", "to_kernel", "from_kernel", "parsed", "handed_off", "woken", "returned"];
const SERVER: [&str; 8] = [
    "from_kernel",
    "parsed",
    "handed_off",
    "woken",
    "request_returned",
    "reply",
    "queued",
    "to_kernel",
];

#[test]
fn a_call_goes_through_all_stages_in_order_on_both_sides() {
    for engine in [Engine::Waiters, Engine::Dedicated { cpu: None }] {
        let tracing = Tracing::all();
        let (client, server) = pair(&builder().engine(engine).poll_mode(PollMode::Block));
        let to = server.local_addr();
        serve_while(&server, || {
            for _ in 0..3 {
                client.call(to, vec![1; 100]).unwrap();
            }
            assert!(client.drain(std::time::Duration::from_secs(60)));
        });
        let [mine, theirs] = last_call(&tracing, &client, &server);
        assert_eq!(
            (stages(&mine), stages(&theirs)),
            (CLIENT.to_vec(), SERVER.to_vec()),
            "{engine:?}"
        );
        let lengths = [Event::Call, Event::Queued, Event::Parsed, Event::Returned];
        for record in mine.iter().filter(|record| lengths.contains(&record.event().unwrap())) {
            assert_eq!(record.b, 100, "{record:?}");
        }
        for [handed_off, woken] in [&mine, &theirs]
            .map(|records| [Event::HandedOff, Event::Woken].map(|event| only(records, event)[0].b))
        {
            assert_eq!(handed_off, woken, "the notified waiter is the one that woke up");
        }
        let trace = tracing.trace();
        let peer = trace.head.peer(mine[0].peer).unwrap();
        assert_eq!((peer.endpoint, peer.address), (client.local_addr(), to));
    }
}

#[test]
fn a_dedicated_engine_hands_messages_off_to_named_threads() {
    let tracing = Tracing::all();
    let builder = builder().engine(Engine::Dedicated { cpu: None }).poll_mode(PollMode::Block);
    let (client, server) = pair(&builder);
    serve_while(&server, || {
        for _ in 0..20 {
            client.call(server.local_addr(), "hello").unwrap();
        }
    });
    let mine = tracing.of(client.local_addr(), Side::Client);
    let notified: BTreeSet<u64> =
        only(&mine, Event::HandedOff).iter().map(|record| record.b).filter(|b| *b > 0).collect();
    assert!(!notified.is_empty(), "some caller waited");
    // The notified waiter slept or spun under this name, and another thread notified it.
    let trace = tracing.trace();
    let thread_of = |event| {
        trace
            .all(event)
            .find(|(_, record)| notified.contains(&record.b))
            .map(|(thread, _)| thread.tid)
    };
    let (notifier, woken) = (thread_of(Event::HandedOff), thread_of(Event::Woken));
    assert!(notifier.is_some() && woken.is_some());
    assert_ne!(notifier, woken);
    assert!(trace.threads.iter().any(|thread| thread.name == "apus-engine"));
}

#[test]
fn many_calls_at_a_time_go_through_the_same_stages() {
    assert!((0..1_000).any(|_| many_calls_leave_together()), "they leave one by one");
}

/// Makes many calls under a cork. Returns whether they have left together: the client's background
/// poller sends what a cork holds, and it runs if the system has stopped this thread.
fn many_calls_leave_together() -> bool {
    let tracing = Tracing::all();
    let (client, server) = pair(&builder());
    serve_while(&server, || {
        client.call(server.local_addr(), "to begin with").unwrap();
        let cork = client.cork();
        for cookie in 0..20 {
            client.send(server.local_addr(), vec![7; 50], cookie).unwrap();
        }
        drop(cork);
        let mut ends = Vec::new();
        while ends.len() < 20 {
            client.recv_completions(&mut ends, 20).unwrap();
        }
    });
    let mine = tracing.of(client.local_addr(), Side::Client);
    for event in [Event::Call, Event::Queued, Event::Parsed, Event::HandedOff, Event::Returned] {
        assert_eq!(only(&mine, event).len(), 21, "{event:?}");
    }
    // Messages that left together have one time, and their system call has a separate record.
    let left: BTreeSet<u64> =
        only(&mine, Event::ToKernel).iter().map(|record| record.ticks).collect();
    let trace = tracing.trace();
    let most = trace.all(Event::Send).map(|(_, record)| record.a).max();
    let together = left.len() < 21 && most >= Some(10);
    assert!(together || client.metrics().engine.keeper_turns > 0, "{left:?} {most:?}");
    together
}

#[test]
fn calls_and_replies_that_are_made_together_go_through_the_same_stages() {
    const CALLS: usize = 20;
    let tracing = Tracing::all();
    let (client, server) = pair(&builder());
    let to = server.local_addr();
    let call = |cookie| OutgoingCall { to, request: vec![7; 50].into(), cookie };
    let mut calls: Vec<_> = (0..CALLS as u64).map(call).collect();
    client.send_many(&mut calls, CallOptions::new()).unwrap();
    let mut requests = Vec::new();
    while requests.len() < CALLS {
        server.recv_requests(&mut requests, CALLS).unwrap();
    }
    let mut replies: Vec<_> =
        requests.into_iter().map(|request| (request, vec![7; 60].into())).collect();
    server.reply_many(&mut replies).unwrap();
    let mut ends = Vec::new();
    while ends.len() < CALLS {
        client.recv_completions(&mut ends, CALLS).unwrap();
    }
    let mine = tracing.of(client.local_addr(), Side::Client);
    let theirs = tracing.of(to, Side::Server);
    for (records, events) in [
        (&mine, [Event::Call, Event::Queued, Event::Parsed, Event::Returned]),
        (&theirs, [Event::Parsed, Event::RequestReturned, Event::Reply, Event::Queued]),
    ] {
        for event in events {
            assert_eq!(only(records, event).len(), CALLS, "{event:?}");
        }
    }
    let most = tracing.trace().all(Event::Send).map(|(_, record)| record.a).max();
    assert!(most >= Some(10), "{most:?}");
}

#[test]
fn a_long_message_records_its_grants_and_packets() {
    let tracing = Tracing::all();
    let (client, server) = pair(&builder());
    serve_while(&server, || {
        client.call(server.local_addr(), "to begin with").unwrap();
        client.call(server.local_addr(), vec![7; 300_000]).unwrap();
    });
    let [mine, theirs] = last_call(&tracing, &client, &server);
    let received = only(&theirs, Event::DataReceived);
    assert_eq!(received.iter().map(|record| u64::from(record.a)).sum::<u64>(), 300_000);
    let [sent, used] = [Event::GrantReceived, Event::GrantUsed].map(|event| only(&mine, event));
    let request = |records: &[Record]| records.iter().any(|record| record.b == 300_000);
    assert!(request(&sent) && request(&used));
    assert!(sent[0].ticks <= used[0].ticks);
    let granted = only(&theirs, Event::GrantSent);
    assert!(request(&granted) && granted[0].ticks <= sent[0].ticks);
    // Every packet that was built was passed to the kernel.
    let left: u64 = only(&mine, Event::ToKernel).iter().map(|record| u64::from(record.a)).sum();
    let built = only(&mine, Event::DataSent);
    let built: u64 = built
        .iter()
        .map(|record| {
            u64::from(apus_trace::event::DataFields::from_numbers(record.a, record.b).packets)
        })
        .sum();
    assert_eq!(left, built);
}

#[test]
fn a_call_through_memory_has_stages_as_well() {
    let tracing = Tracing::all();
    let Some((client, server)) = pair_in_memory() else { return };
    serve_while(&server, || {
        while client.metrics().engine.local_calls < 3 {
            client.call(server.local_addr(), vec![1; 100]).unwrap();
        }
    });
    let [mine, theirs] = last_call(&tracing, &client, &server);
    let client = ["call", "local_sent", "local_received", "handed_off", "woken", "returned"];
    assert_eq!(names(&mine), client);
    let server =
        ["local_received", "handed_off", "woken", "request_returned", "reply", "local_sent"];
    assert_eq!(names(&theirs), server);
}

#[test]
fn sleeping_and_waking_threads_are_recorded() {
    let tracing = Tracing::all();
    let (client, server) = pair(&builder().poll_mode(PollMode::Block));
    serve_while(&server, || {
        for _ in 0..10 {
            client.call(server.local_addr(), "hello").unwrap();
        }
    });
    let trace = tracing.trace();
    for event in [Event::Look, Event::Pass, Event::Send, Event::Sleep, Event::Wake] {
        assert!(trace.all(event).count() > 0, "{event:?}");
    }
    for thread in &trace.threads {
        let slept = |event| thread.records.iter().filter(|r| r.event() == Some(event)).count();
        let (asleep, awake) = (slept(Event::Sleep), slept(Event::Wake));
        assert!(asleep.abs_diff(awake) <= 1, "{}: {asleep} {awake}", thread.name);
    }
    let look = trace.all(Event::Look).map(|(_, record)| record).next().unwrap();
    assert!(look.a > 0, "polls that find nothing are not recorded");
    let second = trace.head.clock.ticks_per_second();
    assert!(trace.all(Event::Pass).all(|(_, record)| record.b < 60 * second));
}

#[test]
fn both_ends_trace_the_same_calls_and_no_others() {
    let sampling: Sampling = "sampled=8".parse().unwrap();
    let tracing = Tracing::with(sampling);
    let (client, server) = pair(&builder());
    serve_while(&server, || {
        for _ in 0..200 {
            client.call(server.local_addr(), "hello").unwrap();
        }
    });
    let ids = |endpoint: &Endpoint, side, event| -> BTreeSet<u64> {
        let records = tracing.of(endpoint.local_addr(), side);
        only(&records, event).iter().map(|record| record.rpc().unwrap().id()).collect()
    };
    let called = ids(&client, Side::Client, Event::Returned);
    assert_eq!(called, ids(&server, Side::Server, Event::Reply));
    assert!(called.iter().all(|id| sampling.traces(*id)));
    assert!((20..=30).contains(&called.len()), "{}", called.len());
}

#[test]
fn nothing_is_recorded_while_tracing_is_off() {
    let tracing = Tracing::with(Sampling::Off);
    let (client, server) = pair(&builder());
    serve_while(&server, || {
        for _ in 0..100 {
            client.call(server.local_addr(), vec![7; 20_000]).unwrap();
        }
    });
    assert_eq!(tracing.trace().records().count(), 0);
}
