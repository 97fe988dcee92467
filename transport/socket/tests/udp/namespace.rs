//! The UDP driver on slow, narrow and missing networks.
//!
//! Each test runs again inside a new network namespace, which it configures with `ip` and `tc`.

#[path = "../../../apus/tests/namespace/mod.rs"]
mod shared;

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use apus_driver::{Burst, Driver, NetworkError};
use apus_socket::{Udp, UdpConfig};
use rustix::event::PollFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use shared::Namespace;

use crate::host::{Host, LOOPBACK, bound_to};

/// Fails without the programs that the tests use.
const CHECK: &str =
    "command -v ip && command -v tc && ip link set lo up && mount -t sysfs none /sys";

/// Runs `body`, the test `name`, in a new namespace after the shell has run `setup` there.
fn in_namespace(name: &str, setup: &str, body: impl FnOnce()) {
    let name = format!("{}::{name}", module_path!().split_once("::").unwrap().1);
    let setup = format!("ip link set lo up\n{setup}");
    Namespace { needs: "ip and tc", check: CHECK, setup: &setup }.run(&name, body);
}

/// Sends `count` packets of `len` bytes that start with `number`, in one burst.
fn send(host: &mut Host, to: SocketAddr, number: u32, count: usize, len: usize) {
    let headers = number.to_be_bytes().repeat(count);
    let payload = vec![0; count * (len - 4)];
    let burst = Burst {
        header_len: 4,
        payload: &[&payload],
        segment: len - 4,
        ..Burst::single(to, &headers)
    };
    host.transmit.send(&burst).unwrap();
}

/// Returns the number at the start of a packet.
fn number_of(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[..4].try_into().unwrap())
}

/// Sends packets over a link that is too slow for them. Each must arrive exactly once.
fn through_a_slow_link(config: &UdpConfig, len: usize) {
    let (mut client, mut server) = (Host::open(config), Host::open(&bound_to(LOOPBACK)));
    let (mut got, mut times_full) = (Vec::new(), 0);
    for number in 0..100 {
        send(&mut client, server.address, number, 10, len);
        client.flush();
        while !client.transmit.has_room() {
            assert!(client.transmit.has_pending(), "TRANSMIT-1: unsent packets are kept");
            times_full += 1;
            client.wait(PollFlags::OUT);
            client.flush();
            server.receive_all(&mut |packet| got.push(number_of(packet)));
        }
        assert!(!client.transmit.has_pending(), "DRIVER-5");
    }
    server.collect(1000 - got.len(), &mut |packet| got.push(number_of(packet)));
    got.sort_unstable();
    let sent: Vec<u32> = (0..100).flat_map(|number| [number; 10]).collect();
    assert_eq!(got, sent);
    assert!(times_full > 0, "the link was not slow enough for this test");
}

#[test]
fn a_full_send_buffer_keeps_small_packets_for_later() {
    let setup = "tc qdisc add dev lo root tbf rate 200mbit burst 70kb limit 20mb";
    in_namespace("a_full_send_buffer_keeps_small_packets_for_later", setup, || {
        let config = UdpConfig { send_buffer: 20_000, ..bound_to(LOOPBACK) };
        through_a_slow_link(&config, 1000);
    });
}

#[test]
fn a_full_send_buffer_keeps_large_packets_for_later() {
    let setup = "tc qdisc add dev lo root tbf rate 1gbit burst 70kb limit 20mb";
    in_namespace("a_full_send_buffer_keeps_large_packets_for_later", setup, || {
        let config = UdpConfig { send_buffer: 20_000, ..bound_to(LOOPBACK) };
        through_a_slow_link(&config, 8000);
    });
}

#[test]
fn a_full_interface_queue_loses_nothing() {
    // The system returns ENOBUFS then. Without segmentation, as half of a merged datagram may be
    // lost.
    let setup = "tc qdisc add dev lo root tbf rate 200mbit burst 10kb limit 30kb";
    in_namespace("a_full_interface_queue_loses_nothing", setup, || {
        let config = UdpConfig { segmentation_offload: false, ..bound_to(LOOPBACK) };
        through_a_slow_link(&config, 1000);
    });
}

#[test]
fn packets_sent_without_room_are_dropped_and_counted() {
    let setup = "tc qdisc add dev lo root tbf rate 1mbit burst 10kb limit 20mb";
    in_namespace("packets_sent_without_room_are_dropped_and_counted", setup, || {
        let config = UdpConfig { send_buffer: 5_000, ..bound_to(LOOPBACK) };
        let mut client = Host::open(&config);
        let server = Host::open(&bound_to(LOOPBACK));
        while client.transmit.has_room() {
            send(&mut client, server.address, 0, 10, 1000);
            client.flush();
        }
        send(&mut client, server.address, 1, 7, 1000);
        assert_eq!(client.counters.packets_dropped(), 7);
    });
}

/// Requirement WIRE-25.
#[test]
fn the_mtu_of_a_narrow_path_is_known_and_longer_packets_are_reported() {
    let setup = "ip link set lo mtu 1500";
    in_namespace(
        "the_mtu_of_a_narrow_path_is_known_and_longer_packets_are_reported",
        setup,
        || {
            let (mut client, mut server) =
                (Host::open(&bound_to(LOOPBACK)), Host::open(&bound_to(LOOPBACK)));
            let to = server.address;
            assert_eq!(client.transmit.packet_limit(to), 1500 - 28);
            let (mut got, mut reports) = (Vec::new(), 0);
            // One packet and several, staged and gathered.
            for (count, len) in [(1, 1473), (3, 2000), (1, 5000), (7, 5000)] {
                send(&mut client, to, 1, 1, 100);
                send(&mut client, to, 0, count, len);
                send(&mut client, to, 2, 3, 1472);
                client.flush();
                got.clear();
                server.collect(4, &mut |packet| got.push(number_of(packet)));
                got.sort_unstable();
                assert_eq!(got, [1, 2, 2, 2], "{count} packets of {len} bytes affect no others");
                let refused = client.reports();
                assert!(refused.iter().all(|report| *report == (to, NetworkError::TooBig)));
                reports += refused.len();
            }
            assert_eq!(reports, 1 + 3 + 1 + 7, "one for each packet: each was tried by itself");
        },
    );
}

#[test]
fn a_missing_route_is_reported() {
    let setup = "
        ip route add prohibit 192.0.2.1
        ip route add unreachable 192.0.2.2
        ip route add blackhole 192.0.2.3";
    in_namespace("a_missing_route_is_reported", setup, || {
        let (mut client, mut server) =
            (Host::open(&bound_to("0.0.0.0:0")), Host::open(&bound_to(LOOPBACK)));
        let cases = [
            ("192.0.2.1:7", NetworkError::NotPermitted),
            ("192.0.2.2:7", NetworkError::HostUnreachable),
            ("192.0.2.3:7", NetworkError::HostUnreachable),
            ("192.0.2.4:7", NetworkError::HostUnreachable),
        ];
        for (peer, error) in cases {
            let peer = peer.parse().unwrap();
            for (count, len) in [(1, 100), (5, 100), (2, 6000)] {
                send(&mut client, peer, 0, count, len);
                send(&mut client, server.address, 1, 1, 100);
                client.flush();
                let mut got = Vec::new();
                server.collect(1, &mut |packet| got.push(number_of(packet)));
                assert_eq!(got, [1]);
                let reports = client.reports();
                assert!(!reports.is_empty(), "{peer}");
                assert!(reports.iter().all(|report| *report == (peer, error)), "{reports:?}");
            }
        }
    });
}

#[test]
fn a_host_that_does_not_answer_is_reported_by_icmp() {
    // No host has the address, and its resolution times out quickly.
    let setup = "
        ip link add left type veth peer name right
        ip addr add 10.9.0.1/24 dev left
        ip link set left up
        ip link set right up
        echo 1 > /proc/sys/net/ipv4/neigh/left/mcast_solicit
        echo 20 > /proc/sys/net/ipv4/neigh/left/retrans_time_ms";
    in_namespace("a_host_that_does_not_answer_is_reported_by_icmp", setup, || {
        let mut client = Host::open(&bound_to("10.9.0.1:0"));
        let peer: SocketAddr = "10.9.0.2:7".parse().unwrap();
        send(&mut client, peer, 0, 1, 100);
        client.flush();
        assert!(client.reports().is_empty(), "the address is not resolved yet");
        // The report must wake a waiting thread, exactly once.
        let (mut reports, began) = (Vec::new(), Instant::now());
        while reports.is_empty() {
            assert!(began.elapsed() < Duration::from_secs(60), "woken repeatedly without a report");
            client.wait(PollFlags::IN);
            client.receive_all(&mut |_| ());
            reports = client.reports();
        }
        assert!(reports.iter().all(|report| *report == (peer, NetworkError::HostUnreachable)));
        assert!(!client.is_readable(), "one report wakes once");
    });
}

#[test]
fn the_rate_of_the_link_is_found() {
    let setup = "
        ip link add left type veth peer name right
        ip addr add 10.9.0.1/24 dev left
        ip link set left up
        ip link set right up
        mount -t sysfs none /sys";
    in_namespace("the_rate_of_the_link_is_found", setup, || {
        let rate = |bind| Udp::open(&bound_to(bind)).unwrap().capabilities().link_mbps;
        // The rate that veth devices report.
        assert_eq!(rate("10.9.0.1:0"), Some(10_000));
        assert_eq!(rate("127.0.0.1:0"), Some(100_000), "as fast as memory");
        assert_eq!(rate("0.0.0.0:0"), None, "there is no network card here");
    });
}

/// Sends single packets until `server` has a connected socket.
fn connect(client: &mut Host, server: &mut Host) {
    for _ in 0..2_000 {
        send(client, server.address, 0, 1, 100);
        client.flush();
        server.collect(1, &mut |packet| assert_eq!(packet.len(), 100));
    }
    assert!(client.counters.peers_connected() > 0);
}

/// Runs a program of the system in this namespace.
fn run(command: &str) {
    let mut words = command.split(' ');
    let status = Command::new(words.next().unwrap()).args(words).status().unwrap();
    assert!(status.success(), "{command}");
}

#[test]
fn a_connected_socket_that_is_full_loses_nothing() {
    in_namespace("a_connected_socket_that_is_full_loses_nothing", "", || {
        // Once the send buffers are full, and once the queue of the interface is.
        for (segmentation_offload, limit) in [(true, "20mb"), (false, "30kb")] {
            let config =
                UdpConfig { send_buffer: 20_000, segmentation_offload, ..bound_to(LOOPBACK) };
            let (mut client, mut server) = (Host::open(&config), Host::open(&bound_to(LOOPBACK)));
            connect(&mut client, &mut server);
            run(&format!("tc qdisc replace dev lo root tbf rate 200mbit burst 10kb limit {limit}"));
            let (mut got, mut times_full) = (Vec::new(), 0);
            let sent = client.counters.connected_sends();
            let mut number = 0;
            // On a busy machine the link may drain between two sends; more sends then fill it.
            while number < 500 || times_full == 0 && number < 100_000 {
                send(&mut client, server.address, number, 1, 1000);
                client.flush();
                while !client.transmit.has_room() {
                    times_full += 1;
                    client.wait(PollFlags::OUT);
                    client.flush();
                    server.receive_all(&mut |packet| got.push(number_of(packet)));
                }
                number += 1;
                if number % 500 == 0 {
                    // The server's buffer has room for a few thousand packets.
                    server.receive_all(&mut |packet| got.push(number_of(packet)));
                }
            }
            server.collect(number as usize - got.len(), &mut |packet| got.push(number_of(packet)));
            got.sort_unstable();
            assert_eq!(got, (0..number).collect::<Vec<_>>());
            assert!(times_full > 0, "the link was not slow enough for this test");
            assert!(client.counters.connected_sends() > sent);
            run("tc qdisc del dev lo root");
        }
    });
}

/// In addition to the loopback device.
const ONE_MORE_ADDRESS: &str = "
    ip link add left type veth peer name right
    ip addr add 10.9.0.1/24 dev left
    ip link set left up
    ip link set right up";

#[test]
fn drivers_of_one_port_have_connected_sockets_beside_each_other() {
    let name = "drivers_of_one_port_have_connected_sockets_beside_each_other";
    in_namespace(name, ONE_MORE_ADDRESS, || {
        let mut here = Host::open(&bound_to(LOOPBACK));
        let mut there = Host::open(&bound_to(&format!("10.9.0.1:{}", here.address.port())));
        let mut servers = ["127.0.0.1:0", "10.9.0.1:0"].map(|bind| Host::open(&bound_to(bind)));
        for (client, server) in [&mut here, &mut there].into_iter().zip(&mut servers) {
            connect(client, server);
            send(client, server.address, 0, 1, 100);
            client.flush();
            server.wait(PollFlags::IN);
            server.receive.receive(1).unwrap();
            server.receive.drain(&mut |arrival| assert_eq!(arrival.from, client.address));
            // Responses arrive at the driver's own socket.
            send(server, client.address, 0, 1, 99);
            server.flush();
            assert_eq!(client.lengths(1), [99]);
        }
    });
}

#[test]
fn a_connected_socket_follows_its_route() {
    in_namespace("a_connected_socket_follows_its_route", ONE_MORE_ADDRESS, || {
        let (mut client, mut server) =
            (Host::open(&bound_to("0.0.0.0:0")), Host::open(&bound_to("10.9.0.1:0")));
        let mut other = Host::open(&bound_to(LOOPBACK));
        connect(&mut client, &mut server);
        // A path whose MTU shrinks: longer packets are reported, as without such a socket.
        run("ip link set lo mtu 1500");
        let to = server.address;
        send(&mut client, to, 0, 1, 1473);
        client.flush();
        assert_eq!(client.reports(), [(to, NetworkError::TooBig)]);
        send(&mut client, to, 0, 1, 1472);
        client.flush();
        assert_eq!(server.lengths(1), [1472]);
        // The route and the source address vanish.
        let mut second = Host::open(&bound_to("0.0.0.0:0"));
        connect(&mut second, &mut server);
        run("ip addr del 10.9.0.1/24 dev left");
        for client in [&mut client, &mut second] {
            send(client, to, 0, 1, 100);
            send(client, other.address, 0, 1, 100);
            client.flush();
            send(client, to, 0, 1, 100);
            client.flush();
            let reports = client.reports();
            assert_eq!(reports, [(to, NetworkError::HostUnreachable); 2]);
            assert_eq!(other.lengths(1), [100]);
        }
        // They are restored.
        run("ip addr add 10.9.0.1/24 dev left");
        send(&mut second, to, 0, 1, 100);
        second.flush();
        assert_eq!(server.lengths(1), [100]);
        second.reports();
        let before = second.counters.peers_connected();
        for _ in 0..2_000 {
            send(&mut second, to, 0, 1, 100);
            second.flush();
            server.collect(1, &mut |packet| assert_eq!(packet.len(), 100));
        }
        assert!(second.counters.peers_connected() > before, "a socket that failed is replaced");
    });
}

#[test]
fn without_descriptors_everything_leaves_through_the_one_socket() {
    in_namespace("without_descriptors_everything_leaves_through_the_one_socket", "", || {
        let (mut client, mut server) =
            (Host::open(&bound_to(LOOPBACK)), Host::open(&bound_to(LOOPBACK)));
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..before }).unwrap();
        for _ in 0..2_000 {
            send(&mut client, server.address, 0, 1, 100);
            client.flush();
            server.collect(1, &mut |packet| assert_eq!(packet.len(), 100));
        }
        setrlimit(Resource::Nofile, before).unwrap();
        assert_eq!(client.counters.peers_connected(), 0);
        assert!(client.reports().is_empty());
        connect(&mut client, &mut server);
    });
}
