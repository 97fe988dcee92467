//! Is the network interface set up as it should be?

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};

use super::finding::{Finding, Measured};
use super::host::Host;
use apus_testbed::fabric::Tool;

/// Where Linux describes its interfaces: sysfs(5), `Documentation/ABI/testing/sysfs-class-net`.
const INTERFACES: &str = "/sys/class/net";

/// The interface that leads to `peer`, or all that are in use.
pub(super) fn check(host: &Host, peer: Option<SocketAddr>) -> Vec<Finding> {
    let names = match peer {
        Some(peer) => towards(peer).into_iter().collect(),
        None => in_use(),
    };
    if names.is_empty() && peer.is_none() {
        let found = "no interface but the loopback one is up: peers can only be on this host";
        return vec![Finding::note("interface", found)];
    }
    names.iter().flat_map(|name| of(host, name)).collect()
}

/// The interface by which packets to `peer` leave; `None` if they do not leave this host, or nobody knows.
pub(super) fn towards(peer: SocketAddr) -> Option<String> {
    let local = local_address(peer)?;
    let mut interfaces = getifaddrs().ok()?;
    let owner = interfaces.find(|each| address(each) == Some(local))?;
    (!owner.flags.contains(InterfaceFlags::IFF_LOOPBACK) && local != peer.ip().to_canonical())
        .then_some(owner.interface_name)
}

/// The address that packets to `peer` come from.
fn local_address(peer: SocketAddr) -> Option<IpAddr> {
    let any: SocketAddr = if peer.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Interfaces that are up and have an address that others can reach.
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

fn of(host: &Host, name: &str) -> Vec<Finding> {
    let folder = format!("{INTERFACES}/{name}");
    let shown: Option<u32> = host.number(&format!("{folder}/ifindex"));
    if shown.is_none() || shown != if_nametoindex(name).ok() {
        let found = format!("{name}: /sys shows the interfaces of another network namespace");
        return vec![Finding::note("interface", found).because("Its rate and MTU are not known here.").mend([
            "unshare --mount sh -c 'mount -t sysfs sysfs /sys && apus doctor'  # as root: look from inside",
        ])];
    }
    let card = host.has(&format!("{folder}/device"));
    let mut findings = vec![rate(host, name, &folder), mtu(host, name, &folder)];
    findings.extend(errors(host, name, &folder));
    match features(name) {
        Some(features) => findings.extend(switches(name, card, &features)),
        None => findings.push(
            Finding::note(
                "interface-offload",
                format!("{name}: its switches are not known without `ethtool`"),
            )
            .mend(["apt install ethtool"]),
        ),
    }
    if card {
        findings.extend(coalescing(name));
    }
    findings
}

fn rate(host: &Host, name: &str, folder: &str) -> Finding {
    const CHECK: &str = "link-rate";
    if host.text(&format!("{folder}/duplex")).as_deref() == Some("half") {
        return Finding::error(CHECK, format!("{name}: sends and receives by turns (half duplex)"))
            .because("Whoever talks at the same time loses packets; no transport bears that.")
            .mend([format!(
                "ethtool -s {name} autoneg on  # and look at the other end of the cable"
            )]);
    }
    let Some(mbps) = host.number::<i64>(&format!("{folder}/speed")).filter(|mbps| *mbps > 0) else {
        return Finding::note(CHECK, format!("{name}: does not say how fast it is"))
            .because(
                "apus then reckons with 25 Gbit/s: it does not hold back what the link cannot carry, and grants as much.",
            )
            .mend(["link_mbps = 10000  # under [protocol] in apus' configuration, with the true rate"]);
    };
    let found = format!("{name}: {mbps} Mbit/s");
    if mbps >= 1_000 {
        return Finding::ok(CHECK, found);
    }
    Finding::warning(CHECK, found)
        .because("Cards that can more negotiate this with a bad cable or a port that is set to it.")
        .mend([
            format!("ethtool {name}  # what both ends offer"),
            format!("ethtool -s {name} autoneg on"),
        ])
}

/// Shorter packets than this do not occur on Ethernet but in tunnels.
const ETHERNET: u32 = 1_500;

fn mtu(host: &Host, name: &str, folder: &str) -> Finding {
    const CHECK: &str = "interface-mtu";
    let Some(mtu) = host.number::<u32>(&format!("{folder}/mtu")) else {
        return Finding::note(CHECK, format!("{name}: its MTU is not known"));
    };
    let found = format!("{name}: packets of up to {mtu} bytes");
    match mtu {
        ..1_280 => Finding::error(CHECK, found)
            .because("apus sends packets of up to 1280 bytes whatever a path says, as IPv6 does.")
            .mend([format!("ip link set dev {name} mtu 1500")]),
        1_280..ETHERNET => Finding::note(CHECK, found)
            .because("Less than Ethernet's 1500, as in tunnels and clouds: more packets for the same bytes.")
            .mend([format!("ip link set dev {name} mtu 1500  # if the network carries it: see `path-mtu`")]),
        _ => Finding::ok(CHECK, found),
    }
}

/// What the interface could not take.
fn errors(host: &Host, name: &str, folder: &str) -> Option<Finding> {
    const CHECK: &str = "interface-drops";
    let count = |what: &str| host.number::<u64>(&format!("{folder}/statistics/{what}"));
    let dropped = count("rx_dropped")? + count("rx_missed_errors").unwrap_or_default();
    let broken = count("rx_errors").unwrap_or_default();
    if dropped + broken == 0 {
        return Some(Finding::ok(
            CHECK,
            format!("{name}: nothing dropped and nothing broken on arrival"),
        ));
    }
    let found =
        format!("{name}: {dropped} packets dropped on arrival since the start, {broken} broken");
    Some(
        Finding::note(CHECK, found)
            .because("Dropped: no room in the card's ring. Broken: cable or transceiver.")
            .mend([
                format!(
                    "ethtool -S {name} | grep -i -e drop -e err  # which, and whether they grow"
                ),
                format!(
                    "ethtool -g {name}  # the ring's size; `ethtool -G {name} rx MAXIMUM` sets it"
                ),
            ]),
    )
}

/// The interface's switches, as `ethtool -k` lists them; `None` without that program, or if it refuses.
fn features(name: &str) -> Option<HashMap<String, bool>> {
    Some(switches_in(&ethtool("-k", name)?))
}

fn ethtool(what: &str, name: &str) -> Option<String> {
    let output = Command::new(Tool::Ethtool.find().ok()?)
        .args([what, name])
        .env("LC_ALL", "C")
        .output()
        .ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Lines like `tx-udp-segmentation: on [fixed]`.
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
        let found =
            format!("{name}: bursts are cut into packets before the system moves them (GSO off)");
        findings.push(
            Finding::warning("interface-gso", found)
                .because("Each packet then passes the whole way through the system by itself.")
                .mend([format!("ethtool -K {name} gso on tx-udp-segmentation on")]),
        );
    } else {
        findings.push(Finding::ok(
            "interface-gso",
            format!("{name}: bursts stay together until they leave"),
        ));
    }
    let check = "interface-gro";
    if !is_off("generic-receive-offload") {
        findings.push(Finding::ok(
            check,
            format!("{name}: packets may be put together on arrival (GRO on)"),
        ));
        return findings;
    }
    let found = format!("{name}: packets are not put together on arrival (GRO off)");
    let finding = if card { Finding::warning(check, found) } else { Finding::note(check, found) };
    findings.push(
        finding
            .because(if card {
                "Each packet passes the system by itself, which takes several times the processor time."
            } else {
                "Usual for a virtual interface, which passes on bursts as they were sent; see `path-merging`."
            })
            .mend([format!("ethtool -K {name} gro on")]),
    );
    findings
}

/// How long the card waits for more before it interrupts.
fn coalescing(name: &str) -> Option<Finding> {
    const CHECK: &str = "interrupt-delay";
    /// Microseconds. Ours: what a call takes on a fast network.
    const LONG: u32 = 20;
    let text = ethtool("-c", name)?;
    let line = text.lines().find_map(|line| line.strip_prefix("rx-usecs:"))?;
    let usecs: u32 = line.trim().parse().ok()?;
    let found = format!("{name}: waits {usecs} µs for further packets before it interrupts");
    if usecs <= LONG {
        return Some(Finding::ok(CHECK, found));
    }
    Some(
        Finding::note(CHECK, found)
            .because("Each message that comes alone waits for so long, once on each side.")
            .measured([Measured::new(
                "at most, for a message that comes alone",
                f64::from(usecs),
                "us",
            )])
            .mend([format!("ethtool -C {name} adaptive-rx off rx-usecs 3")]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::host::planted;
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
            let (host, _root) = planted::host(&files);
            let finding = rate(&host, "x0", FOLDER);
            assert_eq!(finding.severity, severity, "{finding:?}");
            assert_eq!(finding.mend.is_empty(), severity == Severity::Ok);
        }
    }

    #[test]
    fn packets_shorter_than_the_protocols_least_are_an_error() {
        for (mtu, severity) in [
            ("576", Severity::Error),
            ("1400", Severity::Note),
            ("1500", Severity::Ok),
            ("9000", Severity::Ok),
        ] {
            let (host, _root) = planted::host(&[("/sys/class/net/x0/mtu", mtu)]);
            assert_eq!(super::mtu(&host, "x0", FOLDER).severity, severity, "{mtu}");
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
        assert_eq!(findings[1].mend, ["ethtool -K x0 gro on"]);
        assert_eq!(switches("x0", false, &features)[1].severity, Severity::Note);
        let good = switches("x0", true, &HashMap::new());
        assert!(good.iter().all(|finding| finding.severity == Severity::Ok));
    }

    #[test]
    fn what_was_dropped_is_counted() {
        let files = ["rx_dropped", "rx_errors"].map(|file| format!("{FOLDER}/statistics/{file}"));
        let (host, _root) = planted::host(&[(&files[0], "17"), (&files[1], "0")]);
        let finding = errors(&host, "x0", FOLDER).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert!(finding.found.contains("17 packets dropped"));
    }

    #[test]
    fn a_peer_on_this_host_has_no_interface() {
        assert_eq!(towards("127.0.0.1:9".parse().unwrap()), None);
        assert_eq!(local_address("127.0.0.1:9".parse().unwrap()), Some([127, 0, 0, 1].into()));
    }
}
