//! What does ICMP say, whom does it concern, and what becomes of it? Rows P-23, X-10.

use std::net::SocketAddr;

use apus_driver::NetworkError;

use crate::doorman::{Answer, Doorman, HOST_UNREACHABLE, PORT_UNREACHABLE};
use crate::host::{Host, packet};
use crate::namespace::{Namespace, Pair, possible};

const FAMILIES: [(&str, &str); 2] =
    [("10.9.0.1:0", "10.9.0.2:4242"), ("[fd09::1]:0", "[fd09::2]:4242")];

/// Sends a packet to a peer that somebody answers for; the trouble that is reported.
fn trouble(pair: &Pair, from: &str, to: &str, answer: Answer) -> NetworkError {
    let to: SocketAddr = to.parse().unwrap();
    let mut host = Host::open(&pair.left, from);
    let _doorman = Doorman::new(&pair.right, to, answer);
    host.send(to, 0, 100);
    let troubles = host.await_troubles();
    let [(peer, trouble, returned)] = &troubles[..] else { panic!("{troubles:?}") };
    assert_eq!(*peer, to, "with the port that the packet was for");
    assert!(returned.len() >= 28, "the header names the RPC: {} bytes", returned.len());
    assert!(packet(host.address.port(), to.port(), 100).starts_with(returned));
    assert!(!host.is_readable(), "one report wakes once");
    *trouble
}

#[test]
fn a_closed_port_and_a_lost_host_are_told_apart() {
    if !possible("a_closed_port_and_a_lost_host_are_told_apart") {
        return;
    }
    let pair = Pair::new();
    for (from, to) in FAMILIES {
        assert_eq!(trouble(&pair, from, to, PORT_UNREACHABLE), NetworkError::PortClosed);
        assert_eq!(trouble(&pair, from, to, HOST_UNREACHABLE), NetworkError::HostUnreachable);
    }
}

/// Reference 8.2 item 18.
#[test]
fn a_host_without_the_protocol_says_so_and_one_with_it_does_not() {
    if !possible("a_host_without_the_protocol_says_so_and_one_with_it_does_not") {
        return;
    }
    let pair = Pair::new();
    for (from, to) in FAMILIES {
        let mut host = Host::open(&pair.left, from);
        let to: SocketAddr = to.parse().unwrap();
        host.send(to, 0, 100);
        let troubles = host.await_troubles();
        assert_eq!((troubles[0].0, troubles[0].1), (to, NetworkError::ProtocolUnreachable));
        // R1: from now on it speaks it.
        let mut peer = Host::open(&pair.right, &to.to_string());
        host.send(to, 0, 100);
        assert_eq!(peer.get().len(), 1);
        assert_eq!((host.take(), host.troubles()), (vec![], vec![]));
    }
}

/// All raw sockets of a host get the errors of all packets.
#[test]
fn the_troubles_of_others_are_not_ours() {
    if !possible("the_troubles_of_others_are_not_ours") {
        return;
    }
    let pair = Pair::new();
    for (from, to) in FAMILIES {
        let to: SocketAddr = to.parse().unwrap();
        let mut ours = Host::open(&pair.left, from);
        let mut others = Host::open(&pair.left, from);
        let mut peer = Host::open(&pair.right, &SocketAddr::new(to.ip(), 4000).to_string());
        let _doorman = Doorman::new(&pair.right, to, PORT_UNREACHABLE);
        for _ in 0..10 {
            others.send(to, 0, 100);
            assert_eq!(others.await_troubles().len(), 1);
            // It is woken, and sends and receives as if nothing were.
            ours.send(peer.address, 0, 60);
            assert_eq!(peer.get().len(), 1);
            assert_eq!(ours.take(), []);
            assert_eq!(ours.troubles(), []);
            assert!(!ours.is_readable());
        }
        assert_eq!(ours.counters.packets_refused(), 0);
    }
}

/// A path through a router that carries less than the interface.
#[test]
fn a_narrow_path_is_learnt_from_icmp() {
    if !possible("a_narrow_path_is_learnt_from_icmp") {
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
        let troubles = host.await_troubles();
        assert_eq!((troubles[0].0, troubles[0].1), (to, NetworkError::TooBig));
        assert_eq!(host.transmit.packet_limit(to), 1400 - header, "the path has been learnt");
        // And now without a router: the system knows.
        host.send(to, 0, 1400 - header + 1);
        assert_eq!(host.troubles()[0].1, NetworkError::TooBig);
        host.send(to, 0, 1400 - header);
        assert_eq!(peer.get()[0].packet.len(), 1400 - header);
    }
}
