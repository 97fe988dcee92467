//! Socket buffer checks: compares buffer limits with the size of a burst, and reads drop counters.

use apus_socket::UdpConfig;

use super::finding::{Finding, Measurement};
use super::host::SystemFiles;
use super::measure::burst;

/// Minimum buffer size; a smaller buffer is an error. Such a buffer cannot hold the unscheduled
/// packets of two messages of 60,000 bytes (`unsched_bytes_max`), since the kernel charges about as
/// much again for its own structures. Chosen by us.
const MIN_BUFFER: u64 = 128 << 10;

/// Checks the buffers of both directions, and the drop counters.
pub(super) fn check(host: &SystemFiles) -> Vec<Finding> {
    let mut findings = vec![receive(host), send(host)];
    findings.extend(full_buffers(host));
    findings.extend(backlog(host));
    findings
}

fn receive(host: &SystemFiles) -> Finding {
    const CHECK: &str = "receive-buffer";
    let requested = UdpConfig::default().receive_buffer as u64;
    let Some(limit) = host.number::<u64>("/proc/sys/net/core/rmem_max") else {
        return Finding::note(CHECK, "net.core.rmem_max cannot be read");
    };
    let lost = burst::lost(limit.min(requested)).map(|share| {
        let what = format!(
            "loss of a burst of {} full packets (one millisecond at 25 Gbit/s) while no thread receives",
            burst::PACKETS
        );
        Measurement::new(what, 100.0 * share, "%")
    });
    let fact = format!("net.core.rmem_max is {limit} bytes, and apus requests {requested}");
    if limit >= requested {
        return Finding::ok(CHECK, fact).with_measurements(lost);
    }
    let finding = match limit {
        ..MIN_BUFFER => Finding::error(CHECK, fact),
        _ => Finding::warning(CHECK, fact),
    };
    finding
        .because(
            "Packets that arrive while the process is busy, or waits for its core, are queued in the socket buffer. \
             When it is full they are dropped; the receiver requests them again after 5 ms (`resend_usecs`). \
             Only processes with CAP_NET_ADMIN may exceed the limit.",
        )
        .with_measurements(lost)
        .fix(persistent("net.core.rmem_max", requested))
}

fn send(host: &SystemFiles) -> Finding {
    const CHECK: &str = "send-buffer";
    let requested = UdpConfig::default().send_buffer as u64;
    let Some(limit) = host.number::<u64>("/proc/sys/net/core/wmem_max") else {
        return Finding::note(CHECK, "net.core.wmem_max cannot be read");
    };
    let fact = format!("net.core.wmem_max is {limit} bytes, and apus requests {requested}");
    if limit >= requested {
        return Finding::ok(CHECK, fact);
    }
    Finding::note(CHECK, fact)
        .because(
            "The buffer is full sooner. The endpoint then waits for room, which costs a system call and a wake-up. \
             Nothing is lost.",
        )
        .fix(persistent("net.core.wmem_max", requested))
}

/// Reports datagrams dropped at a full buffer since boot.
fn full_buffers(host: &SystemFiles) -> Option<Finding> {
    const CHECK: &str = "datagrams-dropped";
    let counters = host.text("/proc/net/snmp")?;
    let dropped = udp_counter(&counters, "RcvbufErrors")?;
    let arrived = udp_counter(&counters, "InDatagrams")?;
    if dropped == 0 {
        return Some(Finding::ok(CHECK, "no datagram has met a full buffer since boot"));
    }
    let share = 100.0 * dropped as f64 / (arrived + dropped) as f64;
    let fact = format!(
        "{dropped} datagrams have met a full buffer since boot, {} % of all that arrived",
        apus_report::result::short(share)
    );
    Some(Finding::note(CHECK, fact).because(
        "The counter includes all programs. If it grows while apus runs: enlarge the buffers, add receiving \
         threads, or give each thread a core.",
    ).fix(["nstat -z UdpRcvbufErrors", "ss -u -a -m  # d…: datagrams that each socket dropped"]))
}

/// Returns a UDP counter of `/proc/net/snmp`, a file with names in one line and values in the
/// next.
fn udp_counter(counters: &str, name: &str) -> Option<u64> {
    let mut lines = counters.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let place = lines.next()?.split_whitespace().position(|each| each == name)?;
    lines.next()?.split_whitespace().nth(place)?.parse().ok()
}

/// Reports packets that the kernel dropped before they reached a socket, because a core was
/// overloaded.
fn backlog(host: &SystemFiles) -> Option<Finding> {
    const CHECK: &str = "packet-backlog";
    let rows = host.text("/proc/net/softnet_stat")?;
    // One line for each core, hexadecimal: processed, dropped, squeezed. Source: the kernel's
    // `softnet_seq_show`.
    let column = |place| -> Option<u64> {
        rows.lines()
            .map(|row| u64::from_str_radix(row.split_whitespace().nth(place)?, 16).ok())
            .sum()
    };
    let (dropped, squeezed) = (column(1)?, column(2)?);
    if dropped == 0 {
        let fact =
            format!("no packet dropped before it reached a socket; {squeezed} times out of budget");
        return Some(Finding::ok(CHECK, fact));
    }
    let fact = format!("{dropped} packets dropped before they reached a socket since boot");
    let limit = host.number::<u64>("/proc/sys/net/core/netdev_max_backlog").unwrap_or(1000);
    Some(
        Finding::note(CHECK, fact)
            .because("More packets arrived for a core than net.core.netdev_max_backlog allows to wait, on an interface without its own queues.")
            .fix(persistent("net.core.netdev_max_backlog", 4 * limit)),
    )
}

/// Returns the commands that set a kernel parameter now and at the next boot.
pub(super) fn persistent(name: &str, value: u64) -> [String; 2] {
    [
        format!("sysctl -w {name}={value}"),
        format!("echo '{name} = {value}' >> /etc/sysctl.d/90-apus.conf"),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::host::fixture;
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn severity_grows_with_smaller_buffers_and_drops_are_measured() {
        for (limit, severity) in
            [("4194304", Severity::Ok), ("212992", Severity::Warning), ("16384", Severity::Error)]
        {
            let (host, _root) = fixture::host(&[("/proc/sys/net/core/rmem_max", limit)]);
            let finding = receive(&host);
            assert_eq!(finding.severity, severity, "{finding:?}");
            let lost = finding.measurements.first().map(|figure| figure.value);
            if severity != Severity::Ok {
                assert!(lost.unwrap() > 50.0, "{finding:?}");
                assert_eq!(finding.fixes[0], "sysctl -w net.core.rmem_max=4194304");
            }
        }
    }

    #[test]
    fn counters_are_read_by_name() {
        let counters =
            "Ip: a\nIp: 1\nUdp: InDatagrams NoPorts InErrors RcvbufErrors\nUdp: 900 1 2 100";
        let (host, _root) = fixture::host(&[
            ("/proc/net/snmp", counters),
            ("/proc/net/softnet_stat", "0000000a 00000001 00000000\n0000000b 00000010 00000002\n"),
        ]);
        let fact = full_buffers(&host).unwrap();
        assert_eq!(fact.severity, Severity::Note);
        assert!(fact.fact.starts_with("100 datagrams") && fact.fact.contains("10.0 %"));
        assert!(backlog(&host).unwrap().fact.starts_with("17 packets"));
        assert_eq!(udp_counter("Udp: a\n", "a"), None);
    }
}
