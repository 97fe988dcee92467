//! Do priorities, full packets and bursts reach the peer?

use std::net::SocketAddr;

use apus_proto::Config;
use apus_socket::UdpConfig;

use super::asker::{Asker, Reply};
use super::packet::SHORTEST;
use super::{classes, unmarked};
use crate::doctor::finding::{Finding, Measured};
use crate::doctor::host::Host;
use crate::doctor::interface;
use apus_testbed::error::Error;

/// A packet of this length passes on every path that apus bears: RFC 8200 section 5.
const LEAST: usize = 1_280;

/// The longest packet on Ethernet, unless all interfaces of a network are set to more.
const ETHERNET: usize = 1_500;

/// Bytes by which interfaces take longer packets than they say, for a VLAN's tag.
const TAG: usize = 4;

/// Bursts that are sent. Ours: enough that one loss is no accident, in less than a second.
const TRAINS: usize = 8;

/// Everything that a listener tells.
pub(super) fn check(
    host: &Host,
    asker: &mut Asker,
    peer: SocketAddr,
) -> Result<Vec<Finding>, Error> {
    let mut findings = vec![priorities(asker, peer)?];
    let (mtu, carried) = mtu(asker, peer)?;
    findings.push(mtu);
    findings.extend(bursts(host, asker, peer, carried - headers(peer))?);
    Ok(findings)
}

/// Bytes of IP and UDP headers.
pub(super) fn headers(peer: SocketAddr) -> usize {
    if peer.ip().to_canonical().is_ipv4() { 28 } else { 48 }
}

/// Whether traffic classes arrive as they were sent, in both directions.
fn priorities(asker: &mut Asker, peer: SocketAddr) -> Result<Finding, Error> {
    const CHECK: &str = "path-priorities";
    let (mut there, mut back, mut vanished) = (Vec::new(), Vec::new(), Vec::new());
    for class in classes() {
        match asker.echo(SHORTEST, class, SHORTEST)? {
            Reply::Answer(answer) => {
                // The peer sent its answer with the class that it was told.
                let wrong = |seen| (unmarked(seen) != class).then_some((class, unmarked(seen)));
                there.extend(wrong(answer.seen.class));
                back.extend(wrong(answer.class));
            }
            Reply::Silence | Reply::Refused(_) => vanished.push(class),
        }
    }
    let listed = |changes: &[(u8, u8)]| {
        let each = changes.iter().map(|(sent, seen)| format!("{sent:#04x} as {seen:#04x}"));
        each.collect::<Vec<_>>().join(", ")
    };
    if !vanished.is_empty() {
        let which: Vec<String> = vanished.iter().map(|class| format!("{class:#04x}")).collect();
        let found =
            format!("packets with traffic class {} do not arrive, others do", which.join(", "));
        return Ok(Finding::error(CHECK, found)
            .because("Something on the way drops by traffic class: messages of some sizes never get through.")
            .mend(remedies(peer)));
    }
    let found = match (there.is_empty(), back.is_empty()) {
        (true, true) => {
            return Ok(Finding::ok(
                CHECK,
                "all eight traffic classes arrive as they were sent, both ways",
            ));
        }
        (false, true) => {
            format!("priorities are lost on the way there: {} arrives", listed(&there))
        }
        (true, false) => format!("priorities are lost on the way back: {} arrives", listed(&back)),
        (false, false) => {
            format!("priorities are lost on the way there and back: {} arrives", listed(&there))
        }
    };
    Ok(Finding::warning(CHECK, found)
        .because(
            "Short messages then wait in the switches' queues behind long ones: with one level for all, the slowest \
             hundredth of short messages takes ten times as long under load (docs/tuning.md).",
        )
        .mend(remedies(peer)))
}

/// Where classes get lost, and how to do without.
pub(super) fn remedies(peer: SocketAddr) -> Vec<String> {
    vec![
        "nft list ruleset | grep -n dscp  # on both hosts: rules that change the class".to_owned(),
        format!("tcpdump -v -n udp port {}  # on the peer: `tos` of what arrives", peer.port()),
        "mls qos trust dscp  # on the ports of a switch by Cisco; others: trust DSCP, strict priority queues".to_owned(),
        "num_priorities = 1  # or these under [protocol] in apus' configuration: make do without".to_owned(),
        "max_incoming = 10000".to_owned(),
    ]
}

/// Whether full packets arrive, and the longest IP packet that does.
fn mtu(asker: &mut Asker, peer: SocketAddr) -> Result<(Finding, usize), Error> {
    const CHECK: &str = "path-mtu";
    let most = UdpConfig::default().max_ip_packet;
    let known = asker.path_mtu().unwrap_or(LEAST);
    let full = known.min(most).max(LEAST);
    let there = longest(full, |length| passes(asker, peer, length, false))?;
    let device = interface::towards(peer).unwrap_or_else(|| "DEVICE".to_owned());
    let Some(there) = there else {
        let found = format!("not even packets of {LEAST} bytes arrive, short ones do");
        let finding = Finding::error(CHECK, found)
            .because("Every request that is longer than a packet's worth of small change vanishes.")
            .mend([format!("tracepath -n {}  # where the path gets narrow", peer.ip())]);
        return Ok((finding, SHORTEST + headers(peer)));
    };
    if there < full {
        let found = format!("packets of {full} bytes vanish on the way; up to {there} arrive");
        let finding = Finding::error(CHECK, found)
            .because(
                "This host takes the path for wider than it is, and nobody tells it so. Messages longer than a packet are \
                 sent again and again, and fail.",
            )
            .mend([
                format!("ip link set dev {device} mtu {}  # here, and on the peer", advised(there)),
                format!("tracepath -n {}  # or where it gets narrow: the switch's ports must carry {full}", peer.ip()),
            ]);
        return Ok((finding, there));
    }
    // Answers are as long as questions at most, so the way there has to be known first.
    let back = longest(full, |length| passes(asker, peer, length, true))?.unwrap_or(LEAST);
    if back < full {
        let found = format!(
            "packets of {full} bytes arrive, but vanish on the way back; up to {back} return"
        );
        let finding = Finding::error(CHECK, found)
            .because("The peer takes the path for wider than it is. Its long replies are sent again and again, and fail.")
            .mend([format!("ip link set dev DEVICE mtu {}  # on the peer", advised(back))]);
        return Ok((finding, there));
    }
    Ok((Finding::ok(CHECK, format!("full packets of {full} bytes arrive, both ways")), full))
}

/// The MTU to set where packets of `length` bytes just pass.
const fn advised(length: usize) -> usize {
    match length {
        ETHERNET..=1_504 => ETHERNET,
        length => length,
    }
}

/// Whether an IP packet of that length arrives, and one as long returns if it is to.
fn passes(
    asker: &mut Asker,
    peer: SocketAddr,
    length: usize,
    returns: bool,
) -> Result<bool, Error> {
    let payload = length - headers(peer);
    let room = if returns { payload } else { SHORTEST };
    let reply = asker.echo(payload, 0, room)?;
    Ok(matches!(reply, Reply::Answer(answer) if answer.seen.length as usize == payload))
}

/// The greatest length up to `full` that passes, at least [`LEAST`]; `None` if that does not.
fn longest(
    full: usize,
    mut passes: impl FnMut(usize) -> Result<bool, Error>,
) -> Result<Option<usize>, Error> {
    if passes(full)? {
        return Ok(Some(full));
    }
    if !passes(LEAST)? {
        return Ok(None);
    }
    // What is most likely first: each length that does not pass costs patience.
    let (mut good, mut bad) = (LEAST, full);
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

/// Whether bursts arrive whole, and together.
fn bursts(
    host: &Host,
    asker: &mut Asker,
    peer: SocketAddr,
    payload: usize,
) -> Result<Vec<Finding>, Error> {
    let bytes = Config::default().unsched_bytes_max() as usize;
    let packets = (bytes / payload).clamp(1, 64);
    let (mut sent, mut arrived, mut receives) = (0, 0, 0);
    for _ in 0..TRAINS {
        if let Some((packets_seen, receives_seen)) = asker.train(packets, payload)? {
            sent += packets;
            arrived += packets_seen as usize;
            receives += receives_seen as usize;
        }
    }
    let check = "path-loss";
    if sent == 0 {
        let found = "nobody says what arrived of bursts";
        return Ok(vec![
            Finding::error(check, found)
                .because("Single packets arrive; after a burst nothing does."),
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
            format!("bursts of {bytes} bytes arrive whole ({sent} packets)"),
        );
    }
    /// Ours: more than that, and hardly any long message gets through at once.
    const MUCH: f64 = 0.05;
    let found = format!("{lost} of {sent} packets do not arrive, in bursts of {bytes} bytes");
    let finding =
        if share > MUCH { Finding::error(check, found) } else { Finding::warning(check, found) };
    finding
        .because(
            "So much apus sends without asking (`unsched_bytes_max`). What is lost is asked for again after 5 ms; a switch \
             with small buffers, a full receive buffer of the peer, or a bad cable.",
        )
        .measured([Measured::new("of the packets are lost", 100.0 * share, "%")])
        .mend([
            "apus doctor  # on the peer: its buffers".to_owned(),
            "nstat -z UdpRcvbufErrors; ethtool -S DEVICE | grep -i drop  # on the peer: where they are dropped".to_owned(),
            "unsched_bytes_max = 15000  # under [protocol] in apus' configuration: shorter bursts".to_owned(),
        ])
}

/// Packets come so slowly on links below this, in Mbit/s, that nothing is gained by taking them together.
const FAST: i64 = 1_000;

fn merging(host: &Host, peer: SocketAddr, arrived: usize, receives: usize) -> Finding {
    const CHECK: &str = "path-merging";
    let each = arrived as f64 / receives.max(1) as f64;
    let found = format!(
        "the peer receives {} packets of a burst at a time",
        apus_report::result::short(each)
    );
    let rate = interface::towards(peer)
        .and_then(|name| host.number::<i64>(&format!("/sys/class/net/{name}/speed")))
        .filter(|mbps| *mbps > 0);
    if receives < arrived || rate.is_some_and(|mbps| mbps < FAST) {
        return Finding::ok(CHECK, found);
    }
    Finding::warning(CHECK, found)
        .because(
            "Each packet costs it a pass through the system and a system call, several times what they cost together. \
             Receive offload (GRO) is off at its interface, or its driver has none.",
        )
        .mend([
            "ethtool -K DEVICE gro on  # on the peer, with the interface that leads here".to_owned(),
            "ethtool -k DEVICE | grep -e generic-receive -e rx-gro  # on the peer: what it has".to_owned(),
        ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of a path that carries so much, and how often it was tried.
    fn search(full: usize, carries: usize) -> (Option<usize>, usize) {
        let mut tries = 0;
        let found = longest(full, |length| {
            tries += 1;
            Ok(length <= carries)
        });
        (found.unwrap(), tries)
    }

    #[test]
    fn the_longest_packet_is_found_soon_where_it_is_a_usual_one() {
        assert_eq!(search(9_000, 9_000), (Some(9_000), 1));
        assert_eq!(search(1_500, 1_000), (None, 2));
        let (found, tries) = search(9_000, 1_500);
        assert_eq!(found, Some(1_500));
        assert!(tries <= 5, "{tries}");
        let (found, tries) = search(9_000, 1_504);
        assert_eq!((found, advised(1_504)), (Some(1_504), 1_500));
        assert!(tries <= 8, "{tries}");
        for carries in [1_280, 1_281, 1_400, 1_450, 1_499, 1_501, 4_000, 8_999] {
            assert_eq!(search(9_000, carries).0, Some(carries));
        }
    }

    #[test]
    fn few_losses_are_a_warning_and_many_an_error() {
        use crate::doctor::Severity;
        let severity = |lost| loss("path-loss", (lost, 320), lost as f64 / 320.0, 60_000).severity;
        assert_eq!([0, 1, 100].map(severity), [Severity::Ok, Severity::Warning, Severity::Error]);
    }
}
