//! What does the UDP driver get from this system, and is there a way through memory?

use apus_driver::Driver;
use apus_socket::{Udp, UdpConfig};

use super::finding::{Finding, Measured};
use super::host::Host;
use super::measure::segments;
use apus_contenders::apus::{Path, builder, open};

/// What an endpoint would find out, too, and make do without.
pub(super) fn check(host: &Host) -> Vec<Finding> {
    let mut findings = offloads();
    findings.push(shared_memory());
    findings.push(nonlocal_bind(host));
    findings.push(descriptors(host));
    findings
}

fn offloads() -> Vec<Finding> {
    const CHECK: &str = "segmentation-offload";
    let loopback = UdpConfig::bound_to(([127, 0, 0, 1], 0).into());
    let capabilities = match Udp::open(&loopback) {
        Ok(driver) => driver.capabilities(),
        Err(error) => {
            let found = format!("no UDP socket at the loopback interface: {error}");
            return vec![Finding::error(CHECK, found).mend(["ip link set lo up"])];
        }
    };
    let missing = |check, what: &str| {
        Finding::warning(check, format!("this kernel has no {what}"))
            .because("It costs a system call, and a way through the kernel, for each packet.")
            .mend(["uname -r  # Linux 5.0 and later have both; sandboxes such as gVisor may not"])
    };
    let cost = segments::cost().map(|(alone, together)| {
        [
            Measured::new("a packet sent and received by itself, over loopback", alone, "ns"),
            Measured::new("a packet of 40 that take one call on each side", together, "ns"),
        ]
    });
    let many = capabilities.segments_per_send;
    vec![
        if many > 1 {
            let found = format!("UDP_SEGMENT works: up to {many} packets leave with one call");
            Finding::ok(CHECK, found).measured(cost.into_iter().flatten())
        } else {
            missing(CHECK, "UDP_SEGMENT")
        },
        if capabilities.receive_offload {
            Finding::ok("receive-offload", "UDP_GRO works: packets may be received together")
        } else {
            missing("receive-offload", "UDP_GRO")
        },
        if capabilities.priorities {
            Finding::ok("traffic-class", "each packet may have its own traffic class")
        } else {
            Finding::warning("traffic-class", "packets cannot be given a traffic class here")
                .because("All messages then have the same priority in every queue on their way.")
                .mend(["num_priorities = 1  # in apus' configuration: make do without"])
        },
    ]
}

/// Whether calls to peers of this host go through memory.
fn shared_memory() -> Finding {
    const CHECK: &str = "shared-memory";
    match open(builder(Path::Local)) {
        Ok(endpoint) if endpoint.has_local_path() => {
            Finding::ok(CHECK, "calls to peers of this host go through shared memory")
        }
        Ok(_) => Finding::warning(CHECK, "calls to peers of this host go over UDP")
            .because("The system refuses what the way through memory takes: sealed memory files (memfd_create), \
                      abstract unix sockets, or room in the limit of locked or shared memory. It is ten times as fast.")
            .mend(["sysctl vm.memfd_noexec  # 2 forbids them; 0 and 1 are fine",
                   "ulimit -a  # file size and open files must allow a few"]),
        Err(error) => Finding::error(CHECK, format!("no endpoint can be opened: {error}")),
    }
}

fn nonlocal_bind(host: &Host) -> Finding {
    const CHECK: &str = "nonlocal-bind";
    let file =
        |version: &str| host.number::<u8>(&format!("/proc/sys/net/{version}/ip_nonlocal_bind"));
    let set: Vec<&str> = ["ipv4", "ipv6"]
        .into_iter()
        .filter(|version| file(version).is_some_and(|it| it != 0))
        .collect();
    if set.is_empty() {
        return Finding::ok(CHECK, "only addresses of this host can be bound");
    }
    let found =
        format!("any address can be bound here (net.{}.ip_nonlocal_bind)", set.join(" and net."));
    Finding::warning(CHECK, found)
        .because(
            "An endpoint knows peers of its host by an address that can be bound. Here that is every address: \
             calls for another host may reach an endpoint of this one that listens on the same port.",
        )
        .mend(
            set.iter()
                .map(|version| format!("sysctl -w net.{version}.ip_nonlocal_bind=0"))
                .chain(["local = false  # or this in apus' configuration, if a load balancer needs it".to_owned()]),
        )
}

/// Descriptors that a process should be allowed: each peer of this host takes a socket here, and two besides while
/// it is greeted; the rest is the application's. Ours.
const DESCRIPTORS: u64 = 1_024;

fn descriptors(host: &Host) -> Finding {
    const CHECK: &str = "descriptors";
    let Some((soft, hard)) = host.text("/proc/self/limits").as_deref().and_then(open_files) else {
        return Finding::note(CHECK, "the limit of open files cannot be read");
    };
    let found = format!("a process may have {soft} files open");
    if soft >= DESCRIPTORS {
        return Finding::ok(CHECK, found);
    }
    let mut mend = vec![format!("ulimit -n {}", DESCRIPTORS.min(hard))];
    if hard < DESCRIPTORS {
        mend = vec![format!(
            "prlimit --nofile={DESCRIPTORS} --pid $$  # as root: the hard limit is {hard}"
        )];
    }
    mend.push(format!("LimitNOFILE={DESCRIPTORS}  # in the service's unit of systemd"));
    Finding::warning(CHECK, found)
        .because(
            "Each peer on this host takes a descriptor or three, and so does each endpoint. When there is none left, \
             peers fall back to UDP and endpoints cannot be opened.",
        )
        .mend(mend)
}

/// Soft and hard limit of open files in `/proc/PID/limits`.
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
    use super::super::host::planted;
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn this_system_offers_what_every_linux_does() {
        let findings = check(&Host::default());
        let severity = |name| findings.iter().find(|each| each.check == name).unwrap().severity;
        assert_eq!(severity("segmentation-offload"), Severity::Ok);
        assert_eq!(severity("shared-memory"), Severity::Ok);
    }

    #[test]
    fn few_descriptors_are_a_warning_with_what_the_hard_limit_allows() {
        let limits =
            |soft, hard| format!("Limit\nMax open files            {soft}   {hard}   files\n");
        for (soft, hard, mend) in
            [("64", "4096", "ulimit -n 1024"), ("64", "128", "prlimit --nofile=1024 --pid $$")]
        {
            let (host, _root) = planted::host(&[("/proc/self/limits", &limits(soft, hard))]);
            let finding = descriptors(&host);
            assert_eq!(finding.severity, Severity::Warning);
            assert!(finding.mend[0].starts_with(mend), "{finding:?}");
        }
        let (host, _root) =
            planted::host(&[("/proc/self/limits", &limits("unlimited", "unlimited"))]);
        assert_eq!(descriptors(&host).severity, Severity::Ok);
    }

    #[test]
    fn every_address_may_be_bound_or_only_ones_own() {
        let file = "/proc/sys/net/ipv4/ip_nonlocal_bind";
        let (host, _root) =
            planted::host(&[(file, "1"), ("/proc/sys/net/ipv6/ip_nonlocal_bind", "0")]);
        let finding = nonlocal_bind(&host);
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.mend[0], "sysctl -w net.ipv4.ip_nonlocal_bind=0");
    }
}
