//! Path checks with a listener: priorities, MTU, losses and merging of bursts.

use std::net::SocketAddr;

use ::apus::Settings;
use apus_socket::UdpConfig;

use super::client::{ProbeClient, ProbeResult};
use super::packet::MIN_LEN;
use super::traffic_class::{classes, without_ecn};
use crate::doctor::finding::{Finding, Measurement, Severity};
use crate::doctor::host::SystemFiles;
use crate::doctor::interface;
use apus_measure::error::Error;

/// Packet length in bytes supported by every path: RFC 8200 section 5.
const MIN_MTU: usize = 1_280;

/// Ethernet's MTU in bytes, unless all interfaces of a network are configured for more.
const ETHERNET: usize = 1_500;

/// Extra bytes beyond the MTU that interfaces accept for a VLAN tag.
const TAG: usize = 4;

/// Number of bursts. Chosen by us: enough that a single loss is significant, within a second.
const TRAINS: usize = 8;

/// Runs all checks that need a listener.
pub(super) fn check(
    host: &SystemFiles,
    client: &mut ProbeClient,
    peer: SocketAddr,
    settings: &Settings,
) -> Result<Vec<Finding>, Error> {
    let priorities = priorities(client, peer)?;
    let mut findings = vec![without_priorities(priorities, settings)];
    let longest = settings.udp.max_ip_packet.unwrap_or(UdpConfig::default().max_ip_packet);
    let (mtu, carried) = mtu(client, peer, longest)?;
    findings.push(mtu);
    let bytes = settings.protocol.unsched_bytes_max() as usize;
    findings.extend(bursts(host, client, peer, (carried - headers(peer), bytes))?);
    Ok(findings)
}

/// Returns the length of IP and UDP headers in bytes.
pub(super) fn headers(peer: SocketAddr) -> usize {
    if peer.ip().to_canonical().is_ipv4() { 28 } else { 48 }
}

/// Turns the loss of priorities into a note if the configuration uses none.
pub(super) fn without_priorities(finding: Finding, settings: &Settings) -> Finding {
    if settings.protocol.num_priorities() > 1 || finding.severity != Severity::Warning {
        return finding;
    }
    let fact = format!("{}; the configuration uses none (num_priorities = 1)", finding.fact);
    Finding::note(finding.check, fact)
}

/// Checks whether traffic classes arrive unchanged in both directions.
fn priorities(client: &mut ProbeClient, peer: SocketAddr) -> Result<Finding, Error> {
    const CHECK: &str = "path-priorities";
    let (mut there, mut back, mut vanished) = (Vec::new(), Vec::new(), Vec::new());
    for class in classes() {
        match client.echo(MIN_LEN, class, MIN_LEN)? {
            ProbeResult::Response(answer) => {
                // The peer sends its response with the requested class.
                let wrong = |received| {
                    (without_ecn(received) != class).then_some((class, without_ecn(received)))
                };
                there.extend(wrong(answer.observation.class));
                back.extend(wrong(answer.class));
            }
            ProbeResult::Silence | ProbeResult::Refused(_) => vanished.push(class),
        }
    }
    let listed = |changes: &[(u8, u8)]| {
        let each = changes.iter().map(|(sent, received)| format!("{sent:#04x} as {received:#04x}"));
        each.collect::<Vec<_>>().join(", ")
    };
    if !vanished.is_empty() {
        let which: Vec<String> = vanished.iter().map(|class| format!("{class:#04x}")).collect();
        let fact =
            format!("packets with traffic class {} do not arrive; others do", which.join(", "));
        return Ok(Finding::error(CHECK, fact)
            .because("A device on the path drops packets by traffic class: messages of some lengths are never delivered.")
            .fix(priority_fixes(peer)));
    }
    let fact = match (there.is_empty(), back.is_empty()) {
        (true, true) => {
            return Ok(Finding::ok(
                CHECK,
                "all eight traffic classes arrive unchanged in both directions",
            ));
        }
        (false, true) => {
            format!("priorities are lost on the way there: {}", listed(&there))
        }
        (true, false) => format!("priorities are lost on the way back: {}", listed(&back)),
        (false, false) => {
            format!("priorities are lost on the way there and back: {}", listed(&there))
        }
    };
    Ok(Finding::warning(CHECK, fact)
        .because(
            "Short messages then wait behind long ones in the queues of switches: with a single level, the 99th percentile \
             of short messages is ten times as high under load (docs/tuning.md).",
        )
        .fix(priority_fixes(peer)))
}

/// Commands that locate the loss of classes, and settings that work without classes.
pub(super) fn priority_fixes(peer: SocketAddr) -> Vec<String> {
    vec![
        "nft list ruleset | grep -n dscp  # on both hosts: rules that change the class".to_owned(),
        format!("tcpdump -v -n udp port {}  # on the peer: `tos` of arriving packets", peer.port()),
        "mls qos trust dscp  # on the ports of a Cisco switch; on others: trust DSCP, strict priority queues".to_owned(),
        "num_priorities = 1  # or, under [protocol] in the configuration of apus, this and the next line: no priorities".to_owned(),
        "max_incoming = 10000".to_owned(),
    ]
}

/// Checks whether full packets of up to `longest` bytes arrive. Returns the length of the longest
/// IP packet that arrives.
fn mtu(
    client: &mut ProbeClient,
    peer: SocketAddr,
    longest: usize,
) -> Result<(Finding, usize), Error> {
    const CHECK: &str = "path-mtu";
    let known = client.path_mtu().unwrap_or(MIN_MTU);
    let full = known.min(longest).max(MIN_MTU);
    let there = find_mtu(full, |length| passes(client, peer, length, false))?;
    let device = interface::towards(peer).unwrap_or_else(|| "DEVICE".to_owned());
    let Some(there) = there else {
        let fact = format!("packets of {MIN_MTU} bytes do not arrive; short ones do");
        let finding = Finding::error(CHECK, fact)
            .because("Every request of more than a few hundred bytes is lost.")
            .fix([format!("tracepath -n {}  # finds the link with the small MTU", peer.ip())]);
        return Ok((finding, MIN_LEN + headers(peer)));
    };
    if there < full {
        let fact = format!(
            "packets of {full} bytes are lost on the way; packets of up to {there} bytes arrive"
        );
        let finding = Finding::error(CHECK, fact)
            .because(
                "The path MTU is smaller than this host assumes, and no ICMP error reports it. Messages longer than a \
                 packet are retransmitted until they fail.",
            )
            .fix([
                format!("ip link set dev {device} mtu {}  # on this host and on the peer", advised_mtu(there)),
                format!("tracepath -n {}  # or: finds the link with the small MTU; every switch port must carry {full} bytes", peer.ip()),
                format!("max_ip_packet = {there}  # or: under [udp] in the configuration of apus"),
            ]);
        return Ok((finding, there));
    }
    // Responses are no longer than requests, so the forward path must be measured first.
    let back = find_mtu(full, |length| passes(client, peer, length, true))?.unwrap_or(MIN_MTU);
    if back < full {
        let fact = format!(
            "packets of {full} bytes arrive but are lost on the way back; packets of up to {back} bytes return"
        );
        let finding = Finding::error(CHECK, fact)
            .because("The path MTU is smaller than the peer assumes. Its long responses are retransmitted until they fail.")
            .fix([format!("ip link set dev DEVICE mtu {}  # on the peer", advised_mtu(back))]);
        return Ok((finding, there));
    }
    Ok((
        Finding::ok(CHECK, format!("full packets of {full} bytes arrive in both directions")),
        full,
    ))
}

/// Returns the MTU to configure if packets of `length` bytes pass.
const fn advised_mtu(length: usize) -> usize {
    match length {
        ETHERNET..=1_504 => ETHERNET,
        length => length,
    }
}

/// Returns whether an IP packet of `length` bytes arrives, and if `returns` is set, whether a
/// response of the same length arrives too.
fn passes(
    client: &mut ProbeClient,
    peer: SocketAddr,
    length: usize,
    returns: bool,
) -> Result<bool, Error> {
    let payload = length - headers(peer);
    let room = if returns { payload } else { MIN_LEN };
    let reply = client.echo(payload, 0, room)?;
    Ok(
        matches!(reply, ProbeResult::Response(answer) if answer.observation.length as usize == payload),
    )
}

/// Returns the greatest length from [`MIN_MTU`] to `full` that passes; `None` if even [`MIN_MTU`]
/// fails.
fn find_mtu(
    full: usize,
    mut passes: impl FnMut(usize) -> Result<bool, Error>,
) -> Result<Option<usize>, Error> {
    if passes(full)? {
        return Ok(Some(full));
    }
    if !passes(MIN_MTU)? {
        return Ok(None);
    }
    // Common lengths first, since each failing length costs a full timeout.
    let (mut good, mut bad) = (MIN_MTU, full);
    for usual in [ETHERNET, 1_400, 9_000, ETHERNET + 1, ETHERNET + TAG + 1] {
        if good < usual && usual < bad {
            if passes(usual)? { good = usual } else { bad = usual }
        }
    }
    while bad - good > 1 {
        let middle = usize::midpoint(good, bad);
        if passes(middle)? { good = middle } else { bad = middle }
    }
    Ok(Some(good))
}

/// Checks whether bursts of `bytes`, in packets with `payload` bytes, arrive completely and merged.
fn bursts(
    host: &SystemFiles,
    client: &mut ProbeClient,
    peer: SocketAddr,
    (payload, bytes): (usize, usize),
) -> Result<Vec<Finding>, Error> {
    let packets = (bytes / payload).clamp(1, 64);
    let (mut sent, mut arrived, mut receives) = (0, 0, 0);
    for _ in 0..TRAINS {
        if let Some((packets_seen, receives_seen)) = client.train(packets, payload)? {
            sent += packets;
            arrived += packets_seen as usize;
            receives += receives_seen as usize;
        }
    }
    let check = "path-loss";
    if sent == 0 {
        let fact = "no response after bursts";
        return Ok(vec![
            Finding::error(check, fact)
                .because("Single packets arrive; after a burst no packet does."),
        ]);
    }
    let lost = sent.saturating_sub(arrived);
    let share = lost as f64 / sent as f64;
    let mut findings = vec![loss(check, (lost, sent), share, bytes)];
    if packets > 1 && arrived > 0 {
        findings.push(merging(host, peer, arrived, receives));
    }
    Ok(findings)
}

fn loss(check: &'static str, (lost, sent): (usize, usize), share: f64, bytes: usize) -> Finding {
    if lost == 0 {
        return Finding::ok(
            check,
            format!("bursts of {bytes} bytes arrive completely ({sent} packets)"),
        );
    }
    /// Loss share that makes the finding an error. Chosen by us: above it, hardly any long message
    /// arrives without retransmission.
    const LIMIT: f64 = 0.05;
    let fact = format!("{lost} of {sent} packets do not arrive, in bursts of {bytes} bytes");
    let finding =
        if share > LIMIT { Finding::error(check, fact) } else { Finding::warning(check, fact) };
    finding
        .because(
            "apus sends this much without a grant (`unsched_bytes_max`). Lost bytes are requested again after 5 ms. Possible \
             causes: a switch with small buffers, a full receive buffer of the peer, a bad cable.",
        )
        .with_measurements([Measurement::new("packet loss", 100.0 * share, "%")])
        .fix([
            "apus doctor  # on the peer: its buffers".to_owned(),
            "nstat -z UdpRcvbufErrors; ethtool -S DEVICE | grep -i drop  # on the peer: drop counters".to_owned(),
            "unsched_bytes_max = 15000  # under [protocol] in the configuration of apus: shorter bursts".to_owned(),
        ])
}

/// Minimum link rate in Mbit/s for merging; on slower links packets arrive too far apart.
const MIN_RATE_TO_MERGE: i64 = 1_000;

fn merging(host: &SystemFiles, peer: SocketAddr, arrived: usize, receives: usize) -> Finding {
    const CHECK: &str = "path-merging";
    let each = arrived as f64 / receives.max(1) as f64;
    let fact = format!(
        "the peer receives {} packets of a burst per call",
        apus_report::result::short(each)
    );
    let rate = interface::towards(peer)
        .and_then(|name| host.number::<i64>(&format!("/sys/class/net/{name}/speed")))
        .filter(|mbps| *mbps > 0);
    if receives < arrived || rate.is_some_and(|mbps| mbps < MIN_RATE_TO_MERGE) {
        return Finding::ok(CHECK, fact);
    }
    Finding::warning(CHECK, fact)
        .because(
            "Each packet costs the peer a pass through the system and a system call, several times the cost of merged \
             packets. Receive offload (GRO) is off at its interface, or its driver does not support it.",
        )
        .fix([
            "ethtool -K DEVICE gro on  # on the peer, for the interface to this host".to_owned(),
            "ethtool -k DEVICE | grep -e generic-receive -e rx-gro  # on the peer: supported features".to_owned(),
        ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Searches on a path that carries `carries` bytes. Returns the result and the number of
    /// attempts.
    fn search(full: usize, carries: usize) -> (Option<usize>, usize) {
        let mut tries = 0;
        let fact = find_mtu(full, |length| {
            tries += 1;
            Ok(length <= carries)
        });
        (fact.unwrap(), tries)
    }

    #[test]
    fn common_packet_lengths_are_found_quickly() {
        assert_eq!(search(9_000, 9_000), (Some(9_000), 1));
        assert_eq!(search(1_500, 1_000), (None, 2));
        let (fact, tries) = search(9_000, 1_500);
        assert_eq!(fact, Some(1_500));
        assert!(tries <= 5, "{tries}");
        let (fact, tries) = search(9_000, 1_504);
        assert_eq!((fact, advised_mtu(1_504)), (Some(1_504), 1_500));
        assert!(tries <= 8, "{tries}");
        for carries in [1_280, 1_281, 1_400, 1_450, 1_499, 1_501, 4_000, 8_999] {
            assert_eq!(search(9_000, carries).0, Some(carries));
        }
    }

    #[test]
    fn unused_priorities_are_no_fault() {
        let lost = || Finding::warning("path-priorities", "priorities are lost on the way there");
        assert_eq!(without_priorities(lost(), &Settings::default()), lost());
        let one = "[protocol]\nnum_priorities = 1".parse().unwrap();
        assert_eq!(without_priorities(lost(), &one).severity, Severity::Note);
    }

    #[test]
    fn few_losses_are_a_warning_and_many_an_error() {
        let severity = |lost| loss("path-loss", (lost, 320), lost as f64 / 320.0, 60_000).severity;
        assert_eq!([0, 1, 100].map(severity), [Severity::Ok, Severity::Warning, Severity::Error]);
    }
}
