//! The blocking endpoint over real UDP sockets.

#[path = "../endpoint/echo.rs"]
mod echo;
#[path = "../endpoint/empty_messages.rs"]
mod empty_messages;
mod firewall;
#[path = "../endpoint/fixtures.rs"]
mod fixtures;
mod forged_icmp;
mod mtu_hole;
#[path = "../namespace/mod.rs"]
mod namespace;
mod older_version;
#[allow(dead_code, reason = "its pair of hosts has one link")]
#[path = "../../../socket/tests/raw/namespace.rs"]
mod pair;
#[path = "../ports/mod.rs"]
mod ports;
mod several_paths;

use apus::{
    Bytes, CallOptions, Config, Endpoint, EndpointBuilder, Execution, FailureKind, PollMode,
};
use echo::echo;
use fixtures::{ShutDown, assert_at_rest, bytes, echo_pair};
use std::net::{IpAddr, SocketAddr};

/// Options that keep two endpoints on one host from using shared memory.
fn over_udp() -> EndpointBuilder {
    fixtures::patient().local(false)
}

/// Two endpoints.
fn pair(builder: &EndpointBuilder) -> (Endpoint, Endpoint) {
    let bind = || builder.clone().local(false).bind("127.0.0.1:0").unwrap();
    (bind(), bind())
}

/// Returns the failure of a call that was sent.
fn failure(result: Result<Bytes, apus::CallError>) -> apus::RpcError {
    match result {
        Err(apus::CallError::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// A call to a closed port fails by the ICMP error that the system reports, not by silence, which
/// would take an hour here.
#[test]
fn a_closed_port_is_reported_by_the_system() {
    let config = Config::builder().timeout_usecs(3_600_000_000).build().unwrap();
    for local in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(socket) = std::net::UdpSocket::bind(local) else {
            eprintln!("SKIPPED: {local} cannot be bound");
            continue;
        };
        let address = socket.local_addr().unwrap();
        let client = over_udp().config(config.clone()).client().unwrap();
        drop(socket);
        let error = failure(client.call(address, "hello"));
        assert_eq!(error.kind, FailureKind::PortClosed, "{error}");
        assert_eq!(error.execution, Execution::NotExecuted);
        assert!(client.info().is_empty());
    }
}

/// Each form of bind address with each address that reaches it.
#[test]
fn both_families_and_one_socket_for_both() {
    let ways = [
        ("127.0.0.1:0", "127.0.0.1"),
        ("0.0.0.0:0", "127.0.0.1"),
        ("[::1]:0", "::1"),
        ("[::]:0", "::1"),
        ("[::]:0", "127.0.0.1"),
        ("[::]:0", "::ffff:127.0.0.1"),
    ];
    for (bind, host) in ways {
        let Ok(server) = over_udp().bind(bind) else {
            eprintln!("SKIPPED: {bind} cannot be bound");
            continue;
        };
        let host: IpAddr = host.parse().unwrap();
        let to = SocketAddr::new(host, server.local_addr().port());
        let client = over_udp().client().unwrap();
        let expected = SocketAddr::new(host.to_canonical(), client.local_addr().port());
        let thread = std::thread::spawn({
            let server = server.clone();
            move || {
                let request = server.recv_request().ok()?;
                let from = request.peer_addr();
                request.reply("you").ok()?;
                // The client's loop must run to acknowledge.
                server.drain(std::time::Duration::from_secs(60)).then_some(from)
            }
        });
        let answer = client.call(to, "who am I?").unwrap_or_else(|error| {
            server.shutdown();
            panic!("{bind} {host}: {error}");
        });
        assert_eq!(answer, "you");
        assert_eq!(thread.join().unwrap(), Some(expected), "{bind} {host}");
    }
}

/// Over TCP the second of two writes waits for a delayed acknowledgement. A message in slices is
/// sent as a whole.
#[test]
fn a_request_and_a_reply_in_slices_are_one_packet_each() {
    // No retransmissions, however slow the machine is.
    let config = Config::builder().resend_usecs(10_000_000).timeout_usecs(3_600_000_000);
    let over_udp = || over_udp().config(config.clone().build().unwrap());
    let server = over_udp().bind("127.0.0.1:0").unwrap();
    let client = over_udp().client().unwrap();
    let to = server.local_addr();
    let thread = std::thread::spawn(move || {
        for _ in 0..10 {
            let request = server.recv_request().unwrap();
            assert_eq!(*request.payload(), "headbody");
            request.reply([Bytes::from("whole "), Bytes::from("reply")]).unwrap();
        }
        server
    });
    let before = client.metrics().protocol;
    for _ in 0..10 {
        let reply = client.call(to, [Bytes::from("head"), Bytes::from("body")]).unwrap();
        assert_eq!(reply, "whole reply");
    }
    let after = client.metrics().protocol;
    let data = 0;
    // The first request leaves once more in the session that it is offered (AMO-1).
    assert_eq!(after.packets_sent[data] - before.packets_sent[data], 11, "DATA is the first kind");
    assert_eq!(after.packets_received[data] - before.packets_received[data], 10);
    drop(thread.join().unwrap());
}

/// The longest message, in both directions.
#[test]
fn sixty_four_megabytes() {
    let server = over_udp().poll_mode(PollMode::Block).bind("127.0.0.1:0").unwrap();
    let address = server.local_addr();
    let thread = echo(server.clone());
    let client = over_udp().poll_mode(PollMode::Block).client().unwrap();
    let request: Bytes = (0..67_108_864_usize).map(|i| (i * 31 + i / 251) as u8).collect();
    let response = client.call(address, request.clone()).unwrap();
    assert!(response == request, "byte by byte");
    assert!(client.drain(std::time::Duration::from_secs(60)));
    assert!(server.drain(std::time::Duration::from_secs(60)));
    let live = [&client, &server].map(|endpoint| endpoint.metrics().protocol.live);
    for live in live {
        assert_eq!((live.receive_bytes, live.send_bytes, live.incoming_bytes), (0, 0, 0));
    }
    server.shutdown();
    assert_eq!(thread.join().unwrap(), 1);
}

/// A server is restarted at its port without state. A call that relied on the earlier incarnation
/// fails with that reason unless it is known not to have been executed, an idempotent call is sent
/// again, and the next call succeeds.
#[test]
fn a_restarted_server_is_recognised() {
    for idempotent in [false, true] {
        let first = over_udp().bind(ports::free_address()).unwrap();
        let address = first.local_addr();
        let thread = echo(first.clone());
        let client = over_udp().client().unwrap();
        assert_eq!(client.call(address, "one").unwrap(), "one");
        // The acknowledgment arrives before the port is closed; otherwise the system reports that.
        assert!(client.drain(std::time::Duration::from_secs(60)));
        first.shutdown();
        thread.join().unwrap();
        drop(first);

        let second = over_udp().bind(address).unwrap();
        let thread = echo(second.clone());
        let options = CallOptions::new().idempotent(idempotent);
        let result = client.call_with(address, "two", options);
        // It is sent again as well if the server has lived longer than the call (AMO-11), which
        // the clocks decide here.
        let is_answered = result.is_ok();
        if is_answered {
            assert_eq!(result.unwrap(), "two");
        } else {
            assert!(!idempotent);
            let error = failure(result);
            assert_eq!(error.kind, FailureKind::PeerRestarted, "{error}");
            assert_eq!(error.execution, Execution::Unknown);
        }
        assert_eq!(client.call(address, "three").unwrap(), "three");
        second.shutdown();
        assert_eq!(thread.join().unwrap(), 1 + u64::from(is_answered), "at most once");
    }
}

/// Garbage sent to the port does not disturb other clients. Each packet is counted, and the
/// responses are small.
#[test]
fn garbage_disturbs_no_client() {
    let server = over_udp().bind("127.0.0.1:0").unwrap();
    let address = server.local_addr();
    let thread = echo(server.clone());
    let client = over_udp().client().unwrap();
    let vandal = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    vandal.set_nonblocking(true).unwrap();
    let mut random = 1_u64;
    let (mut sent, mut received, mut buffer) = (0, 0, [0; 2_000]);
    for round in 0..500_usize {
        let mut packet: Vec<u8> = (0..round * 3)
            .map(|_| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            })
            .collect();
        if round % 2 == 0 && packet.len() > 20 {
            // A nearly valid header: the right port, a packet type, the version.
            packet[2..4].copy_from_slice(&address.port().to_be_bytes());
            packet[11] = 0x10 + (round / 2 % 9) as u8;
            packet[13] = 0x10 | (round / 18 % 16) as u8;
        }
        // Fails while the socket is full.
        if vandal.send_to(&packet, address).is_ok() {
            sent += packet.len() + 28;
        }
        let request = vec![round as u8; 1 + round];
        assert_eq!(client.call(address, request.clone()).unwrap(), request);
        while let Ok(length) = vandal.recv(&mut buffer) {
            received += length + 28;
        }
    }
    assert!(received <= 3 * sent, "{received} bytes for {sent}");
    assert!(server.metrics().protocol.dropped_total() > 300);
    assert!(client.drain(std::time::Duration::from_secs(60)));
    server.shutdown();
    assert_eq!(thread.join().unwrap(), 500);
}

/// Requirement WIRE-29: messages of any size that leave together share a datagram, once the peer
/// has announced that it reads such datagrams.
#[test]
fn short_messages_that_leave_together_share_a_datagram() {
    assert!((0..1_000).any(|_| share_a_datagram()), "each has its own datagram");
}

/// Makes calls under a cork. Returns whether they shared a datagram: the client's background poller
/// sends what a cork holds, and it runs if the system has stopped this thread.
fn share_a_datagram() -> bool {
    let server = over_udp().bind("127.0.0.1:0").unwrap();
    let address = server.local_addr();
    let thread = echo(server.clone());
    let client = over_udp().client().unwrap();
    let sent = || {
        let metrics = client.metrics();
        let count = |wanted| metrics.driver.iter().find(|(name, _)| *name == wanted).unwrap().1;
        (count("datagrams_sent"), count("packets_sent"))
    };
    // The first request is held, the second one is answered with the server's CUTOFFS.
    for greeting in ["Who is there?", "Both know each other."] {
        assert_eq!(client.call(address, greeting).unwrap(), greeting);
    }
    let before = sent();
    let cork = client.cork();
    for size in 1..=20_u8 {
        client.send(address, vec![size; 10 * usize::from(size)], u64::from(size)).unwrap();
    }
    drop(cork);
    let after = sent();
    let (datagrams, packets) = (after.0 - before.0, after.1 - before.1);
    let shared = (datagrams, packets) == (1, 20);
    let disturbed = client.metrics().engine.keeper_turns > 0;
    assert!(shared || disturbed, "{packets} packets in {datagrams} datagrams");
    for _ in 1..=20 {
        let completion = client.recv_completion().unwrap();
        let size = completion.cookie as u8;
        assert_eq!(completion.result.unwrap(), vec![size; 10 * usize::from(size)]);
    }
    server.shutdown();
    thread.join().unwrap();
    shared
}
