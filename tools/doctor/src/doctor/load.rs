//! Who else uses the machine?

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use super::finding::{Finding, Measured};
use super::host::Host;
use apus_testbed::machine;

/// How long to look. Ours: thirty of the kernel's ticks.
const LOOK: Duration = Duration::from_millis(300);

/// Share of the cores' time from which on others are in the way. Ours: a core of ten.
const IN_THE_WAY: f64 = 0.10;

/// Share of the time that a hypervisor took away from which on it is worth a word.
const STOLEN: f64 = 0.02;

/// Kernel's ticks a second: `USER_HZ`, 100 wherever Linux runs.
const TICKS: f64 = 100.0;

/// Looks at all programs for a moment.
pub(super) fn check(host: &Host) -> Vec<Finding> {
    let cores = machine::allowed();
    let before = Sight::of(host, &cores);
    thread::sleep(LOOK);
    let after = Sight::of(host, &cores);
    let mut findings = vec![others(before.as_ref(), after.as_ref())];
    findings.extend(before.zip(after).and_then(|(before, after)| stolen(&before, &after)));
    findings.extend(pressure(host));
    findings
}

/// What was used up to a moment, in ticks.
#[derive(Clone, Debug, Default)]
struct Sight {
    all: u64,
    idle: u64,
    steal: u64,
    /// By number: name, and ticks.
    processes: HashMap<u32, (String, u64)>,
}

impl Sight {
    /// Of the cores that this process may use.
    fn of(host: &Host, cores: &[usize]) -> Option<Self> {
        let system = host.text("/proc/stat")?;
        let ticks = ticks(&system, cores)?;
        let [.., idle, waiting, _, _, steal] = ticks;
        let own = std::process::id();
        let numbers = host.names("/proc").into_iter().filter_map(|name| name.parse().ok());
        let processes = numbers.filter(|number| *number != own).filter_map(|number: u32| {
            Some((number, used(&host.text(&format!("/proc/{number}/stat"))?)?))
        });
        Some(Self {
            all: ticks.iter().sum(),
            idle: idle + waiting,
            steal,
            processes: processes.collect(),
        })
    }
}

/// Ticks of these cores together, or of all where the system does not tell them apart: user, nice, system, idle, iowait,
/// irq, softirq, steal; see proc_stat(5).
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

/// Name of a process and ticks that it has used, from `/proc/PID/stat`.
fn used(stat: &str) -> Option<(String, u64)> {
    let (before, behind) = stat.rsplit_once(')')?;
    let (_, name) = before.split_once('(')?;
    let mut times = behind.split_whitespace().skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let system: u64 = times.next()?.parse().ok()?;
    Some((name.to_owned(), user + system))
}

fn others(before: Option<&Sight>, after: Option<&Sight>) -> Finding {
    const CHECK: &str = "other-load";
    let (Some(before), Some(after)) = (before, after) else {
        return Finding::note(CHECK, "the system does not tell who uses the cores");
    };
    let all = after.all.saturating_sub(before.all);
    if all == 0 {
        return Finding::ok(CHECK, "no time passed by the system's count");
    }
    let idle = after.idle.saturating_sub(before.idle) + after.steal.saturating_sub(before.steal);
    let share = all.saturating_sub(idle) as f64 / all as f64;
    let found = format!("other programs use {:.0} % of the cores", 100.0 * share);
    if share < IN_THE_WAY {
        return Finding::ok(CHECK, found);
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
        let what = format!("of a core, by `{name}` (process {number})");
        Measured::new(what, 100.0 * *ticks as f64 / (TICKS * LOOK.as_secs_f64()), "%")
    });
    let figures: Vec<Measured> = figures.collect();
    let mend = busiest.first().map(|(_, number, _)| {
        [
            format!("taskset --all-tasks --cpu-list --pid 0 {number}  # keep it on one core"),
            format!("renice --priority 19 --pid {number}  # or let it give way"),
        ]
    });
    Finding::warning(CHECK, found)
        .because(
            "A thread that a message wakes waits until another program's slice is over, 1 to 4 ms; the slowest \
             hundredth of all messages tells.",
        )
        .measured(figures)
        .mend(mend.into_iter().flatten())
}

/// What a hypervisor gave to others.
fn stolen(before: &Sight, after: &Sight) -> Option<Finding> {
    const CHECK: &str = "stolen-time";
    let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
    let share = after.steal.saturating_sub(before.steal) as f64 / all as f64;
    let found = format!("the hypervisor took {:.1} % of the cores' time away", 100.0 * share);
    if share < STOLEN {
        return Some(Finding::ok(CHECK, found));
    }
    Some(
        Finding::note(CHECK, found)
            .because("Other virtual machines run on the same cores; while they do, nothing is answered here.")
            .mend(["vmstat 1 10  # column st; a machine with cores of its own, or fewer neighbours"]),
    )
}

/// Time that threads have waited for a core or for memory lately; `None` where the kernel does not count it.
fn pressure(host: &Host) -> Option<Finding> {
    const CHECK: &str = "pressure";
    /// Per cent of the last ten seconds. Ours.
    const MUCH: f64 = 10.0;
    let of = |what| {
        let text = host.text(&format!("/proc/pressure/{what}"))?;
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        some.split_whitespace().find_map(|word| word.strip_prefix("avg10="))?.parse::<f64>().ok()
    };
    let (cpu, memory) = (of("cpu")?, of("memory").unwrap_or_default());
    let found =
        format!("threads waited {cpu:.0} % of the last 10 s for a core, {memory:.0} % for memory");
    if cpu < MUCH && memory < MUCH {
        return Some(Finding::ok(CHECK, found));
    }
    Some(
        Finding::note(CHECK, found)
            .because("More wants to run, or to be in memory, than there is room for.")
            .mend(["cat /proc/pressure/cpu /proc/pressure/memory  # lately, in the last minute, in the last five"]),
    )
}

#[cfg(test)]
mod tests {
    use super::super::host::planted;
    use super::*;
    use crate::doctor::Severity;

    fn sight(busy: u64, idle: u64, steal: u64, ticks: u64) -> Sight {
        let processes = HashMap::from([(7, ("a (b) c".to_owned(), ticks))]);
        Sight { all: busy + idle + steal, idle, steal, processes }
    }

    #[test]
    fn who_is_busiest_is_named() {
        let (before, after) = (sight(100, 900, 0, 5), sight(140, 920, 0, 32));
        let finding = others(Some(&before), Some(&after));
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.found, "other programs use 67 % of the cores");
        assert_eq!(finding.measured[0].to_string(), "90.0 %: of a core, by `a (b) c` (process 7)");
        assert!(finding.mend[1].ends_with("--pid 7  # or let it give way"), "{finding:?}");
        let calm = others(Some(&before), Some(&sight(101, 960, 0, 5)));
        assert_eq!((calm.severity, calm.mend.len()), (Severity::Ok, 0));
        assert_eq!(others(Some(&before), Some(&before)).severity, Severity::Ok);
        assert_eq!(others(None, None).severity, Severity::Note);
    }

    #[test]
    fn what_the_hypervisor_took_is_not_the_neighbours() {
        let (before, after) = (sight(0, 0, 0, 0), sight(0, 50, 50, 0));
        assert_eq!(others(Some(&before), Some(&after)).severity, Severity::Ok);
        assert_eq!(stolen(&before, &after).unwrap().severity, Severity::Note);
    }

    #[test]
    fn only_the_cores_that_may_be_used_count() {
        let system = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 0 0 2 0 0 0 0 0 0\ncpu1 1 0 0 3 0 0 0 1 0 0\ncpu10 7 7 7 7 7 7 7 7";
        assert_eq!(ticks(system, &[1]), Some([1, 0, 0, 3, 0, 0, 0, 1]));
        assert_eq!(ticks(system, &[0, 1]), Some([2, 0, 0, 5, 0, 0, 0, 1]));
        assert_eq!(ticks(system, &[5]), Some([9; 8]), "one that is not there");
        assert_eq!(ticks(system, &[]), Some([9; 8]));
        assert_eq!(ticks("", &[0]), None);
    }

    #[test]
    fn the_systems_lines_are_understood() {
        let (host, _root) = planted::host(&[
            ("/proc/stat", "cpu  10 1 5 80 4 2 3 6 0 0\ncpu0 1"),
            ("/proc/12/stat", "12 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 20 30 5 6 20 0"),
            (
                "/proc/pressure/cpu",
                "some avg10=31.50 avg60=1.00 avg300=0.1 total=5\nfull avg10=0.00",
            ),
            ("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0"),
        ]);
        let sight = Sight::of(&host, &[0]).unwrap();
        assert_eq!((sight.all, sight.idle, sight.steal), (111, 84, 6));
        assert_eq!(sight.processes[&12], ("a (b) c".to_owned(), 50));
        let finding = pressure(&host).unwrap();
        assert_eq!(finding.severity, Severity::Note);
        assert!(finding.found.contains("32 % of the last 10 s for a core"), "{finding:?}");
    }
}
