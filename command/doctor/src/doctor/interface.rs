//! Network interface checks.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;

use ::apus::Settings;
use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};

use super::finding::{Finding, Measurement};
use super::host::SystemFiles;
use apus_measure::program;

/// Location of the interfaces: sysfs(5), `Documentation/ABI/testing/sysfs-class-net`.
const INTERFACES: &str = "/sys/class/net";

/// Checks the interface towards `peer`, or all interfaces in use.
pub(super) fn check(
    host: &SystemFiles,
    peer: Option<SocketAddr>,
    settings: &Settings,
) -> Vec<Finding> {
    let names = match peer {
        Some(peer) => towards(peer).into_iter().collect(),
        None => in_use(),
    };
    if names.is_empty() && peer.is_none() {
        return vec![unconnected(&Interfaces::read())];
    }
    names.iter().flat_map(|name| of(host, name, settings)).collect()
}

/// The interfaces of a host without a way to other hosts.
#[derive(Debug, Default)]
struct Interfaces {
    /// Whether the loopback interface is up.
    has_loopback: bool,
    /// The other interfaces that are up, without an address that other hosts reach.
    up: Vec<String>,
    /// The other interfaces that are down.
    down: Vec<String>,
}

impl Interfaces {
    fn read() -> Self {
        let mut found = Self::default();
        for each in getifaddrs().into_iter().flatten() {
            let is_up = each.flags.contains(InterfaceFlags::IFF_UP);
            if each.flags.contains(InterfaceFlags::IFF_LOOPBACK) {
                found.has_loopback |= is_up;
                continue;
            }
            let names = if is_up { &mut found.up } else { &mut found.down };
            // An interface has an entry for each of its addresses.
            if !names.contains(&each.interface_name) {
                names.push(each.interface_name);
            }
        }
        found
    }
}

/// Reports that no other host can be reached, or not even this one.
fn unconnected(interfaces: &Interfaces) -> Finding {
    const CHECK: &str = "interface";
    let Interfaces { has_loopback, up, down } = interfaces;
    let raise = down.iter().map(|name| format!("ip link set {name} up"));
    let number = up.iter().map(|name| format!("ip address add ADDRESS/LENGTH dev {name}"));
    if !has_loopback {
        return Finding::error(
            CHECK,
            "the loopback interface is down, and no other one has an address",
        )
        .because("No packet is delivered, not even to this host: calls over UDP fail.")
        .fix(["ip link set lo up".to_owned()].into_iter().chain(raise).chain(number));
    }
    let fact = match up.as_slice() {
        [] => "only the loopback interface is up: peers can only be on this host".to_owned(),
        up => {
            let names = up.join(", ");
            format!("{names}: no address that other hosts reach: peers can only be on this host")
        }
    };
    Finding::note(CHECK, fact).fix(raise.chain(number))
}

/// Returns the outgoing interface for packets to `peer`; `None` if they stay on this host, or if
/// the route is unknown.
pub(super) fn towards(peer: SocketAddr) -> Option<String> {
    let local = local_address(peer)?;
    let mut interfaces = getifaddrs().ok()?;
    let owner = interfaces.find(|each| address(each) == Some(local))?;
    (!owner.flags.contains(InterfaceFlags::IFF_LOOPBACK) && local != peer.ip().to_canonical())
        .then_some(owner.interface_name)
}

/// Returns the source address of packets to `peer`.
fn local_address(peer: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if peer.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Returns the interfaces that are up and have an address reachable from other hosts.
fn in_use() -> Vec<String> {
    let up = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let all = getifaddrs().into_iter().flatten();
    let reachable = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => !ip.is_link_local(),
        IpAddr::V6(ip) => !ip.is_unicast_link_local(),
    };
    let mut names: Vec<String> = all
        .filter(|each| {
            each.flags.contains(up) && !each.flags.contains(InterfaceFlags::IFF_LOOPBACK)
        })
        .filter(|each| address(each).is_some_and(reachable))
        .map(|each| each.interface_name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn address(interface: &nix::ifaddrs::InterfaceAddress) -> Option<IpAddr> {
    let storage = interface.address.as_ref()?;
    let v4 = storage.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

fn of(host: &SystemFiles, name: &str, settings: &Settings) -> Vec<Finding> {
    let folder = format!("{INTERFACES}/{name}");
    let index: Option<u32> = host.number(&format!("{folder}/ifindex"));
    if index.is_none() || index != if_nametoindex(name).ok() {
        let fact = format!("{name}: /sys shows the interfaces of another network namespace");
        return vec![Finding::note("interface", fact).because("Its rate and MTU are unknown here.").fix([
            "unshare --mount sh -c 'mount -t sysfs sysfs /sys && apus doctor'  # as root: examine this namespace",
        ])];
    }
    let card = host.has(&format!("{folder}/device"));
    let mut findings = vec![
        rate(host, name, &folder, settings.protocol.link_mbps()),
        mtu(host, name, &folder, settings.udp.max_ip_packet),
    ];
    findings.extend(errors(host, name, &folder));
    match features(name) {
        Some(features) => findings.extend(switches(name, card, &features)),
        None => findings.push(
            Finding::note(
                "interface-offload",
                format!("{name}: its offload features are unknown without `ethtool`"),
            )
            .fix(["apt install ethtool"]),
        ),
    }
    if card {
        findings.extend(coalescing(name));
    }
    findings
}

/// Checks the rate of a link, and the configured rate, which is 0 if apus reads it from the system.
fn rate(host: &SystemFiles, name: &str, folder: &str, configured: u64) -> Finding {
    const CHECK: &str = "link-rate";
    if host.text(&format!("{folder}/duplex")).as_deref() == Some("half") {
        return Finding::error(
            CHECK,
            format!("{name}: cannot send and receive at the same time (half duplex)"),
        )
        .because("Packets of both directions collide and are lost.")
        .fix([format!("ethtool -s {name} autoneg on  # and check the other end of the cable")]);
    }
    let Some(mbps) = host.number::<i64>(&format!("{folder}/speed")).filter(|mbps| *mbps > 0) else {
        if configured > 0 {
            let fact = format!(
                "{name}: does not report its rate; the configuration says {configured} Mbit/s (link_mbps)"
            );
            return Finding::ok(CHECK, fact);
        }
        return Finding::note(CHECK, format!("{name}: does not report its rate"))
            .because(
                "apus then assumes 25 Gbit/s. On a slower link it sends too fast and grants too much.",
            )
            .fix(["link_mbps = 10000  # under [protocol] in the configuration of apus, with the true rate"]);
    };
    if let Some(finding) = configured_rate(name, mbps.unsigned_abs(), configured) {
        return finding;
    }
    let fact = format!("{name}: {mbps} Mbit/s");
    if mbps >= 1_000 {
        return Finding::ok(CHECK, fact);
    }
    Finding::warning(CHECK, fact)
        .because("A faster card negotiates this rate because of a bad cable or the configuration of the switch port.")
        .fix([
            format!("ethtool {name}  # the modes that both ends offer"),
            format!("ethtool -s {name} autoneg on"),
        ])
}

/// Compares the configured rate with the rate of a link; `None` if they agree within a tenth.
fn configured_rate(name: &str, mbps: u64, configured: u64) -> Option<Finding> {
    const CHECK: &str = "link-rate";
    let fact = format!(
        "{name}: {mbps} Mbit/s, and the configuration says {configured} Mbit/s (link_mbps)"
    );
    let fix = [format!("link_mbps = {mbps}  # under [protocol] in the configuration of apus")];
    match configured {
        0 => None,
        _ if 10 * configured > 11 * mbps => Some(
            Finding::warning(CHECK, fact)
                .because("apus sends too fast and grants too much: packets queue up and are lost.")
                .fix(fix),
        ),
        _ if 10 * configured < 9 * mbps => Some(
            Finding::note(CHECK, fact).because("apus uses a part of the link at most.").fix(fix),
        ),
        _ => None,
    }
}

/// MTU of Ethernet in bytes. A smaller MTU indicates a tunnel.
const ETHERNET: u32 = 1_500;

/// Checks the longest packet of a link, and the configured one.
fn mtu(host: &SystemFiles, name: &str, folder: &str, configured: Option<usize>) -> Finding {
    const CHECK: &str = "interface-mtu";
    let Some(mtu) = host.number::<u32>(&format!("{folder}/mtu")) else {
        return Finding::note(CHECK, format!("{name}: its MTU is unknown"));
    };
    let fact = format!("{name}: packets of up to {mtu} bytes");
    if let Some(most) = configured.filter(|most| *most < mtu as usize && mtu >= ETHERNET) {
        return Finding::note(CHECK, format!("{fact}, and the configuration uses {most} (max_ip_packet)"))
            .because("The same data takes more packets.")
            .fix(["max_ip_packet = 65535  # under [udp] in the configuration of apus: as long as the path carries"]);
    }
    match mtu {
        ..1_280 => Finding::error(CHECK, fact)
            .because("apus requires packets of 1280 bytes, as IPv6 does.")
            .fix([format!("ip link set dev {name} mtu 1500")]),
        1_280..ETHERNET => Finding::note(CHECK, fact)
            .because("Less than the 1500 bytes of Ethernet, as in tunnels and clouds: the same data takes more packets.")
            .fix([format!("ip link set dev {name} mtu 1500  # if the network carries it; see `path-mtu`")]),
        _ => Finding::ok(CHECK, fact),
    }
}

/// Reports packets that the interface dropped.
fn errors(host: &SystemFiles, name: &str, folder: &str) -> Option<Finding> {
    const CHECK: &str = "interface-drops";
    let count = |what: &str| host.number::<u64>(&format!("{folder}/statistics/{what}"));
    let dropped = count("rx_dropped")? + count("rx_missed_errors").unwrap_or_default();
    let broken = count("rx_errors").unwrap_or_default();
    if dropped + broken == 0 {
        return Some(Finding::ok(
            CHECK,
            format!("{name}: no packet dropped or damaged on arrival"),
        ));
    }
    let fact = format!("{name}: {dropped} packets dropped on arrival since boot, {broken} damaged");
    Some(
        Finding::note(CHECK, fact)
            .because("Dropped: no room in the ring buffer of the card. Damaged: cable or transceiver.")
            .fix([
                format!(
                    "ethtool -S {name} | grep -i -e drop -e err  # the counters; check whether they grow"
                ),
                format!(
                    "ethtool -g {name}  # the size of the ring buffer; `ethtool -G {name} rx MAXIMUM` sets it"
                ),
            ]),
    )
}

/// Returns the offload features of an interface from `ethtool -k`; `None` if the program is missing
/// or fails.
fn features(name: &str) -> Option<HashMap<String, bool>> {
    Some(switches_in(&ethtool("-k", name)?))
}

fn ethtool(what: &str, name: &str) -> Option<String> {
    let output = Command::new(program::find("ethtool")?)
        .args([what, name])
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Parses lines like `tx-udp-segmentation: on [fixed]`.
fn switches_in(text: &str) -> HashMap<String, bool> {
    let lines = text.lines().filter_map(|line| line.trim().split_once(": "));
    let known = lines.filter_map(|(name, value)| {
        let value = value.split_whitespace().next()?;
        matches!(value, "on" | "off").then(|| (name.to_owned(), value == "on"))
    });
    known.collect()
}

fn switches(name: &str, card: bool, features: &HashMap<String, bool>) -> Vec<Finding> {
    let is_off = |feature: &str| features.get(feature) == Some(&false);
    let mut findings = Vec::new();
    if is_off("generic-segmentation-offload") && is_off("tx-udp-segmentation") {
        let fact = format!(
            "{name}: bursts are split into packets before they pass through the system (GSO off)"
        );
        findings.push(
            Finding::warning("interface-gso", fact)
                .because("Each packet then passes through the system alone.")
                .fix([format!("ethtool -K {name} gso on tx-udp-segmentation on")]),
        );
    } else {
        findings.push(Finding::ok(
            "interface-gso",
            format!("{name}: bursts pass through the system as a whole (GSO on)"),
        ));
    }
    let check = "interface-gro";
    if !is_off("generic-receive-offload") {
        findings
            .push(Finding::ok(check, format!("{name}: packets may be merged on arrival (GRO on)")));
        return findings;
    }
    let fact = format!("{name}: packets are not merged on arrival (GRO off)");
    let finding = if card { Finding::warning(check, fact) } else { Finding::note(check, fact) };
    findings.push(
        finding
            .because(if card {
                "Each packet passes through the system alone, which costs several times the CPU time."
            } else {
                "Usual for a virtual interface, which forwards bursts as they were sent; see `path-merging`."
            })
            .fix([format!("ethtool -K {name} gro on")]),
    );
    findings
}

/// Checks the interrupt delay of a network card.
fn coalescing(name: &str) -> Option<Finding> {
    const CHECK: &str = "interrupt-delay";
    /// Limit in microseconds. Chosen by us: the duration of a call on a fast network.
    const LONG: u32 = 20;
    let text = ethtool("-c", name)?;
    let line = text.lines().find_map(|line| line.strip_prefix("rx-usecs:"))?;
    let usecs: u32 = line.trim().parse().ok()?;
    let fact =
        format!("{name}: waits {usecs} µs for further packets before it raises an interrupt");
    if usecs <= LONG {
        return Some(Finding::ok(CHECK, fact));
    }
    Some(
        Finding::note(CHECK, fact)
            .because("A message that arrives alone waits for this time, once on each side.")
            .with_measurements([Measurement::new(
                "maximum delay of a message that arrives alone",
                f64::from(usecs),
                "us",
            )])
            .fix([format!("ethtool -C {name} adaptive-rx off rx-usecs 3")]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::host::fixture;
    use super::*;
    use crate::doctor::Severity;

    const FOLDER: &str = "/sys/class/net/x0";

    #[test]
    fn rate_and_duplex_are_judged() {
        for (speed, duplex, severity) in [
            ("25000", "full", Severity::Ok),
            ("100", "full", Severity::Warning),
            ("-1", "unknown", Severity::Note),
            ("10", "half", Severity::Error),
        ] {
            let files = [("/sys/class/net/x0/speed", speed), ("/sys/class/net/x0/duplex", duplex)];
            let (host, _root) = fixture::host(&files);
            let finding = rate(&host, "x0", FOLDER, 0);
            assert_eq!(finding.severity, severity, "{finding:?}");
            assert_eq!(finding.fixes.is_empty(), severity == Severity::Ok);
        }
    }

    #[test]
    fn the_configured_rate_and_length_are_compared_with_the_link() {
        let (host, _root) = fixture::host(&[
            ("/sys/class/net/x0/speed", "10000"),
            ("/sys/class/net/x0/mtu", "9000"),
        ]);
        for (configured, severity) in [
            (0, Severity::Ok),
            (10_000, Severity::Ok),
            (25_000, Severity::Warning),
            (1_000, Severity::Note),
        ] {
            let finding = rate(&host, "x0", FOLDER, configured);
            assert_eq!(finding.severity, severity, "{finding:?}");
        }
        let finding = mtu(&host, "x0", FOLDER, Some(1_500));
        assert_eq!(finding.severity, Severity::Note, "{finding:?}");
        assert_eq!(mtu(&host, "x0", FOLDER, Some(65_535)).severity, Severity::Ok);
        let (unknown, _root) = fixture::host(&[("/sys/class/net/x0/speed", "-1")]);
        assert_eq!(rate(&unknown, "x0", FOLDER, 10_000).severity, Severity::Ok);
    }

    #[test]
    fn a_host_without_interfaces_is_an_error() {
        let down = unconnected(&Interfaces::default());
        assert_eq!(
            (down.severity, &down.fixes[..]),
            (Severity::Error, &["ip link set lo up".to_owned()][..])
        );
        let alone = Interfaces { has_loopback: true, ..Interfaces::default() };
        assert_eq!(unconnected(&alone).severity, Severity::Note);
        let names = || vec!["x0".to_owned()];
        let finding = unconnected(&Interfaces { up: names(), ..alone });
        assert!(finding.fact.starts_with("x0: no address"), "{finding:?}");
        let finding = unconnected(&Interfaces { down: names(), ..Interfaces::default() });
        assert_eq!(finding.fixes[1], "ip link set x0 up");
    }

    #[test]
    fn packets_shorter_than_the_protocols_least_are_an_error() {
        for (mtu, severity) in [
            ("576", Severity::Error),
            ("1400", Severity::Note),
            ("1500", Severity::Ok),
            ("9000", Severity::Ok),
        ] {
            let (host, _root) = fixture::host(&[("/sys/class/net/x0/mtu", mtu)]);
            assert_eq!(super::mtu(&host, "x0", FOLDER, None).severity, severity, "{mtu}");
        }
    }

    #[test]
    fn switches_are_read_and_what_is_off_is_named_with_its_command() {
        let features = switches_in(
            "Features for x0:\ngeneric-segmentation-offload: off\ngeneric-receive-offload: off\n\
             \ttx-udp-segmentation: off [fixed]\nrx-gro-list: on\n",
        );
        assert_eq!(features.len(), 4);
        let findings = switches("x0", true, &features);
        assert!(findings.iter().all(|finding| finding.severity == Severity::Warning));
        assert_eq!(findings[1].fixes, ["ethtool -K x0 gro on"]);
        assert_eq!(switches("x0", false, &features)[1].severity, Severity::Note);
        let good = switches("x0", true, &HashMap::new());
        assert!(good.iter().all(|finding| finding.severity == Severity::Ok));
    }

    #[test]
    fn what_was_dropped_is_counted() {
        let files = ["rx_dropped", "rx_errors"].map(|file| format!("{FOLDER}/statistics/{file}"));
        let (host, _root) = fixture::host(&[(&files[0], "17"), (&files[1], "0")]);
        let finding = errors(&host, "x0", FOLDER).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert!(finding.fact.contains("17 packets dropped"));
    }

    #[test]
    fn a_peer_on_this_host_has_no_interface() {
        assert_eq!(towards("127.0.0.1:9".parse().unwrap()), None);
        assert_eq!(local_address("127.0.0.1:9".parse().unwrap()), Some([127, 0, 0, 1].into()));
    }
}
