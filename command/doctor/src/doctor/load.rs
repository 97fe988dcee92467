//! Load checks: CPU time of other programs and virtual machines.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use super::finding::{Finding, Measurement};
use super::host::SystemFiles;
use apus_measure::machine;

/// Duration of the observation. Chosen by us: thirty kernel ticks.
const PERIOD: Duration = Duration::from_millis(300);

/// Maximum share of CPU time for other programs before the finding is a warning. Chosen by us: one
/// core of ten.
const MAX_OTHER_LOAD: f64 = 0.10;

/// Minimum share of stolen time to report.
const MAX_STOLEN: f64 = 0.02;

/// Kernel ticks per second: `USER_HZ`, 100 on all Linux systems.
const TICKS: f64 = 100.0;

/// Observes the CPU time of all programs for [`PERIOD`].
pub(super) fn check(host: &SystemFiles) -> Vec<Finding> {
    let cores = machine::allowed();
    let before = CpuSnapshot::of(host, &cores);
    thread::sleep(PERIOD);
    let after = CpuSnapshot::of(host, &cores);
    let mut findings = vec![other_load(before.as_ref(), after.as_ref())];
    findings.extend(before.zip(after).and_then(|(before, after)| stolen(&before, &after)));
    findings.extend(pressure(host));
    findings
}

/// CPU time used up to a moment, in ticks.
#[derive(Clone, Debug, Default)]
struct CpuSnapshot {
    all: u64,
    idle: u64,
    steal: u64,
    /// Name and ticks, by process id.
    processes: HashMap<u32, (String, u64)>,
}

impl CpuSnapshot {
    /// Reads the CPU time of `cores`, and of all processes but this one.
    fn of(host: &SystemFiles, cores: &[usize]) -> Option<Self> {
        let system = host.text("/proc/stat")?;
        let ticks = ticks(&system, cores)?;
        let [.., idle, waiting, _, _, steal] = ticks;
        let own = std::process::id();
        let numbers = host.names("/proc").into_iter().filter_map(|name| name.parse().ok());
        let processes = numbers.filter(|number| *number != own).filter_map(|number: u32| {
            Some((number, process_ticks(&host.text(&format!("/proc/{number}/stat"))?)?))
        });
        Some(Self {
            all: ticks.iter().sum(),
            idle: idle + waiting,
            steal,
            processes: processes.collect(),
        })
    }
}

/// Returns the ticks of `cores`, or of all cores if the system has only totals: user, nice, system,
/// idle, iowait, irq, softirq, steal; see proc_stat(5).
fn ticks(system: &str, cores: &[usize]) -> Option<[u64; 8]> {
    let of = |name: String| -> Option<[u64; 8]> {
        let line = system.lines().find_map(|line| line.strip_prefix(&name))?;
        let ticks: Vec<u64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        ticks.first_chunk().copied()
    };
    let each: Option<Vec<[u64; 8]>> = cores.iter().map(|core| of(format!("cpu{core} "))).collect();
    match each.filter(|each| !each.is_empty()) {
        Some(each) => Some(std::array::from_fn(|kind| each.iter().map(|ticks| ticks[kind]).sum())),
        None => of("cpu ".to_owned()),
    }
}

/// Returns the name of a process and its used ticks, from `/proc/PID/stat`.
fn process_ticks(stat: &str) -> Option<(String, u64)> {
    let (before, behind) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut times = behind.split_whitespace().skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    Some((name.to_owned(), user + system))
}

fn other_load(before: Option<&CpuSnapshot>, after: Option<&CpuSnapshot>) -> Finding {
    const CHECK: &str = "other-load";
    let (Some(before), Some(after)) = (before, after) else {
        return Finding::note(CHECK, "the system does not report the use of its cores");
    };
    let all = after.all.saturating_sub(before.all);
    if all == 0 {
        return Finding::ok(CHECK, "the CPU time counters of the system did not advance");
    }
    let idle = after.idle.saturating_sub(before.idle) + after.steal.saturating_sub(before.steal);
    let share = all.saturating_sub(idle) as f64 / all as f64;
    let fact = format!("other programs use {:.0} % of the cores", 100.0 * share);
    if share < MAX_OTHER_LOAD {
        return Finding::ok(CHECK, fact);
    }
    let mut busiest: Vec<(u64, u32, &str)> = after
        .processes
        .iter()
        .filter_map(|(number, (name, ticks))| {
            let earlier = before.processes.get(number).map_or(0, |(_, ticks)| *ticks);
            Some((ticks.checked_sub(earlier)?, *number, name.as_str()))
        })
        .filter(|(ticks, ..)| *ticks > 0)
        .collect();
    busiest.sort_unstable_by(|a, b| b.cmp(a));
    busiest.truncate(3);
    let figures = busiest.iter().map(|(ticks, number, name)| {
        let what = format!("CPU time of `{name}` (process {number}), relative to one core");
        Measurement::new(what, 100.0 * *ticks as f64 / (TICKS * PERIOD.as_secs_f64()), "%")
    });
    let figures: Vec<Measurement> = figures.collect();
    let fixes = busiest.first().map(|(_, number, _)| {
        [
            format!("taskset --all-tasks --cpu-list --pid 0 {number}  # restrict it to one core"),
            format!("renice --priority 19 --pid {number}  # or lower its priority"),
        ]
    });
    Finding::warning(CHECK, fact)
        .because(
            "A thread woken by a message waits for the end of another program's time slice, 1 to 4 ms. This \
             determines the 99th percentile of all messages.",
        )
        .with_measurements(figures)
        .fix(fixes.into_iter().flatten())
}

/// Reports CPU time given by the hypervisor to other virtual machines.
fn stolen(before: &CpuSnapshot, after: &CpuSnapshot) -> Option<Finding> {
    const CHECK: &str = "stolen-time";
    let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
    let share = after.steal.saturating_sub(before.steal) as f64 / all as f64;
    let fact = format!("the hypervisor took {:.1} % of the CPU time", 100.0 * share);
    if share < MAX_STOLEN {
        return Some(Finding::ok(CHECK, fact));
    }
    Some(
        Finding::note(CHECK, fact)
            .because("Other virtual machines run on the same cores; meanwhile no thread of this one runs.")
            .fix(["vmstat 1 10  # column st; use dedicated cores, or fewer virtual machines per host"]),
    )
}

/// Reports how long threads recently waited for a core or for memory; `None` if the kernel does not
/// record it.
fn pressure(host: &SystemFiles) -> Option<Finding> {
    const CHECK: &str = "pressure";
    /// Limit in percent of the last ten seconds. Chosen by us.
    const LIMIT: f64 = 10.0;
    let of = |what| {
        let text = host.text(&format!("/proc/pressure/{what}"))?;
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse::<f64>().ok()
    };
    let (cpu, memory) = (of("cpu")?, of("memory").unwrap_or_default());
    let fact =
        format!("threads waited {cpu:.0} % of the last 10 s for a core, {memory:.0} % for memory");
    if cpu < LIMIT && memory < LIMIT {
        return Some(Finding::ok(CHECK, fact));
    }
    Some(
        Finding::note(CHECK, fact)
            .because("The threads need more cores or memory than the host has.")
            .fix(["cat /proc/pressure/cpu /proc/pressure/memory  # averages over 10 s, 60 s and 300 s"]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::host::fixture;
    use super::*;
    use crate::doctor::Severity;

    fn snapshot(busy: u64, idle: u64, steal: u64, ticks: u64) -> CpuSnapshot {
        let processes = HashMap::from([(7, ("a (b) c".to_owned(), ticks))]);
        CpuSnapshot { all: busy + idle + steal, idle, steal, processes }
    }

    #[test]
    fn the_busiest_process_is_named() {
        let (before, after) = (snapshot(100, 900, 0, 5), snapshot(140, 920, 0, 32));
        let finding = other_load(Some(&before), Some(&after));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.fact, "other programs use 67 % of the cores");
        assert_eq!(
            finding.measurements[0].to_string(),
            "90.0 %: CPU time of `a (b) c` (process 7), relative to one core"
        );
        assert!(finding.fixes[1].ends_with("--pid 7  # or lower its priority"), "{finding:?}");
        let calm = other_load(Some(&before), Some(&snapshot(101, 960, 0, 5)));
        assert_eq!((calm.severity, calm.fixes.len()), (Severity::Ok, 0));
        assert_eq!(other_load(Some(&before), Some(&before)).severity, Severity::Ok);
        assert_eq!(other_load(None, None).severity, Severity::Note);
    }

    #[test]
    fn stolen_time_is_not_other_load() {
        let (before, after) = (snapshot(0, 0, 0, 0), snapshot(0, 50, 50, 0));
        assert_eq!(other_load(Some(&before), Some(&after)).severity, Severity::Ok);
        assert_eq!(stolen(&before, &after).unwrap().severity, Severity::Note);
    }

    #[test]
    fn only_allowed_cores_count() {
        let system = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 0 0 2 0 0 0 0 0 0\ncpu1 1 0 0 3 0 0 0 1 0 0\ncpu10 7 7 7 7 7 7 7 7";
        assert_eq!(ticks(system, &[1]), Some([1, 0, 0, 3, 0, 0, 0, 1]));
        assert_eq!(ticks(system, &[0, 1]), Some([2, 0, 0, 5, 0, 0, 0, 1]));
        assert_eq!(ticks(system, &[5]), Some([9; 8]), "one that is not there");
        assert_eq!(ticks(system, &[]), Some([9; 8]));
        assert_eq!(ticks("", &[0]), None);
    }

    #[test]
    fn system_files_are_parsed() {
        let (host, _root) = fixture::host(&[
            ("/proc/stat", "cpu  10 1 5 80 4 2 3 6 0 0\ncpu0 1"),
            ("/proc/12/stat", "12 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 20 30 5 6 20 0"),
            (
                "/proc/pressure/cpu",
                "some avg10=31.50 avg60=1.00 avg300=0.1 total=5\nfull avg10=0.00",
            ),
            ("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"),
        ]);
        let snapshot = CpuSnapshot::of(&host, &[0]).unwrap();
        assert_eq!((snapshot.all, snapshot.idle, snapshot.steal), (111, 84, 6));
        assert_eq!(snapshot.processes[&12], ("a (b) c".to_owned(), 50));
        let finding = pressure(&host).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert!(finding.fact.contains("32 % of the last 10 s for a core"), "{finding:?}");
    }
}
