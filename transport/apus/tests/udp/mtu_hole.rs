//! A router whose second link carries 1,300 bytes, and whose ICMP reports do not arrive: a path MTU
//! black hole (SEND-16).
//!
//! Client and server are in namespaces of their own. A rule of the router's routing tables, which
//! needs no firewall, drops its reports.

use super::pair::Namespace as Host;
use crate::namespace::Namespace;
use apus::{Endpoint, EndpointBuilder};
use std::net::SocketAddr;

const CHECK: &str =
    "ip link add a type veth peer name b && ip rule add pref 50 ipproto icmp prohibit";
const NAME: &str = "mtu_hole::long_messages_pass_a_path_that_drops_long_packets";

/// The address of the server.
const SERVER: &str = "10.9.2.2:0";

#[test]
fn long_messages_pass_a_path_that_drops_long_packets() {
    Namespace { needs: "ip with veth and rules", check: CHECK, setup: "" }.run(NAME, inside);
}

/// Connects two hosts by a router.
fn connect(client: &Host, router: &Host, server: &Host) {
    let router_pid = router.pid();
    for (host, link, net) in [(client, "ra", 1), (server, "rb", 2)] {
        host.run(&format!(
            "ip link add eth type veth peer name {link}; ip link set {link} netns {router_pid}
             ip addr add 10.9.{net}.2/24 dev eth; ip link set eth up"
        ));
        router.run(&format!("ip addr add 10.9.{net}.1/24 dev {link}; ip link set {link} up"));
        host.run(&format!("ip route add default via 10.9.{net}.1"));
    }
    router.run("echo 1 > /proc/sys/net/ipv4/ip_forward");
    // Its own reports alone: packets of the hosts are UDP.
    router.run("ip link set rb mtu 1300; ip rule add pref 50 ipproto icmp prohibit");
}

fn inside() {
    let (near, router, far) = (Host::new(), Host::new(), Host::new());
    connect(&near, &router, &far);
    let builder = EndpointBuilder::default().local(false);
    let server = far.inside(|| builder.clone().bind(SERVER).unwrap());
    let client = near.inside(|| builder.client().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| serve(&server));
        exchange(&client, server.local_addr());
        server.shutdown();
    });
}

fn serve(server: &Endpoint) {
    while let Ok(mut request) = server.recv_request() {
        let payload = request.take_payload();
        // A call whose client does not wait any more has failed there.
        let _ = request.reply(payload);
    }
}

fn exchange(client: &Endpoint, server: SocketAddr) {
    assert_eq!(client.call(server, "short").unwrap(), "short");
    assert_eq!(client.metrics().protocol.recovery.paths_narrowed, 0);
    for bytes in [20_000, 1_000_000] {
        let message = vec![7; bytes];
        assert_eq!(client.call(server, message.clone()).unwrap(), message);
    }
    assert_eq!(client.metrics().protocol.recovery.paths_narrowed, 1);
}
