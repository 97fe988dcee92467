//! ICMP errors: they are reported to the sender of the packet, and only to it.
//! Source: HM `homa_incoming.c` `homa_dispatch_pkts`, `homa_rpc.c` `homa_abort_rpcs`.

use std::net::SocketAddr;

use apus_driver::NetworkError;

use crate::host::{Host, packet};
use crate::icmp_responder::{Answer, HOST_UNREACHABLE, IcmpResponder, PORT_UNREACHABLE};
use crate::namespace::{Namespace, Pair, can_run};

const FAMILIES: [(&str, &str); 2] =
    [("10.9.0.1:0", "10.9.0.2:4242"), ("[fd09::1]:0", "[fd09::2]:4242")];

/// Sends a packet to a peer with a responder; returns the reported error.
fn reported_error(pair: &Pair, from: &str, to: &str, answer: Answer) -> NetworkError {
    let to: SocketAddr = to.parse().unwrap();
    let mut host = Host::open(&pair.left, from);
    let _responder = IcmpResponder::new(&pair.right, to, answer);
    host.send(to, 0, 100);
    let reports = host.wait_for_reports();
    let [(peer, error, returned)] = &reports[..] else { panic!("{reports:?}") };
    assert_eq!(*peer, to, "including the destination port of the packet");
    assert!(returned.len() >= 28, "the header identifies the RPC: {} bytes", returned.len());
    assert!(packet(host.address.port(), to.port(), 100).starts_with(returned));
    assert!(!host.is_readable(), "one report wakes once");
    *error
}

#[test]
fn a_closed_port_differs_from_an_unreachable_host() {
    if !can_run("a_closed_port_differs_from_an_unreachable_host") {
        return;
    }
    let pair = Pair::new();
    for (from, to) in FAMILIES {
        let error = reported_error(&pair, from, to, PORT_UNREACHABLE);
        assert_eq!(error, NetworkError::PortClosed);
        let error = reported_error(&pair, from, to, HOST_UNREACHABLE);
        assert_eq!(error, NetworkError::HostUnreachable);
    }
}

/// Source: Rules for peers, item 18.
#[test]
fn a_host_without_the_protocol_reports_it_and_one_with_it_does_not() {
    if !can_run("a_host_without_the_protocol_reports_it_and_one_with_it_does_not") {
        return;
    }
    let pair = Pair::new();
    for (from, to) in FAMILIES {
        let mut host = Host::open(&pair.left, from);
        let to: SocketAddr = to.parse().unwrap();
        host.send(to, 0, 100);
        let reports = host.wait_for_reports();
        assert_eq!((reports[0].0, reports[0].1), (to, NetworkError::ProtocolUnreachable));
        // RAW-1: from now on the host supports the protocol.
        let mut peer = Host::open(&pair.right, &to.to_string());
        host.send(to, 0, 100);
        assert_eq!(peer.wait_and_receive().len(), 1);
        assert_eq!((host.receive_all(), host.reports()), (vec![], vec![]));
    }
}

/// All raw sockets of a host receive the errors of all packets.
#[test]
fn errors_of_other_endpoints_are_not_reported() {
    if !can_run("errors_of_other_endpoints_are_not_reported") {
        return;
    }
    let pair = Pair::new();
    for (from, to) in FAMILIES {
        let to: SocketAddr = to.parse().unwrap();
        let mut own = Host::open(&pair.left, from);
        let mut other = Host::open(&pair.left, from);
        let mut peer = Host::open(&pair.right, &SocketAddr::new(to.ip(), 4000).to_string());
        let _responder = IcmpResponder::new(&pair.right, to, PORT_UNREACHABLE);
        for _ in 0..10 {
            other.send(to, 0, 100);
            assert_eq!(other.wait_for_reports().len(), 1);
            // The error wakes this driver, but does not affect its packets.
            own.send(peer.address, 0, 60);
            assert_eq!(peer.wait_and_receive().len(), 1);
            assert_eq!(own.receive_all(), []);
            assert_eq!(own.reports(), []);
            assert!(!own.is_readable());
        }
        assert_eq!(own.counters.packets_refused(), 0);
    }
}

/// A router on the path has a smaller MTU than the interface.
#[test]
fn the_mtu_of_a_path_is_learnt_from_icmp() {
    if !can_run("the_mtu_of_a_path_is_learnt_from_icmp") {
        return;
    }
    let (pair, far) = (Pair::new(), Namespace::new());
    pair.right.run(&format!(
        "ip link add narrow type veth peer name narrow netns {}
         sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
         ip addr add 10.8.0.1/24 dev narrow
         ip addr add fd08::1/64 dev narrow nodad
         ip link set narrow mtu 1400 up",
        far.pid()
    ));
    far.run(
        "ip addr add 10.8.0.2/24 dev narrow
         ip addr add fd08::2/64 dev narrow nodad
         ip link set narrow mtu 1400 up
         ip route add default via 10.8.0.1
         ip route add default via fd08::1
         until ip link show narrow | grep -q 'state UP'; do :; done
         ip link set narrow up",
    );
    pair.right.run(
        "until ip link show narrow | grep -q 'state UP'; do :; done
         ip link set narrow up",
    );
    pair.left.run("ip route add default via 10.9.0.2; ip route add default via fd09::2");
    pair.left.enter();
    for (from, to, header) in
        [("10.9.0.1:0", "10.8.0.2:4000", 20), ("[fd09::1]:0", "[fd08::2]:4000", 40)]
    {
        let to: SocketAddr = to.parse().unwrap();
        let (mut host, mut peer) =
            (Host::open(&pair.left, from), Host::open(&far, &to.to_string()));
        assert_eq!(host.transmit.packet_limit(to), 1500 - header);
        host.send(to, 0, 1500 - header);
        let reports = host.wait_for_reports();
        assert_eq!((reports[0].0, reports[0].1), (to, NetworkError::TooBig));
        assert_eq!(host.transmit.packet_limit(to), 1400 - header, "the MTU has been learnt");
        // Now the local system reports the error.
        host.send(to, 0, 1400 - header + 1);
        assert_eq!(host.reports()[0].1, NetworkError::TooBig);
        host.send(to, 0, 1400 - header);
        assert_eq!(peer.wait_and_receive()[0].packet.len(), 1400 - header);
    }
}
