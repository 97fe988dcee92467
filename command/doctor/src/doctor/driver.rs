//! Driver checks: system features available to the UDP driver, and shared memory between
//! processes.

use ::apus::Settings;
use apus_driver::Driver;
use apus_socket::{Udp, UdpConfig};

use super::finding::{Finding, Measurement};
use super::host::SystemFiles;
use super::measure::segments;
use apus_measure::exchange::{Path, builder, open};

/// Checks the features. An endpoint detects a missing feature too, and works without it.
pub(super) fn check(host: &SystemFiles, settings: &Settings) -> Vec<Finding> {
    let mut findings = offloads(settings);
    findings.push(shared_memory(settings));
    findings.push(nonlocal_bind(host, settings));
    findings.push(descriptors(host));
    findings
}

fn offloads(settings: &Settings) -> Vec<Finding> {
    const CHECK: &str = "segmentation-offload";
    let loopback = UdpConfig::bound_to(([127, 0, 0, 1], 0).into());
    let capabilities = match Udp::open(&loopback) {
        Ok(driver) => driver.capabilities(),
        Err(error) => {
            let fact = format!("no UDP socket on the loopback interface: {error}");
            return vec![Finding::error(CHECK, fact).fix(["ip link set lo up"])];
        }
    };
    let missing = |check, what: &str| {
        Finding::warning(check, format!("this kernel has no {what}"))
            .because("Each packet then costs a system call and a pass through the kernel.")
            .fix(["uname -r  # Linux 5.0 and later support both; sandboxes such as gVisor may not"])
    };
    let cost = segments::cost().map(|(alone, together)| {
        [
            Measurement::new("packet sent and received alone over loopback", alone, "ns"),
            Measurement::new("packet among 40 that use one call on each side", together, "ns"),
        ]
    });
    let many = capabilities.segments_per_send;
    let udp = &settings.udp;
    vec![
        if many <= 1 {
            missing(CHECK, "UDP_SEGMENT")
        } else if udp.segmentation_offload == Some(false) {
            switched_off(CHECK, "UDP_SEGMENT", "segmentation_offload")
        } else {
            let fact = format!("UDP_SEGMENT works: one call sends up to {many} packets");
            Finding::ok(CHECK, fact).with_measurements(cost.into_iter().flatten())
        },
        if !capabilities.receive_offload {
            missing("receive-offload", "UDP_GRO")
        } else if udp.receive_offload == Some(false) {
            switched_off("receive-offload", "UDP_GRO", "receive_offload")
        } else {
            Finding::ok("receive-offload", "UDP_GRO works: one call may receive several packets")
        },
        traffic_class(capabilities.priorities, settings),
    ]
}

/// A feature that the system has and the configuration does not use.
fn switched_off(check: &'static str, what: &str, key: &str) -> Finding {
    Finding::warning(check, format!("the configuration does not use {what} ({key} = false)"))
        .because("Each packet then costs a system call and a pass through the kernel.")
        .fix([format!("{key} = true  # under [udp] in the configuration of apus")])
}

fn traffic_class(works: bool, settings: &Settings) -> Finding {
    const CHECK: &str = "traffic-class";
    let why = "All messages then have the same priority in every queue of the path.";
    let fix = "num_priorities = 1  # under [protocol] in the configuration of apus: no priorities";
    let is_used = settings.udp.priorities != Some(false);
    match (works, is_used) {
        _ if settings.protocol.num_priorities() == 1 => {
            Finding::ok(CHECK, "the configuration uses no priorities (num_priorities = 1)")
        }
        (true, true) => Finding::ok(CHECK, "each packet can have its own traffic class"),
        (true, false) => {
            let fact = "the configuration sets no traffic class (priorities = false)";
            let mend = "priorities = true  # under [udp] in the configuration of apus";
            Finding::warning(CHECK, fact).because(why).fix([mend, fix])
        }
        (false, _) => {
            let fact = "the system does not set the traffic class of packets";
            Finding::warning(CHECK, fact).because(why).fix([fix])
        }
    }
}

/// Checks whether calls to peers on this host use shared memory.
fn shared_memory(settings: &Settings) -> Finding {
    const CHECK: &str = "shared-memory";
    if settings.local == Some(false) {
        let fact = "the configuration does not use shared memory (local = false)";
        return Finding::note(CHECK, fact)
            .because("Calls to peers on this host use UDP, and take ten times as long.")
            .fix(["local = true  # in the configuration of apus"]);
    }
    match open(builder(Path::Local)) {
        Ok(endpoint) if endpoint.has_local_path() => {
            Finding::ok(CHECK, "calls to peers on this host use shared memory")
        }
        Ok(_) => Finding::warning(CHECK, "calls to peers on this host use UDP")
            .because("The system refuses a prerequisite of shared memory, which is ten times as fast: sealed memory files \
                      (memfd_create), abstract Unix sockets, or room within the limits for locked or shared memory.")
            .fix(["sysctl vm.memfd_noexec  # 2 forbids memory files; 0 and 1 allow them",
                   "ulimit -a  # the limits of file size and of open files"]),
        Err(error) => Finding::error(CHECK, format!("no endpoint can be opened: {error}")),
    }
}

fn nonlocal_bind(host: &SystemFiles, settings: &Settings) -> Finding {
    const CHECK: &str = "nonlocal-bind";
    let file =
        |version: &str| host.number::<u8>(&format!("/proc/sys/net/{version}/ip_nonlocal_bind"));
    let set: Vec<&str> = ["ipv4", "ipv6"]
        .into_iter()
        .filter(|version| file(version).is_some_and(|it| it != 0))
        .collect();
    if set.is_empty() {
        return Finding::ok(CHECK, "sockets can bind only addresses of this host");
    }
    let fact =
        format!("sockets can bind any address (net.{}.ip_nonlocal_bind)", set.join(" and net."));
    if settings.local == Some(false) {
        return Finding::ok(CHECK, format!("{fact}, and no endpoint looks for peers on this host"));
    }
    Finding::warning(CHECK, fact)
        .because(
            "An endpoint recognizes a peer on its own host by an address that can be bound. Here every address can: \
             calls to another host may reach an endpoint of this host that uses the same port.",
        )
        .fix(
            set.iter()
                .map(|version| format!("sysctl -w net.{version}.ip_nonlocal_bind=0"))
                .chain(["local = false  # alternatively, in the configuration of apus, if a load balancer needs the option".to_owned()]),
        )
}

/// Recommended limit of open files. Each peer on this host uses one socket, and two more during the
/// connection set-up; the rest is for the application. Chosen by us.
const DESCRIPTORS: u64 = 1_024;

fn descriptors(host: &SystemFiles) -> Finding {
    const CHECK: &str = "descriptors";
    let Some((soft, hard)) = host.text("/proc/self/limits").as_deref().and_then(open_files) else {
        return Finding::note(CHECK, "the limit of open files cannot be read");
    };
    let fact = format!("a process may open {soft} files");
    if soft >= DESCRIPTORS {
        return Finding::ok(CHECK, fact);
    }
    let mut fixes = vec![format!("ulimit -n {}", DESCRIPTORS.min(hard))];
    if hard < DESCRIPTORS {
        fixes = vec![format!(
            "prlimit --nofile={DESCRIPTORS} --pid $$  # as root: the hard limit is {hard}"
        )];
    }
    fixes.push(format!("LimitNOFILE={DESCRIPTORS}  # in the systemd unit of the service"));
    Finding::warning(CHECK, fact)
        .because(
            "Each peer on this host uses up to three descriptors, and so does each endpoint. Without free \
             descriptors, peers fall back to UDP and endpoints cannot be opened.",
        )
        .fix(fixes)
}

/// Returns the soft and hard limit of open files from `/proc/PID/limits`.
fn open_files(limits: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut words = line.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some((words.next()??, words.next()??))
}

#[cfg(test)]
mod tests {
    use super::super::host::fixture;
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn this_system_has_the_features_of_linux() {
        let findings = check(&SystemFiles::default(), &Settings::default());
        let severity = |name| findings.iter().find(|each| each.check == name).unwrap().severity;
        assert_eq!(severity("segmentation-offload"), Severity::Ok);
        assert_eq!(severity("shared-memory"), Severity::Ok);
    }

    #[test]
    fn few_descriptors_are_a_warning_with_a_fix_for_each_hard_limit() {
        let limits =
            |soft, hard| format!("Limit\nMax open files            {soft}   {hard}   files\n");
        for (soft, hard, fixes) in
            [("64", "4096", "ulimit -n 1024"), ("64", "128", "prlimit --nofile=1024 --pid $$")]
        {
            let (host, _root) = fixture::host(&[("/proc/self/limits", &limits(soft, hard))]);
            let finding = descriptors(&host);
            assert_eq!(finding.severity, Severity::Warning);
            assert!(finding.fixes[0].starts_with(fixes), "{finding:?}");
        }
        let (host, _root) =
            fixture::host(&[("/proc/self/limits", &limits("unlimited", "unlimited"))]);
        assert_eq!(descriptors(&host).severity, Severity::Ok);
    }

    #[test]
    fn nonlocal_bind_is_a_warning() {
        let file = "/proc/sys/net/ipv4/ip_nonlocal_bind";
        let (host, _root) =
            fixture::host(&[(file, "1"), ("/proc/sys/net/ipv6/ip_nonlocal_bind", "0")]);
        let finding = nonlocal_bind(&host, &Settings::default());
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.fixes[0], "sysctl -w net.ipv4.ip_nonlocal_bind=0");
        let network_only = "local = false".parse().unwrap();
        assert_eq!(nonlocal_bind(&host, &network_only).severity, Severity::Ok);
        assert_eq!(shared_memory(&network_only).severity, Severity::Note);
    }

    #[test]
    fn features_that_the_configuration_does_not_use_are_named() {
        let file =
            "[udp]\nsegmentation_offload = false\nreceive_offload = false\npriorities = false";
        let findings = offloads(&file.parse().unwrap());
        for (finding, key) in
            findings.iter().zip(["segmentation_offload", "receive_offload", "priorities"])
        {
            assert_eq!(finding.severity, Severity::Warning, "{finding:?}");
            assert!(finding.fixes[0].starts_with(&format!("{key} = true")), "{finding:?}");
        }
        let one = "[udp]\npriorities = false\n[protocol]\nnum_priorities = 1".parse().unwrap();
        assert_eq!(traffic_class(true, &one).severity, Severity::Ok);
        assert_eq!(traffic_class(false, &Settings::default()).severity, Severity::Warning);
    }
}
