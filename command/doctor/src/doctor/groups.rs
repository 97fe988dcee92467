//! Host group checks: finds the endpoints on this host that share a schedule and those that run
//! their own.

use std::collections::BTreeMap;

use apus::snapshot::{EndpointSnapshot, Snapshot};

use super::finding::Finding;

const CHECK: &str = "host-group";

/// Maximum number of processes listed per kind.
const MAX_NAMED: usize = 5;

/// If several processes use the link, reports which of them share it.
pub(super) fn check(snapshots: &[Snapshot]) -> Option<Finding> {
    // For each process, whether all its endpoints with a link are in a group. Loopback has no
    // link.
    let mut processes: BTreeMap<u32, (&str, bool)> = BTreeMap::new();
    for process in snapshots {
        for endpoint in process.endpoints.iter().filter(|endpoint| has_link(endpoint)) {
            let entry = processes.entry(process.pid).or_insert((&process.program, true));
            entry.1 &= endpoint.gauges.get("link_sharers").is_some_and(|sharers| *sharers > 0);
        }
    }
    if processes.len() < 2 {
        return None;
    }
    let named = |wanted: bool| {
        let of_kind = processes.iter().filter(|(_, (_, shares))| *shares == wanted);
        let mut names: Vec<_> =
            of_kind.map(|(pid, (program, _))| format!("{pid} (`{program}`)")).collect();
        if names.len() > MAX_NAMED {
            let more = names.len() - MAX_NAMED;
            names.truncate(MAX_NAMED);
            names.push(format!("{more} more"));
        }
        names.join(", ")
    };
    let (sharing, alone) = (named(true), named(false));
    if alone.is_empty() {
        let fact = format!("all processes with endpoints share their link: {sharing}");
        return Some(Finding::ok(CHECK, fact));
    }
    let fact = match sharing.is_empty() {
        true => format!("processes of this host schedule as if each were alone: {alone}"),
        false => format!("processes {sharing} share their link, but not {alone}"),
    };
    let finding = Finding::note(CHECK, fact)
        .because(
            "Each grants as many bytes as its host can take, and counts only its own packets in the interface's queue. While \
             several receive at once, the queue at the switch is several times as long, and short messages wait in it.",
        )
        .fix(["host_group = \"eth0\"  # in the settings of each service that uses this interface"]);
    Some(finding)
}

/// Returns whether the endpoint's address is not on the loopback device.
fn has_link(endpoint: &EndpointSnapshot) -> bool {
    !endpoint.address.ip().is_loopback()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Severity;

    fn process(pid: u32, address: &str, sharers: u64) -> Snapshot {
        let mut endpoint = EndpointSnapshot::new(address.parse().unwrap(), &Default::default());
        assert!(endpoint.gauges.contains_key("link_sharers"), "the gauge exists");
        endpoint.gauges.insert("link_sharers".to_owned(), sharers);
        let program = "server".to_owned();
        Snapshot { pid, program, endpoints: vec![endpoint], ..Snapshot::default() }
    }

    #[test]
    fn one_process_with_a_link_has_nothing_to_share() {
        let snapshots = [process(7, "10.0.0.1:40", 0), process(8, "127.0.0.1:40", 0)];
        assert_eq!(check(&snapshots), None);
    }

    #[test]
    fn processes_that_share_and_those_that_do_not_are_named() {
        let [shares, too, alone] =
            [process(7, "10.0.0.1:40", 3), process(8, "0.0.0.0:41", 2), process(9, "[::]:42", 0)];
        let all = check(&[shares.clone(), too.clone()]).unwrap();
        assert_eq!(all.severity, Severity::Ok);
        assert!(all.fact.ends_with("7 (`server`), 8 (`server`)"), "{}", all.fact);
        let some = check(&[shares, too, alone.clone()]).unwrap();
        assert_eq!(some.severity, Severity::Note);
        assert!(some.fact.ends_with("but not 9 (`server`)"), "{}", some.fact);
        let many: Vec<_> = (1..=7).map(|pid| Snapshot { pid, ..alone.clone() }).collect();
        let none = check(&many).unwrap();
        assert!(none.fact.ends_with("5 (`server`), 2 more"), "{}", none.fact);
    }
}
