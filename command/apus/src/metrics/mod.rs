//! `apus metrics`: counters of running processes.
//!
//! ```text
//!   tables          activity as text
//!   snapshot_file   counters in files, for comparisons
//!   prometheus      counters over HTTP
//! ```

mod prometheus;
mod snapshot_file;
mod tables;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use apus::introspection::{Process, Query};
use apus::snapshot::Snapshot;
use clap::Args;
use serde_json::json;

use crate::activity::Activity;
use crate::processes::{Processes, Responses, Silent};
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Show rates, core usage and canaries of running processes that use apus
///
/// Takes two snapshots of the counters, an interval apart, and shows the difference: counters with
/// their rates, the cores used by each part of the engine, how messages were received, how long
/// calls took, and canaries, which are counters that should stay zero. The table of senders has the
/// peers whose messages are arriving at the end of the interval: what they may send, and what they
/// say waits with them. Every process of the same user that has an endpoint can be inspected,
/// unless it forbids that. docs/metrics.md explains each counter.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus metrics
  apus metrics 4711 --interval 10
  apus metrics --all --json
  apus metrics 4711 --save before.json
  apus metrics --diff before.json after.json
  apus metrics --all --prometheus
  apus metrics --all --listen 127.0.0.1:9464")]
pub(crate) struct MetricsArguments {
    #[command(flatten)]
    processes: Processes,
    /// Seconds between two snapshots: 0.01 to 86400
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval,
          allow_negative_numbers = true)]
    interval: f64,
    /// Number of intervals to show; 0 shows them until interrupted
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    count: u64,
    /// Print one JSON object for each interval instead of tables
    #[arg(long)]
    json: bool,
    /// Take one snapshot and write it to this file, for --diff
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "diff", "prometheus", "listen"])]
    save: Option<PathBuf>,
    /// Show the difference between two files that --save has written
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"],
          conflicts_with_all = ["pid", "all", "prometheus", "listen"])]
    diff: Option<Vec<PathBuf>>,
    /// Take one snapshot and print it in the format of Prometheus
    #[arg(long, conflicts_with_all = ["json", "listen"])]
    prometheus: bool,
    /// Serve the counters to Prometheus on http://ADDR/metrics until interrupted; ADDR is an IP
    /// address and a port, and port 0 picks a free one
    #[arg(long, value_name = "ADDR", conflicts_with = "json", value_parser = address)]
    listen: Option<SocketAddr>,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let hint =
        "it must be an IP address and a port; try `127.0.0.1:9464`, which only this host reaches";
    text.parse().map_err(|_| hint.to_owned())
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "an interval is 0.01 to 86400 seconds; try 1".to_owned())
}

/// Shows, saves or serves the counters.
///
/// # Errors
///
/// No process can be inspected, or a file cannot be read or written.
pub(crate) fn run(arguments: &MetricsArguments) -> Result<(), Failure> {
    if let Some([old, new]) = arguments.diff.as_deref() {
        let (before, now) = (snapshot_file::read(old)?, snapshot_file::read(new)?);
        return show(arguments, &activities(&before, &now)?, &[]);
    }
    if let Some(address) = arguments.listen {
        return prometheus::listen(address, arguments.processes.pid);
    }
    let processes = arguments.processes.select("metrics")?;
    if arguments.prometheus && processes.len() > 1 {
        return output::write(apus::prometheus::text(prometheus::snapshots(&processes), true));
    }
    let first = Responses::request(&processes, Query::SNAPSHOT)?;
    if arguments.prometheus {
        return output::write(apus::prometheus::text(snapshots(first), true));
    }
    if let Some(path) = &arguments.save {
        first.silent.iter().for_each(|silent| output::note(&silent.reason));
        return snapshot_file::write(path, &snapshots(first));
    }
    watch(arguments, processes, first)
}

/// Shows the activity of each interval after the snapshots `before`.
fn watch(
    arguments: &MetricsArguments,
    mut processes: Vec<Process>,
    before: Responses<Snapshot>,
) -> Result<(), Failure> {
    let mut before = snapshots(before);
    let mut shown = 0;
    loop {
        thread::sleep(Duration::from_secs_f64(arguments.interval));
        leave_out_the_ended(&mut processes)?;
        let now = match Responses::request(&processes, Query::SNAPSHOT) {
            Ok(now) => now,
            Err(failure) => {
                // It may have ended meanwhile.
                leave_out_the_ended(&mut processes)?;
                return Err(failure);
            }
        };
        let silent = now.silent.clone();
        let now = snapshots(now);
        let mut activities = activities(&before, &now)?;
        add_senders(&mut activities);
        show(arguments, &activities, &silent)?;
        before = now;
        shown += 1;
        if shown == arguments.count {
            return Ok(());
        }
    }
}

/// Removes the processes that have ended since they were selected, and names them.
///
/// # Errors
///
/// All have ended.
fn leave_out_the_ended(processes: &mut Vec<Process>) -> Result<(), Failure> {
    let ended: Vec<_> = processes.extract_if(.., |process| process.has_ended()).collect();
    let notes: Vec<_> =
        ended.iter().map(|process| format!("process {} has ended", process.pid())).collect();
    if processes.is_empty() {
        return Err(Failure::Work(notes.join("\n")));
    }
    notes.iter().for_each(|note| output::note(note));
    Ok(())
}

/// Adds the peers whose messages are arriving. A process that has just ended, or that runs an older
/// version, does not respond.
fn add_senders(activities: &mut [Activity]) {
    let processes: Vec<_> = activities.iter().map(|one| Process::new(one.now.pid)).collect();
    for (activity, senders) in activities.iter_mut().zip(Query::SENDERS.all(&processes)) {
        activity.senders = senders.ok();
    }
}

fn snapshots(responses: Responses<Snapshot>) -> Vec<Snapshot> {
    responses.received.into_iter().map(|(_, snapshot)| snapshot).collect()
}

/// Pairs the snapshots by process and returns the activity of each. A process present in only one
/// of the two has no activity. If each contains a single process, the two are compared despite
/// different ids, for instance a server before and after a restart.
///
/// # Errors
///
/// No process is present in both.
fn activities(before: &[Snapshot], now: &[Snapshot]) -> Result<Vec<Activity>, Failure> {
    let pairs: Vec<(&Snapshot, &Snapshot)> = match (before, now) {
        ([before], [now]) => vec![(before, now)],
        _ => {
            let earlier = |now: &Snapshot| before.iter().find(|before| before.pid == now.pid);
            now.iter().filter_map(|now| Some((earlier(now)?, now))).collect()
        }
    };
    let activities: Vec<_> =
        pairs.into_iter().filter_map(|(before, now)| Activity::between(before, now)).collect();
    if activities.is_empty() {
        let problem = "no process with endpoints is in both";
        return Err(Failure::Work(format!("nothing to compare: {problem}")));
    }
    Ok(activities)
}

/// Shows activities, and the processes that did not respond.
fn show(
    arguments: &MetricsArguments,
    activities: &[Activity],
    silent: &[Silent],
) -> Result<(), Failure> {
    if arguments.json {
        let processes: Vec<_> = activities.iter().map(Activity::json).collect();
        let silent: Vec<_> = silent.iter().map(Silent::json).collect();
        return output::line(&json!({ "processes": processes, "silent": silent }).to_string());
    }
    let activities = activities.iter().map(tables::text);
    let silent = silent.iter().map(|silent| format!("{}\n", silent.reason));
    output::write(activities.chain(silent).collect::<Vec<_>>().join("\n"))
}
