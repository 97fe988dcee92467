//! Do the threads that wait for messages get their cores?

use ::apus::PollMode;

use super::finding::{Finding, Measured};
use super::host::Host;
use super::measure::stall;
use apus_testbed::machine;

/// Cores, and the share of them that the process may use.
pub(super) fn check(host: &Host, threads: usize, poll: PollMode) -> Vec<Finding> {
    let quota = Quota::read(host);
    vec![
        enough(threads, machine::allowed().len().max(1), poll),
        quota_finding(quota.as_ref(), threads),
    ]
}

fn enough(threads: usize, cores: usize, poll: PollMode) -> Finding {
    const CHECK: &str = "cores";
    let stall = stall::of(threads);
    let words =
        |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let figures = [
        Measured::new(
            format!(
                "the longest time for which a thread that never sleeps did not run, of {}",
                words(threads, "thread")
            ),
            stall.longest_us,
            "us",
        ),
        Measured::new("of their time in which they ran", 100.0 * stall.share, "%"),
    ];
    let found =
        format!("{} for {} waiting for messages", words(cores, "core"), words(threads, "thread"));
    if threads <= cores {
        return Finding::ok(CHECK, found).measured(figures);
    }
    let finding = match poll {
        PollMode::Spin => Finding::error(CHECK, found),
        PollMode::Hybrid(_) => Finding::warning(CHECK, found),
        PollMode::Block => Finding::note(CHECK, found),
    };
    finding
        .because(
            "A thread that spins keeps the others from running, for milliseconds; their messages wait, and peers ask \
             for them again. One core for each thread that waits, or threads that sleep.",
        )
        .measured(figures)
        .mend([
            "taskset --all-tasks --cpu-list --pid 0-$(($(nproc --all) - 1)) PID  # PID: let the process use all cores"
                .to_owned(),
            "poll = \"block\"  # or this in apus' configuration".to_owned(),
            format!("receivers = {cores}  # or fewer threads"),
        ])
}

/// How much of the cores a control group may use.
#[derive(Clone, Debug, PartialEq)]
struct Quota {
    /// Cores' worth of time.
    cores: f64,
    /// The period in which that is counted, in milliseconds.
    period_ms: f64,
    /// Times that the group was stopped because it had used its share.
    stopped: Option<u64>,
    /// The file that says so.
    file: String,
}

impl Quota {
    /// The least of the process's control group and those around it; `None` if none has any.
    fn read(host: &Host) -> Option<Self> {
        let groups = host.text("/proc/self/cgroup")?;
        let quotas = groups.lines().flat_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
            let (controllers, path) = (controllers.unwrap_or_default(), path.unwrap_or_default());
            let mounts: &[&str] = match controllers {
                // Version 2; beside version 1 it may be mounted below.
                "" => &["/sys/fs/cgroup", "/sys/fs/cgroup/unified"],
                list if list.split(',').any(|each| each == "cpu") => {
                    &["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"]
                }
                _ => &[],
            };
            let around = ancestors(path);
            let places = mounts.iter().flat_map(move |mount| {
                around.clone().into_iter().map(move |path| format!("{mount}{path}"))
            });
            places.filter_map(|folder| Self::of(host, &folder)).collect::<Vec<_>>()
        });
        quotas.min_by(|a, b| a.cores.total_cmp(&b.cores))
    }

    fn of(host: &Host, folder: &str) -> Option<Self> {
        let stopped = || {
            let stat = host.text(&format!("{folder}/cpu.stat"))?;
            stat.lines().find_map(|line| line.strip_prefix("nr_throttled "))?.parse().ok()
        };
        let new = |file: String, quota: f64, period: f64| {
            Some(Self { cores: quota / period, period_ms: period / 1e3, stopped: stopped(), file })
        };
        let file = format!("{folder}/cpu.max");
        if let Some(text) = host.text(&file) {
            let (quota, period) = text.split_once(' ')?;
            return new(file, quota.parse().ok()?, period.parse().ok()?);
        }
        let file = format!("{folder}/cpu.cfs_quota_us");
        let quota = host.number::<f64>(&file).filter(|quota| *quota > 0.0)?;
        new(file, quota, host.number(&format!("{folder}/cpu.cfs_period_us"))?)
    }
}

/// `/a/b` and what is around it: `/a/b`, `/a`, and the root, which is empty.
fn ancestors(path: &str) -> Vec<String> {
    let mut path = path.trim_end_matches('/');
    let mut all = vec![path.to_owned()];
    while let Some((parent, _)) = path.rsplit_once('/') {
        path = parent;
        all.push(path.to_owned());
    }
    all
}

fn quota_finding(quota: Option<&Quota>, threads: usize) -> Finding {
    const CHECK: &str = "cpu-quota";
    let Some(Quota { cores, period_ms, stopped, file }) = quota else {
        return Finding::ok(CHECK, "no control group limits processor time");
    };
    let mut found =
        format!("a control group may use {cores:.2} cores' time in each {period_ms:.0} ms");
    if let Some(stopped) = stopped.filter(|stopped| *stopped > 0) {
        found += &format!(", and was stopped {stopped} times because of that");
    }
    if *cores >= threads as f64 && stopped.unwrap_or_default() == 0 {
        return Finding::ok(CHECK, found);
    }
    Finding::warning(CHECK, found)
        .because(format!(
            "What spins uses the share up, and then all threads of the group stand still until the next period: up to \
             {period_ms:.0} ms in which nothing is answered."
        ))
        .mend([
            format!("grep . {file}  # where the limit is"),
            "systemctl set-property UNIT CPUQuota=  # UNIT: the service; in containers: no `--cpus`, no `limits.cpu`"
                .to_owned(),
            "poll = \"block\"  # or this in apus' configuration".to_owned(),
        ])
}

#[cfg(test)]
mod tests {
    use super::super::host::planted;
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn too_few_cores_are_worse_the_more_threads_spin() {
        let hybrid = PollMode::default();
        assert_eq!(enough(2, 2, PollMode::Spin).severity, Severity::Ok);
        assert_eq!(enough(4, 1, PollMode::Spin).severity, Severity::Error);
        assert_eq!(enough(4, 1, hybrid).severity, Severity::Warning);
        assert_eq!(enough(4, 1, PollMode::Block).severity, Severity::Note);
        let found = enough(4, 1, hybrid).found;
        assert_eq!(found, "1 core for 4 threads waiting for messages");
    }

    #[test]
    fn the_least_quota_around_counts_in_either_version() {
        let (host, _root) = planted::host(&[
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/cpu.max", "50000 100000"),
            ("/sys/fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 7\n"),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000"),
        ]);
        let quota = Quota::read(&host).unwrap();
        assert_eq!((quota.cores, quota.period_ms, quota.stopped), (0.5, 100.0, Some(7)));
        let finding = quota_finding(Some(&quota), 1);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.found.contains("0.50 cores") && finding.found.contains("7 times"));
        let (host, _root) = planted::host(&[
            ("/proc/self/cgroup", "3:cpuset:/\n1:cpu,cpuacct:/x\n"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "400000"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000"),
        ]);
        let quota = Quota::read(&host).unwrap();
        assert_eq!(quota.cores, 4.0);
        assert_eq!(quota_finding(Some(&quota), 4).severity, Severity::Ok);
        assert_eq!(quota_finding(Some(&quota), 5).severity, Severity::Warning);
        let (host, _root) = planted::host(&[("/proc/self/cgroup", "0::/no-such-group\n")]);
        assert_eq!(Quota::read(&host), None);
    }
}
