//! Socket buffer checks: compares buffer limits with the size of a burst, and reads drop counters.

use ::apus::UdpSettings;
use apus_socket::UdpConfig;

use super::finding::{Finding, Measurement};
use super::host::SystemFiles;
use super::measure::burst;

/// Minimum buffer size; a smaller buffer is an error. Such a buffer cannot hold the unscheduled
/// packets of two messages of 60,000 bytes (`unsched_bytes_max`), since the kernel charges about as
/// much again for its own structures. Chosen by us.
const MIN_BUFFER: u64 = 128 << 10;

/// Checks the buffers of both directions, and the drop counters.
pub(super) fn check(host: &SystemFiles, settings: &UdpSettings) -> Vec<Finding> {
    let mut findings =
        vec![receive(host, settings.receive_buffer), send(host, settings.send_buffer)];
    findings.extend(full_buffers(host));
    findings.extend(backlog(host));
    findings
}

/// The size of a buffer, in bytes.
struct BufferSize {
    /// Name of the kernel's limit.
    limit_name: &'static str,
    limit: u64,
    /// Size that the endpoint requests.
    requested: u64,
    /// Size that apus requests without a configuration.
    recommended: u64,
    /// Name of the configuration's key, if it is set.
    key: Option<&'static str>,
}

impl BufferSize {
    /// Returns the size of a buffer; `None` if its limit cannot be read.
    fn read(
        host: &SystemFiles,
        limit_name: &'static str,
        recommended: usize,
        (key, configured): (&'static str, Option<usize>),
    ) -> Option<Self> {
        let limit = host.number(&format!("/proc/sys/{}", limit_name.replace('.', "/")))?;
        let requested = configured.unwrap_or(recommended) as u64;
        let key = configured.is_some().then_some(key);
        Some(Self { limit_name, limit, requested, recommended: recommended as u64, key })
    }

    /// Returns the size of the buffer that an endpoint gets.
    fn actual(&self) -> u64 {
        self.limit.min(self.requested)
    }

    fn is_sufficient(&self) -> bool {
        self.actual() >= self.requested.max(self.recommended)
    }

    fn fact(&self) -> String {
        let Self { limit_name, limit, requested, .. } = self;
        let requests = match self.key {
            None => format!("apus requests {requested}"),
            Some(key) => format!("the configuration requests {requested} ({key})"),
        };
        format!("{limit_name} is {limit} bytes, and {requests}")
    }

    /// Returns the commands and settings for a buffer of the recommended or requested size.
    fn fixes(&self) -> Vec<String> {
        let mut fixes = Vec::new();
        if let Some(key) = self.key.filter(|_| self.requested < self.recommended) {
            fixes.push(format!("{key} = {}  # under [udp] in the configuration", self.recommended));
        }
        let enough = self.requested.max(self.recommended);
        if self.limit < enough {
            fixes.extend(persistent(self.limit_name, enough));
        }
        fixes
    }
}

fn receive(host: &SystemFiles, configured: Option<usize>) -> Finding {
    const CHECK: &str = "receive-buffer";
    let recommended = UdpConfig::default().receive_buffer;
    let setting = ("receive_buffer", configured);
    let Some(size) = BufferSize::read(host, "net.core.rmem_max", recommended, setting) else {
        return Finding::note(CHECK, "net.core.rmem_max cannot be read");
    };
    let lost = burst::lost(size.actual()).map(|share| {
        let what = format!(
            "loss of a burst of {} full packets (one millisecond at 25 Gbit/s) while no thread receives",
            burst::PACKETS
        );
        Measurement::new(what, 100.0 * share, "%")
    });
    let fact = size.fact();
    if size.is_sufficient() {
        return Finding::ok(CHECK, fact).with_measurements(lost);
    }
    let finding = match size.actual() {
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
        .fix(size.fixes())
}

fn send(host: &SystemFiles, configured: Option<usize>) -> Finding {
    const CHECK: &str = "send-buffer";
    let recommended = UdpConfig::default().send_buffer;
    let setting = ("send_buffer", configured);
    let Some(size) = BufferSize::read(host, "net.core.wmem_max", recommended, setting) else {
        return Finding::note(CHECK, "net.core.wmem_max cannot be read");
    };
    let fact = size.fact();
    if size.is_sufficient() {
        return Finding::ok(CHECK, fact);
    }
    Finding::note(CHECK, fact)
        .because(
            "The buffer is full sooner. The endpoint then waits for room, which costs a system call and a wake-up. \
             Nothing is lost.",
        )
        .fix(size.fixes())
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
            let finding = receive(&host, None);
            assert_eq!(finding.severity, severity, "{finding:?}");
            let lost = finding.measurements.first().map(|figure| figure.value);
            if severity != Severity::Ok {
                assert!(lost.unwrap() > 50.0, "{finding:?}");
                assert_eq!(finding.fixes[0], "sysctl -w net.core.rmem_max=4194304");
            }
        }
    }

    #[test]
    fn the_sizes_of_the_configuration_are_judged() {
        let (host, _root) = fixture::host(&[
            ("/proc/sys/net/core/rmem_max", "4194304"),
            ("/proc/sys/net/core/wmem_max", "4194304"),
        ]);
        for (requested, severity, fix) in [
            (32_768, Severity::Error, "receive_buffer = 4194304"),
            (1 << 20, Severity::Warning, "receive_buffer = 4194304"),
            (8 << 20, Severity::Warning, "sysctl -w net.core.rmem_max=8388608"),
            (4 << 20, Severity::Ok, ""),
        ] {
            let finding = receive(&host, Some(requested));
            assert_eq!(finding.severity, severity, "{finding:?}");
            assert!(finding.fact.contains(&format!("the configuration requests {requested} ")));
            assert!(
                finding.fixes.first().is_none_or(|first| first.starts_with(fix)),
                "{finding:?}"
            );
            assert_eq!(finding.fixes.is_empty(), fix.is_empty(), "{finding:?}");
        }
        assert_eq!(send(&host, None).severity, Severity::Ok);
        let small = send(&host, Some(4096));
        assert_eq!(small.severity, Severity::Note);
        assert!(small.fixes[0].starts_with("send_buffer = 1048576"), "{small:?}");
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
