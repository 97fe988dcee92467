//! Guarantees of a raw socket, tested against sockets that do not use this crate.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::process::Command;

use apus_driver::{Driver, NetworkError};
use apus_socket::{Raw, RawConfig, RawOpenError};
use rustix::fd::OwnedFd;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketType, bind, recvfrom, sendto, socket,
};

use crate::host::{Host, ReceivedPacket, packet};
use crate::namespace::{Namespace, Pair, can_run};

const LEFT: &str = "10.9.0.1:0";
const RIGHT: &str = "10.9.0.2:4000";

/// Opens a bare socket of the protocol.
fn bare(host: &Namespace, address: &str) -> OwnedFd {
    let address = SocketAddr::new(address.parse().unwrap(), 0);
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    host.inside(|| {
        let homa = Some(Protocol::from_raw(146.try_into().unwrap()));
        let socket = socket(family, SocketType::RAW, homa).unwrap();
        bind(&socket, &address).unwrap();
        socket
    })
}

#[test]
fn packets_for_other_ports_do_not_wake_the_driver() {
    if !can_run("packets_for_other_ports_do_not_wake_the_driver") {
        return;
    }
    let pair = Pair::new();
    for (from, to) in [("10.9.0.1", "10.9.0.2:4000"), ("fd09::1", "[fd09::2]:4000")] {
        let sender = bare(&pair.left, from);
        let mut host = Host::open(&pair.right, to);
        let to = SocketAddr::new(host.address.ip(), 0);
        let send = |bytes: &[u8]| sendto(&sender, bytes, SendFlags::empty(), &to).unwrap();
        // None of these passes the filter: other ports, the driver's port as the source, and
        // packets too short for ports.
        for wrong in [packet(4000, 4001, 60), packet(7, 0, 60), packet(7, 4001, 4), vec![0x0f; 3]] {
            send(&wrong);
        }
        // A raw socket without a filter shows when all have arrived.
        let witness = bare(&pair.right, &host.address.ip().to_string());
        send(&packet(9, 9, 30));
        let mut buffer = [0; 100];
        recvfrom(&witness, &mut buffer, RecvFlags::empty()).unwrap();
        assert!(!host.is_readable(), "{to}: woken by packets of others");
        send(&packet(7, 4000, 60));
        let from = SocketAddr::new(from.parse().unwrap(), 7);
        assert_eq!(host.wait_and_receive(), [ReceivedPacket { from, packet: packet(7, 4000, 60) }]);
        assert_eq!((host.counters.packets_received(), host.counters.datagrams_cut()), (1, 0));
    }
}

/// A BPF program that expects the port behind 20 bytes would miss it here.
#[test]
fn ip_options_do_not_hide_the_ports() {
    if !can_run("ip_options_do_not_hide_the_ports") {
        return;
    }
    let pair = Pair::new();
    let sender = bare(&pair.left, "10.9.0.1");
    // Four "no operation" options.
    socket2::SockRef::from(&sender).set_header_included_v4(true).unwrap();
    let mut host = Host::open(&pair.right, RIGHT);
    let homa = packet(7, 4000, 40);
    let mut ip = vec![0x46, 0, 0, 0, 0, 0, 0x40, 0, 64, 146, 0, 0, 10, 9, 0, 1, 10, 9, 0, 2];
    ip.extend([1; 4]);
    ip.extend(&homa);
    sendto(&sender, &ip, SendFlags::empty(), &host.address).unwrap();
    let from = "10.9.0.1:7".parse().unwrap();
    assert_eq!(host.wait_and_receive(), [ReceivedPacket { from, packet: homa }]);
}

/// Requirement PRIO-10, HM `homa_outgoing.c` `__homa_xmit_data`; kernel interop: DF set, one Homa
/// packet in each IP packet.
#[test]
fn every_packet_carries_its_class_and_is_never_fragmented() {
    if !can_run("every_packet_carries_its_class_and_is_never_fragmented") {
        return;
    }
    let pair = Pair::new();
    let listener = bare(&pair.right, "10.9.0.2");
    let mut host = Host::open(&pair.left, LEFT);
    let to = "10.9.0.2:9".parse().unwrap();
    let mut buffer = [0; 2000];
    // Mixed classes; then enough equal classes to become the default; then others again.
    let classes = [0, 0xe0, 0xc0, 0].into_iter().chain([0x20; 20]).chain([0, 0xe0]);
    for (number, class) in classes.enumerate() {
        let len = [28, 56, 1480][number % 3];
        host.send(to, class, len);
        let (got, ..) = recvfrom(&listener, &mut buffer[..], RecvFlags::empty()).unwrap();
        assert_eq!(got, 20 + len);
        assert_eq!((buffer[1], buffer[9]), (class, 146));
        assert_eq!(buffer[6] & 0x60, 0x40, "don't fragment, and no more fragments");
        assert_eq!(buffer[20..got], packet(host.address.port(), 9, len));
    }
    assert_eq!(host.counters.class_changes(), 1);
}

#[test]
fn ipv6_carries_its_class_too() {
    if !can_run("ipv6_carries_its_class_too") {
        return;
    }
    let pair = Pair::new();
    let listener = bare(&pair.right, "fd09::2");
    rustix::net::sockopt::set_ipv6_recvtclass(&listener, true).unwrap();
    let mut host = Host::open(&pair.left, "[fd09::1]:0");
    // A bare socket reads the class, like the peer's driver for congestion marks.
    for class in [0, 0xe0, 0x20, 0x20, 0x20, 0x20, 0x20, 0xe0] {
        host.send("[fd09::2]:9".parse().unwrap(), class, 60);
        assert_eq!(class_of(&listener), class);
    }
}

/// Returns the traffic class of the next packet of an IPv6 socket.
fn class_of(socket: &OwnedFd) -> u8 {
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg};
    use std::os::fd::AsRawFd;
    let (mut bytes, mut space) = ([0; 100], nix::cmsg_space!(i32));
    let mut buffers = [std::io::IoSliceMut::new(&mut bytes)];
    let (fd, flags) = (socket.as_raw_fd(), MsgFlags::empty());
    let message = recvmsg::<SockaddrStorage>(fd, &mut buffers, Some(&mut space), flags).unwrap();
    let mut cmsgs = message.cmsgs().unwrap();
    let class = cmsgs.find_map(|message| match message {
        ControlMessageOwned::Ipv6TClass(class) => u8::try_from(class).ok(),
        _ => None,
    });
    class.unwrap()
}

/// docs/reference/homa-module.md, *Packet types*: 1424 bytes of data in a packet over Ethernet,
/// 1404 over IPv6.
#[test]
fn the_packet_limit_equals_the_kernel_modules() {
    if !can_run("the_packet_limit_equals_the_kernel_modules") {
        return;
    }
    let pair = Pair::new();
    pair.left.enter();
    for (bind, peer, data) in [(LEFT, RIGHT, 1424), ("[fd09::1]:0", "[fd09::2]:9", 1404)] {
        let mut host = Host::open(&pair.left, bind);
        assert_eq!(host.transmit.packet_limit(peer.parse().unwrap()), 56 + data);
    }
}

#[test]
fn a_port_has_one_endpoint_and_is_free_afterwards() {
    if !can_run("a_port_has_one_endpoint_and_is_free_afterwards") {
        return;
    }
    let (host, other) = (Namespace::new(), Namespace::new());
    let open = |host: &Namespace, bind: &str| {
        let config = RawConfig::bound_to(bind.parse().unwrap());
        host.inside(|| Raw::open(&config))
    };
    let first = open(&host, "127.0.0.1:4000").unwrap();
    let error = open(&host, "127.0.0.2:4000").unwrap_err();
    assert!(matches!(error, RawOpenError::PortInUse { .. }), "{error}");
    assert_eq!(std::io::Error::from(error).kind(), ErrorKind::AddrInUse);
    // The same port of another protocol, and of another host.
    drop(open(&host, "[::1]:4000").unwrap());
    drop(open(&other, "127.0.0.1:4000").unwrap());
    let (transmit, receive) = Box::new(first).split();
    drop(transmit);
    open(&host, "127.0.0.1:4000").unwrap_err();
    drop(receive);
    open(&host, "127.0.0.1:4000").unwrap();
    let any = open(&host, "127.0.0.1:0").unwrap();
    assert!(any.local_addr().port() >= 0x8000);
    let error = open(&host, "192.0.2.1:4000").unwrap_err().to_string();
    assert!(error.starts_with("bind 192.0.2.1:4000: "), "{error}");
}

#[test]
fn opening_without_the_capability_explains_how_to_grant_it() {
    if !can_run("opening_without_the_capability_explains_how_to_grant_it") {
        return;
    }
    const INSIDE: &str = "APUS_TEST_WITHOUT_CAPABILITY";
    if std::env::var_os(INSIDE).is_some() {
        let error = Raw::open(&RawConfig::bound_to(LEFT.parse().unwrap())).unwrap_err();
        let text = error.to_string();
        let program = std::env::current_exe().unwrap();
        let advice = format!("`sudo setcap cap_net_raw+ep {}`", program.display());
        assert!(
            matches!(error, RawOpenError::NotPermitted { .. }) && text.contains(&advice),
            "{text}"
        );
        return;
    }
    let test = std::env::current_exe().unwrap();
    let name = "socket::opening_without_the_capability_explains_how_to_grant_it";
    let output = Command::new("setpriv")
        .args(["--bounding-set=-net_raw", "--inh-caps=-net_raw"])
        .arg(test)
        .args(["--exact", name])
        .env(INSIDE, "1")
        .output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: {name}: it needs setpriv");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_driver_reaches_only_peers_of_its_family() {
    if !can_run("a_driver_reaches_only_peers_of_its_family") {
        return;
    }
    let host = Namespace::new();
    let cases = [("127.0.0.1:0", "[::1]:9"), ("[::]:0", "127.0.0.1:9"), ("[::1]:0", "127.0.0.1:9")];
    for (bind, peer) in cases {
        let (mut driver, peer) = (Host::open(&host, bind), peer.parse().unwrap());
        driver.send(peer, 0, 60);
        let reports = driver.reports();
        assert_eq!(reports.len(), 1);
        assert_eq!((reports[0].0, reports[0].1), (peer, NetworkError::HostUnreachable));
    }
}
