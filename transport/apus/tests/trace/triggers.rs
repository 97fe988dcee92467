//! Triggers that freeze the trace, of this process and of peers.

use crate::gate::Gate;
use crate::{ShutDown, Tracing, only, pair, serve_while};
use apus::trace::{self, Event, FreezeReason, FreezeTriggers, Record, Sampling, Side};
use apus::{Endpoint, EndpointBuilder, PollMode};
use apus_driver::fault::{FaultConfig, Faults, Faulty, PER_MILLION};
use apus_driver::loopback::LoopbackNetwork;
use std::time::Duration;

/// Returns the reason why the trace is frozen.
fn reason() -> Option<FreezeReason> {
    trace::frozen().map(|frozen| frozen.reason)
}

#[test]
fn no_trigger_is_enabled_by_default() {
    // Dropped last: what the endpoints still receive is not recorded by the next test.
    let _tracing = Tracing::all();
    let (client, server) = lossy_pair(FreezeTriggers::new());
    serve_while(&server, || {
        for _ in 0..30 {
            client.call(server.local_addr(), vec![7; 20_000]).unwrap();
        }
        assert!(client.metrics().protocol.recovery.resent_packets > 0);
        assert!(client.freeze_peers() > 0);
    });
    assert_eq!(reason(), Some(FreezeReason::Demand), "by `freeze_peers` itself");
}

#[test]
fn a_slow_call_freezes_the_trace_even_if_it_is_not_traced() {
    let tracing = Tracing::with("sampled=4000000000".parse().unwrap());
    let slow = FreezeTriggers::new().slow_rpc(Duration::from_millis(5));
    let (client, server) =
        pair(&EndpointBuilder::default().poll_mode(PollMode::Block).freeze_triggers(slow));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let request = server.recv_request().unwrap();
            // The trigger is about time alone.
            let since = std::time::Instant::now();
            while since.elapsed() < Duration::from_millis(6) {
                std::thread::yield_now();
            }
            request.reply("late").unwrap();
        });
        client.call(server.local_addr(), "hello").unwrap();
    });
    assert_eq!(reason(), Some(FreezeReason::SlowRpc));
    let records = tracing.of(client.local_addr(), Side::Client);
    let slow = only(&records, Event::Slow);
    assert!(slow.len() == 1 && slow[0].b >= 5_000_000, "{slow:?}");
    assert!(only(&records, Event::Parsed).is_empty(), "the call is not traced");
    let trace = tracing.trace();
    assert_eq!(trace.head.frozen, trace::frozen());
    assert_eq!(trace.all(Event::Frozen).count(), 1);
}

/// Runs `calls` while a server takes 6 ms for requests with the text `wait`.
fn serve_slowly_while(server: &Endpoint, calls: impl FnOnce()) {
    std::thread::scope(|scope| {
        let _end = ShutDown(server);
        scope.spawn(|| {
            while let Ok(request) = server.recv_request() {
                let since = std::time::Instant::now();
                while request.payload() == "wait" && since.elapsed() < Duration::from_millis(6) {
                    std::thread::yield_now();
                }
                let _ = request.reply("done");
            }
        });
        calls();
    });
}

#[test]
fn a_slow_call_through_memory_freezes_the_trace_as_well() {
    let hour = Duration::from_secs(3_600);
    for (limit, expected) in [(5, Some(FreezeReason::SlowRpc)), (hour.as_millis() as u64, None)] {
        let tracing = Tracing::with("sampled=4000000000".parse().unwrap());
        let slow = FreezeTriggers::new().slow_rpc(Duration::from_millis(limit)).freeze_peers(true);
        let builder = EndpointBuilder::default().poll_mode(PollMode::Block).freeze_triggers(slow);
        let bind = || builder.clone().bind("127.0.0.1:0").unwrap();
        let (client, server) = (bind(), bind());
        let local_calls = || client.metrics().engine.local_calls;
        // A frozen trace is not frozen again: calls before the path through memory is open may be
        // slow.
        trace::freeze(FreezeReason::Demand);
        serve_slowly_while(&server, || {
            while local_calls() == 0 {
                client.call(server.local_addr(), "hello").unwrap();
            }
            trace::resume();
            client.call(server.local_addr(), "wait").unwrap();
        });
        assert_eq!(reason(), expected);
        assert!(local_calls() > 1, "it went through memory");
        let records = tracing.of(client.local_addr(), Side::Client);
        let slow = only(&records, Event::Slow);
        assert_eq!(slow.len(), usize::from(expected.is_some()));
        assert!(slow.iter().all(|slow| slow.b >= 5_000_000), "{slow:?}");
        assert!(only(&records, Event::LocalReceived).is_empty(), "the call is not traced");
        let sent = client.metrics().protocol.sent(apus_proto::Kind::Freeze);
        assert_eq!(sent, slow.len() as u64, "peers with a session get a FREEZE at once");
    }
}

/// Two endpoints on a network that loses one packet in five.
fn lossy_pair(triggers: FreezeTriggers) -> (Endpoint, Endpoint) {
    let network = LoopbackNetwork::new();
    let faults = Faults { loss: PER_MILLION / 5, ..Faults::none() };
    let on = |seed| {
        let config = FaultConfig { seed, receive: faults, ..FaultConfig::default() };
        let driver = Faulty::new(network.host(), config).unwrap();
        let builder =
            EndpointBuilder::default().poll_mode(PollMode::Block).freeze_triggers(triggers);
        builder.with_driver(Box::new(driver)).unwrap()
    };
    (on(1), on(2))
}

#[test]
fn a_lost_packet_freezes_the_trace_with_what_led_to_it() {
    let tracing = Tracing::with(Sampling::default());
    let (client, server) = lossy_pair(FreezeTriggers::new().lost_packet(true));
    serve_while(&server, || {
        while reason().is_none() {
            client.call(server.local_addr(), vec![7; 20_000]).unwrap();
        }
    });
    assert_eq!(reason(), Some(FreezeReason::LostPacket));
    let trace = tracing.trace();
    let resends = trace.all(Event::ResendSent).count() + trace.all(Event::ResendReceived).count();
    assert!(resends > 0, "one side sent a RESEND");
    let retransmitted = [Event::DataSent, Event::DataReceived].map(|event| {
        let data = trace
            .all(event)
            .map(|(_, record)| apus_trace::event::DataFields::from_numbers(record.a, record.b));
        data.filter(|data| data.retransmitted).count()
    });
    assert!(retransmitted[0] + retransmitted[1] > 0, "retransmissions are recorded, traced or not");
}

#[test]
fn a_lost_request_is_restarted_and_freezes_the_trace() {
    let tracing = Tracing::with(Sampling::default());
    let (client, server) = lossy_pair(FreezeTriggers::new().restart(true));
    serve_while(&server, || {
        while reason().is_none() {
            client.call(server.local_addr(), "hello").unwrap();
        }
    });
    assert_eq!(reason(), Some(FreezeReason::Restart));
    let restarts = only(&tracing.of(client.local_addr(), Side::Client), Event::Restart);
    assert_eq!(restarts.len(), 1);
    assert_eq!(tracing.trace().value("restart", restarts[0].a.into()), Some("rpc unknown"));
}

/// Two endpoints with these triggers that have a session.
fn pair_with_session(client: FreezeTriggers, server: FreezeTriggers) -> (Endpoint, Endpoint) {
    let network = LoopbackNetwork::new();
    let on = |triggers| {
        EndpointBuilder::default()
            .poll_mode(PollMode::Block)
            .freeze_triggers(triggers)
            .with_driver(Box::new(network.host()))
    };
    let (client, server) = (on(client).unwrap(), on(server).unwrap());
    begin_session(&client, &server);
    (client, server)
}

/// Makes a call.
fn begin_session(client: &Endpoint, server: &Endpoint) {
    std::thread::scope(|scope| {
        scope.spawn(|| server.recv_request().unwrap().reply("hello").unwrap());
        client.call(server.local_addr(), "hello").unwrap();
    });
}

#[test]
fn peers_freeze_their_traces_if_they_obey() {
    for obey in [false, true] {
        let tracing = Tracing::all();
        let (network, gate) = (LoopbackNetwork::new(), Gate::default());
        let builder = EndpointBuilder::default().poll_mode(PollMode::Block);
        let client = builder.clone().with_driver(Box::new(network.host())).unwrap();
        let obedient = builder.freeze_triggers(FreezeTriggers::new().obey_peers(obey));
        let server = obedient.with_driver(gate.in_front_of(network.host())).unwrap();
        begin_session(&client, &server);
        let received = || server.metrics().protocol.received(apus_proto::Kind::Freeze);
        for round in 1.. {
            // Both are in this process and share a trace, which `freeze_peers` freezes as well. The
            // server receives the request only when the trace records again.
            gate.close();
            assert_eq!(client.freeze_peers(), 1);
            assert_eq!(reason(), Some(FreezeReason::Demand), "by `freeze_peers` itself");
            trace::resume();
            gate.open();
            while received() < round {
                assert!(server.try_recv_request().unwrap().is_none());
            }
            if tracing.trace().all(Event::FreezeReceived).count() > 0 {
                break;
            }
            // A pass of the loop that began while the trace was frozen ignores the request.
            assert_eq!(reason(), None);
        }
        assert_eq!(reason(), obey.then_some(FreezeReason::Peer));
        let trace = tracing.trace();
        let (_, received) = trace.all(Event::FreezeReceived).last().unwrap();
        assert_eq!(trace.head.peer(received.peer).unwrap().address, client.local_addr());
        assert_eq!(received.rpc(), None);
        assert!(trace.all(Event::FreezeSent).count() > 0);
    }
}

#[test]
fn peers_on_this_host_are_asked_over_both_paths() {
    let tracing = Tracing::all();
    let bind =
        || EndpointBuilder::default().poll_mode(PollMode::Block).bind("127.0.0.1:0").unwrap();
    let (client, server) = (bind(), bind());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while server.metrics().engine.local_requests == 0 {
                server.recv_request().unwrap().reply("hello").unwrap();
            }
        });
        while client.metrics().engine.local_calls == 0 {
            client.call(server.local_addr(), "hello").unwrap();
        }
    });
    // One request over the network and one through memory. A request that arrives before the resume
    // is not recorded.
    let received = || tracing.trace().all(Event::FreezeReceived).count() as u64;
    let over_network = || server.metrics().protocol.received(apus_proto::Kind::Freeze);
    loop {
        let (network, before) = (over_network(), received());
        assert_eq!(client.freeze_peers(), 2, "a session, and a pair");
        trace::resume();
        assert!(server.try_recv_request().unwrap().is_none());
        let through_both = received() - before;
        if through_both > over_network() - network {
            break;
        }
    }
    let trace = tracing.trace();
    let peer = |record: &Record| trace.head.peer(record.peer).unwrap().address;
    assert!(trace.all(Event::FreezeReceived).all(|(_, it)| peer(it) == client.local_addr()));
    // In the other direction as well.
    assert_eq!(server.freeze_peers(), 2);
}

#[test]
fn a_trigger_freezes_the_peers_traces_if_enabled() {
    for enabled in [false, true] {
        let _tracing = Tracing::with(Sampling::default());
        let triggers = FreezeTriggers::new().slow_rpc(Duration::ZERO).freeze_peers(enabled);
        let (client, server) = pair_with_session(triggers, FreezeTriggers::new());
        assert_eq!(reason(), Some(FreezeReason::SlowRpc), "every call is slow");
        begin_session(&client, &server);
        let sent = client.metrics().protocol.sent(apus_proto::Kind::Freeze);
        assert_eq!(sent, u64::from(enabled), "once");
    }
}

#[test]
fn a_peer_without_a_session_freezes_nothing() {
    let tracing = Tracing::all();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let obedient =
        EndpointBuilder::default().freeze_triggers(FreezeTriggers::new().obey_peers(true));
    let server = obedient.bind("127.0.0.1:0").unwrap();
    let mut freeze = [0; 28];
    // Source and destination port, packet type, length of the header, version, and a session that
    // does not exist.
    freeze[..2].copy_from_slice(&socket.local_addr().unwrap().port().to_be_bytes());
    freeze[2..4].copy_from_slice(&server.local_addr().port().to_be_bytes());
    freeze[11] = apus_proto::Kind::Freeze as u8;
    (freeze[12], freeze[13]) = (7 << 4, 1 << 4 | 1);
    socket.send_to(&freeze, server.local_addr()).unwrap();
    while server.metrics().protocol.dropped_total() == 0 {
        assert!(server.try_recv_request().unwrap().is_none());
    }
    assert_eq!(reason(), None);
    let trace = tracing.trace();
    let (_, dropped) = trace.all(Event::Dropped).last().unwrap();
    assert_eq!(trace.value("drop_reason", dropped.a.into()), Some("unknown_rpcs"));
}
