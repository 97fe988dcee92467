//! Does the system queue as much for a socket as a burst brings?

use apus_socket::UdpConfig;

use super::finding::{Finding, Measured};
use super::host::Host;
use super::measure::burst;

/// Below this a buffer does not even hold the packets that one unscheduled message of 60,000 bytes
/// (`unsched_bytes_max`) from a peer and its neighbour may send without asking: the kernel counts
/// its own structures, as much again, against it. Ours.
const HARDLY_ANYTHING: u64 = 128 << 10;

/// Both directions, and what has been lost.
pub(super) fn check(host: &Host) -> Vec<Finding> {
    let mut findings = vec![receive(host), send(host)];
    findings.extend(full_buffers(host));
    findings.extend(backlog(host));
    findings
}

fn receive(host: &Host) -> Finding {
    const CHECK: &str = "receive-buffer";
    let asked = UdpConfig::default().receive_buffer as u64;
    let Some(limit) = host.number::<u64>("/proc/sys/net/core/rmem_max") else {
        return Finding::note(CHECK, "net.core.rmem_max cannot be read");
    };
    let lost = burst::lost(limit.min(asked)).map(|share| {
        let what = format!(
            "lost of a burst of {} full packets, what 25 Gbit/s bring in a millisecond, while nobody \
             received",
            burst::PACKETS
        );
        Measured::new(what, 100.0 * share, "%")
    });
    let found = format!("net.core.rmem_max is {limit} bytes, and apus asks for {asked}");
    if limit >= asked {
        return Finding::ok(CHECK, found).measured(lost);
    }
    let finding = match limit {
        ..HARDLY_ANYTHING => Finding::error(CHECK, found),
        _ => Finding::warning(CHECK, found),
    };
    finding
        .because(
            "Packets that come while the process does something else, or waits for its core, wait in the \
             socket's buffer. When it is full they are dropped, and are asked for again after 5 ms \
             (`resend_usecs`). Processes with CAP_NET_ADMIN exceed the limit, others do not.",
        )
        .measured(lost)
        .mend(persistent("net.core.rmem_max", asked))
}

fn send(host: &Host) -> Finding {
    const CHECK: &str = "send-buffer";
    let asked = UdpConfig::default().send_buffer as u64;
    let Some(limit) = host.number::<u64>("/proc/sys/net/core/wmem_max") else {
        return Finding::note(CHECK, "net.core.wmem_max cannot be read");
    };
    let found = format!("net.core.wmem_max is {limit} bytes, and apus asks for {asked}");
    if limit >= asked {
        return Finding::ok(CHECK, found);
    }
    Finding::note(CHECK, found)
        .because(
            "The system says sooner that it is full; the endpoint then waits for room, which costs a \
             system call and a wake-up. Nothing is lost.",
        )
        .mend(persistent("net.core.wmem_max", asked))
}

/// Datagrams that found a full buffer since the host was started.
fn full_buffers(host: &Host) -> Option<Finding> {
    const CHECK: &str = "datagrams-dropped";
    let counters = host.text("/proc/net/snmp")?;
    let dropped = udp_counter(&counters, "RcvbufErrors")?;
    let arrived = udp_counter(&counters, "InDatagrams")?;
    if dropped == 0 {
        return Some(Finding::ok(CHECK, "no datagram has found a full buffer since the start"));
    }
    let share = 100.0 * dropped as f64 / (arrived + dropped) as f64;
    let found = format!(
        "{dropped} datagrams have found a full buffer since the start, {} % of those that came",
        apus_report::result::short(share)
    );
    Some(Finding::note(CHECK, found).because(
        "Of any program here. If it grows while apus works: larger buffers, more threads that receive, or \
         a core for each.",
    ).mend(["nstat -z UdpRcvbufErrors", "ss -u -a -m  # d… is what each socket dropped"]))
}

/// A counter of UDP in `/proc/net/snmp`: names in one line, values in the next.
fn udp_counter(counters: &str, name: &str) -> Option<u64> {
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let place = lines.next()?.split_whitespace().position(|each| each == name)?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

/// Packets that the kernel dropped before they came to a socket, because a core was behind.
fn backlog(host: &Host) -> Option<Finding> {
    const CHECK: &str = "packet-backlog";
    let rows = host.text("/proc/net/softnet_stat")?;
    // A line for each core, hexadecimal: processed, dropped, squeezed. See `softnet_seq_show` of the kernel.
    let column = |place| -> Option<u64> {
        rows.lines()
            .map(|row| u64::from_str_radix(row.split_whitespace().nth(place)?, 16).ok())
            .sum()
    };
    let (dropped, squeezed) = (column(1)?, column(2)?);
    if dropped == 0 {
        let found = format!("no packet dropped on its way to a socket, {squeezed} times cut short");
        return Some(Finding::ok(CHECK, found));
    }
    let found = format!("{dropped} packets dropped on their way to a socket since the start");
    let limit = host.number::<u64>("/proc/sys/net/core/netdev_max_backlog").unwrap_or(1000);
    Some(
        Finding::note(CHECK, found)
            .because("More came for a core than net.core.netdev_max_backlog lets wait, on an interface without queues of its own.")
            .mend(persistent("net.core.netdev_max_backlog", 4 * limit)),
    )
}

/// Commands that set it now, and after the next start.
pub(super) fn persistent(name: &str, value: u64) -> [String; 2] {
    [
        format!("sysctl -w {name}={value}"),
        format!("echo '{name} = {value}' >> /etc/sysctl.d/90-apus.conf"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::host::planted;
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn a_small_buffer_is_worse_the_smaller_it_is_and_drops_are_measured() {
        for (limit, severity) in
            [("4194304", Severity::Ok), ("212992", Severity::Warning), ("16384", Severity::Error)]
        {
            let (host, _root) = planted::host(&[("/proc/sys/net/core/rmem_max", limit)]);
            let finding = receive(&host);
            assert_eq!(finding.severity, severity, "{finding:?}");
            let lost = finding.measured.first().map(|figure| figure.value);
            if severity != Severity::Ok {
                assert!(lost.unwrap() > 50.0, "{finding:?}");
                assert_eq!(finding.mend[0], "sysctl -w net.core.rmem_max=4194304");
            }
        }
    }

    #[test]
    fn counters_are_read_by_name() {
        let counters =
            "Ip: a\nIp: 1\nUdp: InDatagrams NoPorts InErrors RcvbufErrors\nUdp: 900 1 2 100";
        let (host, _root) = planted::host(&[
            ("/proc/net/snmp", counters),
            ("/proc/net/softnet_stat", "0000000a 00000001 00000000\n0000000b 00000010 00000002\n"),
        ]);
        let found = full_buffers(&host).unwrap();
        assert_eq!(found.severity, Severity::Note);
        assert!(found.found.starts_with("100 datagrams") && found.found.contains("10.0 %"));
        assert!(backlog(&host).unwrap().found.starts_with("17 packets"));
        assert_eq!(udp_counter("Udp: a\n", "a"), None);
    }
}
