//! Effects of the UDP driver on peers and on the system, tested with sockets that do not use this
//! crate.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use apus_driver::{Burst, Driver, Ecn, NetworkError};
use apus_socket::{Udp, UdpConfig};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt,
    sockopt::{IpRecvTos, Ipv6RecvTClass},
};
use rustix::event::PollFlags;

use crate::host::{Host, LOOPBACK, bound_to};

/// Sends one packet.
fn send(host: &mut Host, to: SocketAddr, class: u8, packet: &[u8]) {
    host.transmit.send(&Burst { traffic_class: class, ..Burst::single(to, packet) }).unwrap();
}

/// Sends one packet from a local address.
fn send_from(host: &mut Host, from: Option<IpAddr>, to: SocketAddr, packet: &[u8]) {
    host.transmit.send(&Burst { from, ..Burst::single(to, packet) }).unwrap();
}

/// Requirement SEND-9.
#[test]
fn a_batch_of_small_packets_is_one_call_on_each_side() {
    let (mut client, mut server) =
        (Host::open(&bound_to(LOOPBACK)), Host::open(&bound_to(LOOPBACK)));
    for _ in 0..64 {
        send(&mut client, server.address, 0, &[1; 156]);
    }
    assert_eq!(client.counters.send_calls(), 0, "no packet is sent before the flush");
    client.flush();
    assert_eq!(client.counters.send_calls(), 1);
    assert_eq!((client.counters.datagrams_sent(), client.counters.packets_sent()), (1, 64));
    server.wait(PollFlags::IN);
    assert_eq!(server.receive.receive(64).unwrap(), 64);
    assert_eq!((server.counters.receive_calls(), server.counters.datagrams_received()), (1, 1));
    assert_eq!(server.counters.packets_received(), 64);
    server.receive.drain(&mut |arrival| assert_eq!(arrival.packet, [1; 156]));
}

/// The engine uses it to detect the end of a backlog, for any batch size.
#[test]
fn an_incomplete_batch_means_that_nothing_is_left() {
    let mut server = Host::open(&bound_to(LOOPBACK));
    let peer = UdpSocket::bind(LOOPBACK).unwrap();
    for _ in 0..100 {
        peer.send_to(&[1; 156], server.address).unwrap();
    }
    server.wait(PollFlags::IN);
    let mut received = 0;
    loop {
        let packets = server.receive.receive(64).unwrap();
        received += packets;
        if !server.receive.may_have_more() {
            assert!(packets > 0, "it was known without an empty receive");
            break;
        }
    }
    assert_eq!(received, 100);
    assert_eq!(server.receive.receive(64).unwrap(), 0);
    assert!(!server.receive.may_have_more());
}

#[test]
fn packets_to_several_peers_are_one_datagram_each() {
    let mut client = Host::open(&bound_to(LOOPBACK));
    let mut servers: Vec<_> = (0..8).map(|_| Host::open(&bound_to(LOOPBACK))).collect();
    for _ in 0..8 {
        for server in &servers {
            send(&mut client, server.address, 0, &[1; 156]);
        }
    }
    client.flush();
    assert_eq!(client.counters.send_calls(), 1);
    assert_eq!((client.counters.datagrams_sent(), client.counters.packets_sent()), (8, 64));
    for server in &mut servers {
        assert_eq!(server.lengths(8), [156; 8]);
        assert_eq!(server.counters.datagrams_received(), 1);
    }
}

#[test]
fn without_segmentation_one_call_still_sends_many_datagrams() {
    let config = UdpConfig { segmentation_offload: false, ..bound_to(LOOPBACK) };
    let (mut client, mut server) = (Host::open(&config), Host::open(&bound_to(LOOPBACK)));
    for _ in 0..64 {
        send(&mut client, server.address, 0, &[1; 156]);
    }
    client.flush();
    assert_eq!(client.counters.send_calls(), 2, "32 datagrams in each");
    assert_eq!((client.counters.datagrams_sent(), client.counters.packets_sent()), (64, 64));
    assert_eq!(server.lengths(64), [156; 64]);
}

#[test]
fn large_packets_leave_at_once_and_in_one_send() {
    let (mut client, mut server) =
        (Host::open(&bound_to(LOOPBACK)), Host::open(&bound_to(LOOPBACK)));
    send(&mut client, server.address, 0, &[1; 50]);
    let (headers, payload) = ([2; 60 * 7], vec![3; 8900 * 7]);
    let burst = Burst {
        to: server.address,
        from: None,
        traffic_class: 0,
        headers: &headers,
        header_len: 60,
        payload: &[&payload],
        segment: 8900,
        coalesce: 0,
    };
    client.transmit.send(&burst).unwrap();
    assert!(!client.transmit.has_pending());
    assert_eq!(client.counters.send_calls(), 2, "the staged packet, and the burst");
    let arrived = server.lengths(8);
    assert_eq!((arrived[0], &arrived[1..]), (50, &[8960; 7][..]), "in the order of sending");
}

#[test]
fn under_load_a_call_receives_several_datagrams() {
    let (mut client, mut server) =
        (Host::open(&bound_to(LOOPBACK)), Host::open(&bound_to(LOOPBACK)));
    let sizes: Vec<usize> = (0..200).map(|index| 100 + index % 50).collect();
    for chunk in sizes.chunks(10) {
        for size in chunk {
            send(&mut client, server.address, 0, &vec![1; *size]);
        }
        client.flush();
    }
    assert_eq!(server.lengths(200).len(), 200);
    let calls = server.counters.receive_calls();
    assert!(calls < 100, "{calls} calls for {} datagrams", server.counters.datagrams_received());
}

/// A bare socket that reads the traffic classes of received packets.
struct Listener {
    socket: UdpSocket,
    address: SocketAddr,
}

impl Listener {
    fn new(bind: &str) -> Self {
        let socket = UdpSocket::bind(bind).unwrap();
        let address = socket.local_addr().unwrap();
        match address {
            SocketAddr::V4(_) => setsockopt(&socket, IpRecvTos, &true).unwrap(),
            SocketAddr::V6(_) => setsockopt(&socket, Ipv6RecvTClass, &true).unwrap(),
        }
        Self { socket, address }
    }

    fn class(&self) -> i32 {
        let (mut byte, mut space) = ([0; 4], nix::cmsg_space!(i32));
        let mut buffers = [io::IoSliceMut::new(&mut byte)];
        let fd = self.socket.as_raw_fd();
        let message =
            recvmsg::<SockaddrStorage>(fd, &mut buffers, Some(&mut space), MsgFlags::empty());
        let class = message.unwrap().cmsgs().unwrap().find_map(|message| match message {
            ControlMessageOwned::Ipv4Tos(class) => Some(i32::from(class)),
            ControlMessageOwned::Ipv6TClass(class) => Some(class),
            _ => None,
        });
        class.unwrap()
    }
}

/// Requirement PRIO-10.
#[test]
fn every_packet_carries_its_traffic_class() {
    let families =
        [(LOOPBACK, LOOPBACK), ("[::1]:0", "[::1]:0"), ("[::]:0", "[::1]:0"), ("[::]:0", LOOPBACK)];
    for (bind, peer) in families {
        if UdpSocket::bind(peer).and_then(|_| UdpSocket::bind(bind)).is_err() {
            eprintln!("SKIPPED: no address {peer} here");
            continue;
        }
        let (mut client, listener) = (Host::open(&bound_to(bind)), Listener::new(peer));
        // Mixed classes; then enough equal classes to become the default; then others again.
        let classes = [0, 0xb8, 0x20, 0].into_iter().chain([0x48; 100]).chain([0, 0xb8, 0x48]);
        // A class whose packets switches may mark (ECN).
        for class in classes.chain([0xba]) {
            send(&mut client, listener.address, class, b"x");
            client.flush();
            assert_eq!(listener.class(), i32::from(class), "from {bind} to {peer}");
        }
        assert_eq!(client.counters.class_changes(), 1, "from {bind} to {peer}");
    }
}

#[test]
fn without_priorities_all_packets_have_class_zero() {
    let config = UdpConfig { priorities: false, ..bound_to(LOOPBACK) };
    let (mut client, listener) = (Host::open(&config), Listener::new(LOOPBACK));
    for class in [0xb8, 0, 0x20] {
        send(&mut client, listener.address, class, b"x");
    }
    client.flush();
    assert_eq!(client.counters.datagrams_sent(), 1, "so they can be merged");
    assert_eq!([listener.class(), listener.class(), listener.class()], [0; 3]);
}

#[test]
fn congestion_marks_are_reported() {
    for (bind, peer) in [(LOOPBACK, LOOPBACK), ("[::1]:0", "[::1]:0"), ("[::]:0", LOOPBACK)] {
        let Ok(socket) = UdpSocket::bind(peer) else {
            eprintln!("SKIPPED: no address {peer} here");
            continue;
        };
        let mut host = Host::open(&bound_to(bind));
        let to = SocketAddr::new(socket.local_addr().unwrap().ip(), host.address.port());
        for (byte, mark) in
            [(0, Ecn::NotCapable), (2, Ecn::Capable), (3, Ecn::CongestionExperienced)]
        {
            match peer {
                LOOPBACK => rustix::net::sockopt::set_ip_tos(&socket, byte).unwrap(),
                _ => rustix::net::sockopt::set_ipv6_tclass(&socket, byte.into()).unwrap(),
            }
            socket.send_to(b"x", to).unwrap();
            host.wait(PollFlags::IN);
            assert_eq!(host.receive.receive(1).unwrap(), 1);
            host.receive.drain(&mut |arrival| assert_eq!(arrival.ecn, mark, "{bind} from {peer}"));
        }
    }
}

#[test]
fn a_response_leaves_from_the_address_of_the_request() {
    for bind in ["0.0.0.0:0", "[::]:0"] {
        let mut host = Host::open(&bound_to(bind));
        let peer = UdpSocket::bind(LOOPBACK).unwrap();
        // The whole of 127.0.0.0/8 is local.
        for asked in ["127.0.0.2", "127.0.0.3", "127.0.0.1"] {
            let asked: IpAddr = asked.parse().unwrap();
            peer.send_to(b"request", (asked, host.address.port())).unwrap();
            host.wait(PollFlags::IN);
            assert_eq!(host.receive.receive(1).unwrap(), 1);
            let mut to = None;
            host.receive.drain(&mut |arrival| to = arrival.to);
            assert_eq!(to, Some(asked));
            for len in [10, 5000] {
                send_from(&mut host, to, peer.local_addr().unwrap(), &vec![0; len]);
                host.flush();
                let (_, from) = peer.recv_from(&mut [0; 6000]).unwrap();
                assert_eq!(from, SocketAddr::new(asked, host.address.port()));
            }
        }
    }
}

#[test]
fn a_socket_of_one_address_reports_no_destination() {
    let mut host = Host::open(&bound_to(LOOPBACK));
    let peer = UdpSocket::bind(LOOPBACK).unwrap();
    peer.send_to(b"request", host.address).unwrap();
    host.wait(PollFlags::IN);
    host.receive.receive(1).unwrap();
    host.receive.drain(&mut |arrival| assert_eq!(arrival.to, None));
    // It also ignores the source address of a burst, since it has only one address.
    let elsewhere = Some("192.0.2.1".parse().unwrap());
    send_from(&mut host, elsewhere, peer.local_addr().unwrap(), b"answer");
    host.flush();
    assert_eq!(peer.recv_from(&mut [0; 10]).unwrap().1, host.address);
}

#[test]
fn a_source_address_of_another_host_is_reported() {
    let (mut client, mut server) =
        (Host::open(&bound_to("0.0.0.0:0")), Host::open(&bound_to(LOOPBACK)));
    let elsewhere = Some("192.0.2.1".parse().unwrap());
    send_from(&mut client, elsewhere, server.address, b"from elsewhere");
    send(&mut client, server.address, 0, b"from here");
    client.flush();
    assert_eq!(server.lengths(1), [9]);
    assert_eq!(client.reports(), [(server.address, NetworkError::HostUnreachable)]);
}

#[test]
fn an_ipv4_socket_reports_ipv6_peers() {
    let mut client = Host::open(&bound_to(LOOPBACK));
    let peer = "[fd00::1]:7".parse().unwrap();
    send(&mut client, peer, 0, b"x");
    client.flush();
    assert_eq!(client.reports(), [(peer, NetworkError::HostUnreachable)]);
    assert_eq!(client.counters.packets_refused(), 1);
}

#[test]
fn mapped_addresses_are_ipv4_addresses() {
    let (mut client, mut server) =
        (Host::open(&bound_to(LOOPBACK)), Host::open(&bound_to(LOOPBACK)));
    let mapped = format!("[::ffff:127.0.0.1]:{}", server.address.port()).parse().unwrap();
    send(&mut client, mapped, 0, b"x");
    send(&mut client, mapped, 0xb8, b"y");
    client.flush();
    assert_eq!(server.lengths(2), [1, 1]);
    let bound = Host::open(&bound_to("[::ffff:127.0.0.1]:0"));
    assert_eq!(bound.address.ip(), "127.0.0.1".parse::<IpAddr>().unwrap());
}

#[test]
fn an_empty_datagram_is_a_packet_without_bytes() {
    let mut host = Host::open(&bound_to(LOOPBACK));
    let peer = UdpSocket::bind(LOOPBACK).unwrap();
    peer.send_to(b"", host.address).unwrap();
    peer.send_to(b"x", host.address).unwrap();
    assert_eq!(host.lengths(2), [0, 1]);
}

#[test]
fn datagrams_that_overflow_the_buffer_are_counted() {
    let config = UdpConfig { receive_buffer: 20_000, ..bound_to(LOOPBACK) };
    let mut host = Host::open(&config);
    let peer = UdpSocket::bind(LOOPBACK).unwrap();
    let mut sent = 200;
    for _ in 0..sent {
        peer.send_to(&[0; 1000], host.address).unwrap();
    }
    let mut arrived = host.lengths(1).len();
    // The system reports overflows with the next datagram that arrives.
    while arrived as u64 + host.counters.datagrams_overflowed() < sent {
        sent += 1;
        peer.send_to(b"tell", host.address).unwrap();
        arrived += host.lengths(1).len();
    }
    assert!(host.counters.datagrams_overflowed() > 0);
    assert_eq!(arrived as u64 + host.counters.datagrams_overflowed(), sent);
}

#[test]
fn without_reports_no_error_is_reported() {
    let config = UdpConfig { reports: false, ..bound_to(LOOPBACK) };
    let mut client = Host::open(&config);
    let closed = UdpSocket::bind(LOOPBACK).unwrap();
    closed.connect(closed.local_addr().unwrap()).unwrap();
    for _ in 0..10 {
        send(&mut client, closed.local_addr().unwrap(), 0, b"x");
        client.flush();
        assert!(client.reports().is_empty());
        assert_eq!(client.receive.receive(64).unwrap(), 0);
    }
    assert_eq!(client.counters.error_reads(), 0);
}

#[test]
fn without_errors_the_error_queue_is_not_read() {
    let (mut client, mut server) =
        (Host::open(&bound_to(LOOPBACK)), Host::open(&bound_to(LOOPBACK)));
    for _ in 0..100 {
        send(&mut client, server.address, 0, b"x");
        client.flush();
        assert!(client.reports().is_empty());
        assert_eq!(client.receive.receive(64).unwrap(), 0);
    }
    assert_eq!(server.lengths(100).len(), 100);
    assert_eq!(client.counters.error_reads(), 0, "the error queue was never read");
}

#[test]
fn missing_features_are_reported() {
    let all = Udp::open(&bound_to(LOOPBACK)).unwrap().capabilities();
    assert!(all.reports && all.ecn && all.priorities && all.receive_buffer > 0);
    let config = UdpConfig {
        segmentation_offload: false,
        receive_offload: false,
        priorities: false,
        reports: false,
        ..bound_to(LOOPBACK)
    };
    let none = Udp::open(&config).unwrap().capabilities();
    assert_eq!(none.segments_per_send, 1);
    assert!(!none.receive_offload && !none.priorities && !none.reports);
}

#[test]
fn busy_polling_is_off_by_default_and_the_granted_time_is_reported() {
    let granted = |busy_poll_usecs| {
        let config = UdpConfig { busy_poll_usecs, ..bound_to(LOOPBACK) };
        Udp::open(&config).unwrap().capabilities().busy_poll_usecs
    };
    assert_eq!(granted(0), 0);
    // Without privileges or kernel support it is refused, and the rest works.
    assert!([0, 50].contains(&granted(50)), "all or nothing");
}
