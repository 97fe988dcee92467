//! Endpoint checks: counters of running processes that indicate a fault of the host or of a peer.

use apus::introspection::{Error, Query, processes};
use apus::snapshot::{EndpointSnapshot, Snapshot};

use super::finding::{Finding, Measurement};
use super::groups;

const CHECK: &str = "needless-resends";

/// Maximum share of needless retransmissions among the received DATA packets. Chosen by us: a
/// healthy path has almost none; occasionally, a RESEND requests a packet that is still in flight.
const MAX_NEEDLESS: f64 = 0.001;

/// Minimum number of needless retransmissions for a meaningful share.
const MIN_NEEDLESS: u64 = 10;

/// Maximum number of processes listed.
const MAX_NAMED: usize = 3;

/// Reads the counters of all processes of this user that have endpoints.
pub(super) fn check() -> Vec<Finding> {
    let found = match processes() {
        Ok(found) => found,
        Err(error) => return vec![uninspectable(&error)],
    };
    let (mut snapshots, mut silent) = (Vec::new(), Vec::new());
    for response in Query::SNAPSHOT.all(&found) {
        match response {
            Ok(snapshot) => snapshots.push(snapshot),
            Err(Error::Unresponsive { pid, source }) => silent.push((pid, source.to_string())),
            // The process has ended meanwhile.
            Err(_) => {}
        }
    }
    let mut findings = vec![judge(&snapshots)];
    findings.extend(silent_processes(&silent));
    findings.extend(taken_names(&snapshots));
    findings.extend(groups::check(&snapshots));
    findings
}

/// Reports processes that do not respond, with their ids and the probable causes.
fn silent_processes(silent: &[(u32, String)]) -> Option<Finding> {
    let (pid, cause) = silent.first()?;
    let fact = match silent.len() {
        1 => format!("process {pid} has endpoints and does not respond: {cause}"),
        count => {
            let ids = silent.iter().take(MAX_NAMED).map(|(pid, _)| pid.to_string());
            let ids = ids.collect::<Vec<_>>().join(", ");
            let more = if count > MAX_NAMED { ", …" } else { "" };
            format!(
                "{count} processes have endpoints and do not respond ({ids}{more}); process {pid}: {cause}"
            )
        }
    };
    let ids: Vec<_> = silent.iter().map(|(pid, _)| pid.to_string()).collect();
    let finding = Finding::warning("silent-processes", fact)
        .because(
            "Their counters are missing here. Calls to a stopped process end with their deadlines, and its peers keep \
             memory for it.",
        )
        .fix([
            format!("kill -CONT {}  # if they are stopped", ids.join(" ")),
            format!("grep -E 'State|TracerPid' /proc/{pid}/status  # T: stopped; TracerPid: its debugger"),
        ]);
    Some(finding)
}

/// The folder of the sockets cannot be used.
fn uninspectable(error: &Error) -> Finding {
    Finding::warning("inspection", format!("running endpoints cannot be inspected: {error}"))
        .because(
            "Endpoints work without their socket in this folder, but `apus metrics`, `apus top` and `apus trace` do not \
             find them. The folder must belong to this user and be closed to others.",
        )
        .fix(["export APUS_RUNTIME_DIR=\"$HOME/.apus\"  # for the services and for this command"])
}

/// Finds endpoints whose name for peers on this host, or whose peer's name, belongs to another
/// process.
fn taken_names(snapshots: &[Snapshot]) -> Option<Finding> {
    let counter =
        |process: &Snapshot, name: &str| process.total().map_or(0, |all| all.counter(name));
    let has = |process: &&Snapshot| {
        ["local_names_taken", "local_impostors"].iter().any(|name| counter(process, name) > 0)
    };
    let process = snapshots.iter().find(has)?;
    let Snapshot { pid, program, .. } = process;
    let whose =
        if counter(process, "local_names_taken") > 0 { "its own name" } else { "a peer's name" };
    let fact = format!(
        "another process has {whose} of process {pid} (`{program}`) for peers of this host"
    );
    let finding = Finding::warning("local-names", fact)
        .because(
            "Any process of the host can take a free abstract socket name. Calls between these processes go over the \
             network instead of shared memory, and take ten times as long.",
        )
        .fix(["ss -xlp | grep apus-local  # which process has the name; end it, then restart the endpoint"]);
    Some(finding)
}

/// Needless retransmissions received by a process.
struct Needless<'a> {
    process: &'a Snapshot,
    packets: u64,
    /// Share of the DATA packets it received.
    share: f64,
    /// Datagrams dropped by the system because a socket buffer was full.
    overflowed: u64,
}

impl<'a> Needless<'a> {
    fn of(process: &'a Snapshot) -> Option<Self> {
        let total: EndpointSnapshot = process.total()?;
        let packets = total.counter("resent_discards");
        let received = total.counter("packets_received.data");
        let share = packets as f64 / received.max(1) as f64;
        let overflowed = total.counter("driver_datagrams_overflowed");
        let is_fault = packets >= MIN_NEEDLESS && share > MAX_NEEDLESS;
        is_fault.then_some(Self { process, packets, share, overflowed })
    }
}

fn judge(snapshots: &[Snapshot]) -> Finding {
    let mut needless: Vec<Needless<'_>> = snapshots.iter().filter_map(Needless::of).collect();
    needless.sort_by(|a, b| b.share.total_cmp(&a.share));
    needless.truncate(MAX_NAMED);
    let Some(worst) = needless.first() else {
        let fact = match snapshots.len() {
            0 => "no process of this user has an endpoint that can be inspected".to_owned(),
            1 => "one process has endpoints, and its peers repeat nothing needlessly".to_owned(),
            count => format!(
                "{count} processes have endpoints, and their peers repeat nothing needlessly"
            ),
        };
        return Finding::ok(CHECK, fact);
    };
    let Snapshot { pid, program, .. } = worst.process;
    let fact = format!(
        "{} retransmitted packets reached process {pid} (`{program}`) that it did not need, {:.1} % of its DATA packets",
        worst.packets,
        100.0 * worst.share
    );
    let measurements = needless.iter().map(|each| {
        let Snapshot { pid, program, .. } = each.process;
        let what =
            format!("needless retransmissions to process {pid} (`{program}`), of its DATA packets");
        Measurement::new(what, 100.0 * each.share, "%")
    });
    let overflowed = needless.iter().any(|each| each.overflowed > 0);
    let buffer = overflowed.then(|| {
        "sysctl -w net.core.rmem_max=4194304  # datagrams were dropped because a socket's buffer was full".to_owned()
    });
    let fixes = [
        format!("apus metrics {pid} --interval 10  # whether `resent_discards` still grows"),
        format!("pidstat -u -w -p {pid} 1 10  # whether it waits for a core: give it and its peers cores of their own"),
        "apus doctor PEER  # from this host, and at the peer: another program on its cores, a path that loses packets"
            .to_owned(),
    ];
    Finding::warning(CHECK, fact)
        .because(
            "A packet that waits in a busy host was taken for lost and sent again. The repetition costs both hosts time, \
             which lengthens the queue that caused it: messages become slow, and may stay slow.",
        )
        .with_measurements(measurements)
        .fix(fixes.into_iter().chain(buffer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    fn process(pid: u32, needless: u64, received: u64, overflowed: u64) -> Snapshot {
        let address = "127.0.0.1:4000".parse().unwrap();
        let mut endpoint = EndpointSnapshot::new(address, &Default::default());
        let mut plant = |name: &str, count: u64| {
            let counter = endpoint.counters.entry(name.to_owned());
            counter.and_modify(|value| *value = count).or_insert(count);
        };
        plant("resent_discards", needless);
        plant("packets_received.data", received);
        plant("driver_datagrams_overflowed", overflowed);
        let program = "server".to_owned();
        Snapshot { pid, program, endpoints: vec![endpoint], ..Snapshot::default() }
    }

    #[test]
    fn a_name_that_another_process_has_is_a_fault() {
        let mut victim = process(9, 0, 10, 0);
        assert!(taken_names(std::slice::from_ref(&victim)).is_none());
        victim.endpoints[0].counters.insert("local_names_taken".to_owned(), 1);
        let finding = taken_names(&[process(8, 0, 10, 0), victim]).unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.fact.starts_with("another process has its own name of process 9"));
    }

    #[test]
    fn silent_processes_are_named() {
        assert_eq!(silent_processes(&[]), None);
        let stopped = |pid: u32| (pid, "it is stopped".to_owned());
        let one = silent_processes(&[stopped(7)]).unwrap();
        assert!(one.severity.is_fault() && one.fact.starts_with("process 7 "), "{one:?}");
        assert!(one.fact.ends_with("it is stopped"), "{one:?}");
        let many = silent_processes(&[7, 8, 9, 10].map(stopped)).unwrap();
        assert!(many.fact.starts_with("4 processes ") && many.fact.contains("(7, 8, 9, …)"));
        assert!(many.fixes[0].starts_with("kill -CONT 7 8 9 10 "), "{many:?}");
    }

    #[test]
    fn the_counters_exist() {
        let address = "127.0.0.1:4000".parse().unwrap();
        let endpoint = EndpointSnapshot::new(address, &Default::default());
        let names =
            ["resent_discards", "packets_received.data", "local_names_taken", "local_impostors"];
        for name in names {
            assert!(endpoint.counters.contains_key(name), "{name}");
        }
    }

    #[test]
    fn the_worst_process_is_named() {
        let finding = judge(&[
            process(7, 0, 100_000, 0),
            process(8, 9_283, 93_000, 0),
            process(9, 50, 9_000, 0),
        ]);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(
            finding.fact.starts_with("9283 retransmitted packets reached process 8 (`server`)")
        );
        assert!(finding.fact.contains("10.0 %"), "{finding:?}");
        assert_eq!(finding.measurements.len(), 2, "{finding:?}");
        assert_eq!(finding.fixes.len(), 3, "{finding:?}");
    }

    #[test]
    fn a_full_buffer_is_named_as_well() {
        let finding = judge(&[process(8, 900, 9_000, 40)]);
        assert!(finding.fixes[3].starts_with("sysctl -w net.core.rmem_max="), "{finding:?}");
    }

    #[test]
    fn few_needless_packets_are_no_fault() {
        for snapshots in [vec![], vec![process(7, 9, 100, 0)], vec![process(7, 90, 100_000, 3); 2]]
        {
            let finding = judge(&snapshots);
            assert_eq!((finding.severity, finding.fixes.len()), (Severity::Ok, 0), "{finding:?}");
        }
    }
}
