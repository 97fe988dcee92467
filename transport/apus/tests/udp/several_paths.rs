//! Two hosts whose flows the system spreads over two links, by their addresses and ports (ECMP).

use super::{ShutDown, bytes, echo, over_udp};
use crate::pair::{Namespace, can_run};
use apus::{Config, Endpoint, EndpointBuilder};

const LENGTH: usize = 3_000_000;

/// Two hosts with one address each, 10.7.0.1 and 10.7.0.2, reached over two links.
struct Hosts {
    left: Namespace,
    right: Namespace,
}

impl Hosts {
    fn new() -> Self {
        let (left, right) = (Namespace::new(), Namespace::new());
        for link in [1, 2] {
            left.run(&format!(
                "ip link add link{link} type veth peer name link{link} netns {}",
                right.pid()
            ));
        }
        for (host, me, other) in [(&left, 1, 2), (&right, 2, 1)] {
            host.run(&format!(
                "sysctl -qw net.ipv4.fib_multipath_hash_policy=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
                 ip addr add 10.7.0.{me}/32 dev lo
                 for link in 1 2; do
                     ip addr add 10.7.$link.{me}/24 dev link$link
                     ip link set link$link mtu 1500 up
                 done
                 ip route add 10.7.0.{other}/32 src 10.7.0.{me} \
                     nexthop via 10.7.1.{other} dev link1 nexthop via 10.7.2.{other} dev link2"
            ));
        }
        Self { left, right }
    }

    /// Returns the bytes that have left `host` through each of its links.
    fn sent(host: &Namespace) -> [u64; 2] {
        let script =
            "cat /sys/class/net/link1/statistics/tx_bytes /sys/class/net/link2/statistics/tx_bytes";
        // A new mount of sysfs shows the devices of the namespace.
        let text =
            host.output_of(&format!("unshare --mount sh -ec 'mount -t sysfs none /sys; {script}'"));
        let mut links = text.lines().map(|line| line.parse().unwrap());
        [(); 2].map(|()| links.next().unwrap())
    }
}

/// Returns the least share of the bytes of a request and of its response that took one of the two
/// links.
fn least_shares(hosts: &Hosts, builder: &EndpointBuilder) -> [f64; 2] {
    let server = hosts.right.inside(|| builder.clone().bind("10.7.0.2:0").unwrap());
    let client = hosts.left.inside(|| builder.clone().bind("10.7.0.1:0").unwrap());
    let _shut_down = ShutDown(&[&client, &server]);
    let served = echo(server.clone());
    let before = [&hosts.left, &hosts.right].map(Hosts::sent);
    let message = bytes(1, LENGTH);
    let call = |client: &Endpoint| client.call(server.local_addr(), message.clone()).unwrap();
    assert!(call(&client) == message[..]);
    let after = [&hosts.left, &hosts.right].map(Hosts::sent);
    server.shutdown();
    served.join().unwrap();
    [0, 1].map(|end| {
        let [first, second] = [0, 1].map(|link| after[end][link] - before[end][link]);
        assert!(first + second > LENGTH as u64, "all bytes took one of the links");
        first.min(second) as f64 / (first + second) as f64
    })
}

/// SEND-15.
#[test]
fn a_long_message_takes_both_links() {
    if !can_run("a_long_message_takes_both_links") {
        return;
    }
    let hosts = Hosts::new();
    let with = |spray_ports| {
        // A busy machine causes no RESENDs: they would end the spraying of a message.
        let config = Config::builder().timeout_usecs(60_000_000).resend_usecs(10_000_000);
        let config =
            config.resend_interval_usecs(10_000_000).spray_ports(spray_ports).build().unwrap();
        over_udp().config(config)
    };
    for share in least_shares(&hosts, &with(0)) {
        assert!(share < 0.05, "all DATA from one port takes one link: {share}");
    }
    // Of 32 ports, fewer than three on one of the links are drawn once in four million.
    for share in least_shares(&hosts, &with(32)) {
        assert!(share > 0.05, "{share}");
    }
}
