//! Core checks: compares the number of waiting threads with the available cores and CPU quota.

use ::apus::PollMode;

use super::finding::{Finding, Measurement};
use super::host::SystemFiles;
use super::measure::stall;
use apus_measure::machine;

/// Checks the number of cores and the CPU quota.
pub(super) fn check(host: &SystemFiles, threads: usize, poll: PollMode) -> Vec<Finding> {
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
        Measurement::new(
            format!(
                "longest time for which one of {} that never sleep did not run",
                words(threads, "thread")
            ),
            stall.longest_us,
            "us",
        ),
        Measurement::new("share of the time in which these threads ran", 100.0 * stall.share, "%"),
    ];
    let fact =
        format!("{} for {} waiting for messages", words(cores, "core"), words(threads, "thread"));
    if threads <= cores {
        return Finding::ok(CHECK, fact).with_measurements(figures);
    }
    let finding = match poll {
        PollMode::Spin => Finding::error(CHECK, fact),
        PollMode::Hybrid(_) => Finding::warning(CHECK, fact),
        PollMode::Block => Finding::note(CHECK, fact),
    };
    finding
        .because(
            "A spinning thread keeps the others from running for milliseconds. Their messages wait, and peers send \
             RESENDs. Give each waiting thread a core, or let the threads sleep.",
        )
        .with_measurements(figures)
        .fix([
            "taskset --all-tasks --cpu-list --pid 0-$(($(nproc --all) - 1)) PID  # let process PID use all cores"
                .to_owned(),
            "poll = \"block\"  # alternatively, in the configuration of apus".to_owned(),
            format!("receivers = {cores}  # or with fewer threads"),
        ])
}

/// CPU quota of a control group.
#[derive(Clone, Debug, PartialEq)]
struct Quota {
    /// Quota in units of cores.
    cores: f64,
    /// Period of the quota in milliseconds.
    period_ms: f64,
    /// Number of times that the group was throttled.
    stopped: Option<u64>,
    /// Path of the file that defines the quota.
    file: String,
}

impl Quota {
    /// Reads the smallest quota of the process's control group and its ancestors; `None` without a
    /// quota.
    fn read(host: &SystemFiles) -> Option<Self> {
        let groups = host.text("/proc/self/cgroup")?;
        let quotas = groups.lines().flat_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (_, controllers, path) = (fields.next(), fields.next(), fields.next());
            let (controllers, path) = (controllers.unwrap_or_default(), path.unwrap_or_default());
            let mounts: &[&str] = match controllers {
                // Version 2. On a hybrid system it is mounted in a subdirectory.
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

    fn of(host: &SystemFiles, folder: &str) -> Option<Self> {
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

/// Returns a path and its ancestors: for `/a/b` these are `/a/b`, `/a`, and the root, which is
/// empty.
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
        return Finding::ok(CHECK, "no control group limits CPU time");
    };
    let mut fact = format!(
        "a control group limits this process to {cores:.2} cores of CPU time per {period_ms:.0} ms"
    );
    if let Some(stopped) = stopped.filter(|stopped| *stopped > 0) {
        fact += &format!(", and has throttled it {stopped} times");
    }
    if *cores >= threads as f64 && stopped.unwrap_or_default() == 0 {
        return Finding::ok(CHECK, fact);
    }
    Finding::warning(CHECK, fact)
        .because(format!(
            "Spinning threads use up the quota, and then all threads of the group pause until the next period, for \
             up to {period_ms:.0} ms."
        ))
        .fix([
            format!("grep . {file}  # the limit"),
            "systemctl set-property UNIT CPUQuota=  # UNIT: the service. In containers: remove `--cpus` or `limits.cpu`"
                .to_owned(),
            "poll = \"block\"  # alternatively, in the configuration of apus".to_owned(),
        ])
}

#[cfg(test)]
mod tests {
    use super::super::host::fixture;
    use super::*;
    use crate::doctor::Severity;

    #[test]
    fn too_few_cores_are_worse_if_threads_spin() {
        let hybrid = PollMode::default();
        assert_eq!(enough(2, 2, PollMode::Spin).severity, Severity::Ok);
        assert_eq!(enough(4, 1, PollMode::Spin).severity, Severity::Error);
        assert_eq!(enough(4, 1, hybrid).severity, Severity::Warning);
        assert_eq!(enough(4, 1, PollMode::Block).severity, Severity::Note);
        let fact = enough(4, 1, hybrid).fact;
        assert_eq!(fact, "1 core for 4 threads waiting for messages");
    }

    #[test]
    fn the_smallest_quota_of_all_ancestors_counts_in_both_versions() {
        let (host, _root) = fixture::host(&[
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/sys/fs/cgroup/a/cpu.max", "50000 100000"),
            ("/sys/fs/cgroup/a/cpu.stat", "nr_periods 9\nnr_throttled 7\n"),
            ("/sys/fs/cgroup/a/b/cpu.max", "max 100000"),
        ]);
        let quota = Quota::read(&host).unwrap();
        assert_eq!((quota.cores, quota.period_ms, quota.stopped), (0.5, 100.0, Some(7)));
        let finding = quota_finding(Some(&quota), 1);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(finding.fact.contains("0.50 cores") && finding.fact.contains("7 times"));
        let (host, _root) = fixture::host(&[
            ("/proc/self/cgroup", "3:cpuset:/\n1:cpu,cpuacct:/x\n"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "400000"),
            ("/sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000"),
        ]);
        let quota = Quota::read(&host).unwrap();
        assert_eq!(quota.cores, 4.0);
        assert_eq!(quota_finding(Some(&quota), 4).severity, Severity::Ok);
        assert_eq!(quota_finding(Some(&quota), 5).severity, Severity::Warning);
        let (host, _root) = fixture::host(&[("/proc/self/cgroup", "0::/no-such-group\n")]);
        assert_eq!(Quota::read(&host), None);
    }
}
