//! The network of a test: a namespace with one host that has several addresses, and a way out that ends nowhere.

use std::process::Command;

/// Set inside the namespace.
const INSIDE: &str = "APUS_TEST_ATTACKS";

/// Addresses for both ends of honest calls and for an attacker; packets to all others leave through `outside`, one
/// by one, and are lost.
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
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--net", "sh", "-ec", script]);
        command
    };
    if !unshare(SETUP).output().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: {name} needs unshare, ip with veth, and namespaces");
        return;
    }
    let script = format!("{SETUP}\nexec \"$0\" --exact {name} --nocapture");
    let test = std::env::current_exe().unwrap();
    let output = unshare(&script).arg(test).env(INSIDE, "1").output().unwrap();
    let (text, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let passed = output.status.success() && text.contains("test result: ok. 1 passed");
    assert!(passed, "in the namespace:\n{text}{errors}");
}

/// Bytes of IP packets that have left through `outside`.
pub(crate) fn bytes_sent_outside() -> u64 {
    let table = std::fs::read_to_string("/proc/self/net/dev").unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix("outside:")).unwrap();
    let columns: Vec<u64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let (bytes, packets) = (columns[8], columns[9]);
    bytes - LINK_HEADER * packets
}
