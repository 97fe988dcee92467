//! The network of a test: a namespace with one host that has several addresses, and a way out that
//! ends nowhere.

#[path = "../namespace/mod.rs"]
mod shared;

use shared::Namespace;

/// Addresses for both ends of honest calls and for an attacker; packets to all others leave through
/// `outside`, one by one, and are lost.
const SETUP: &str = "ip link set lo up
    ip link add outside type veth peer name nowhere
    for host in 1 2 3; do ip addr add 192.0.2.$host/24 dev outside; done
    ip link set outside arp off gso_max_segs 1
    ip link set nowhere arp off
    ip link set nowhere up
    ip link set outside up
    ip route add default dev outside";

/// Bytes of the header of a link.
const LINK_HEADER: u64 = 14;

/// Runs `body`, which is the test `name` of the binary, in a new namespace.
pub(crate) fn in_namespace(name: &str, body: impl FnOnce()) {
    Namespace { needs: "ip with veth", check: SETUP, setup: SETUP }.run(name, body);
}

/// Bytes of IP packets that have left through `outside`.
pub(crate) fn bytes_sent_outside() -> u64 {
    let table = std::fs::read_to_string("/proc/self/net/dev").unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix("outside:")).unwrap();
    let columns: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let (bytes, packets) = (columns[8], columns[9]);
    bytes - LINK_HEADER * packets
}
