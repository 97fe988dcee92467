//! What does a live process count?

mod change;
mod export;
mod files;
mod select;
mod text;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use apus::live::Process;
use apus::snapshot::Snapshot;
use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::output;

pub(crate) use change::Change;
pub(crate) use select::{about, select};

/// Show what processes with apus endpoints count: rates, cores used by part, and what should be zero
///
/// Looks twice, an interval apart, and shows what has changed in between: counters with their rates, which part of the work the
/// cores are used for, how messages were received, how long calls took, and canaries: counters that should not move. Every
/// process of the same user that has an endpoint can be looked at, if it does not forbid that; docs/metrics.md says what each
/// counter means.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus metrics
  apus metrics 4711 --interval 10
  apus metrics --all --json
  apus metrics 4711 --save before.json
  apus metrics --diff before.json after.json
  apus metrics --all --prometheus
  apus metrics --all --listen 127.0.0.1:9464")]
pub(crate) struct Arguments {
    /// The process; without it, the only one there is
    #[arg(value_name = "PID", conflicts_with = "all", value_parser = pid)]
    pid: Option<u32>,
    /// All processes of this user
    #[arg(long)]
    all: bool,
    /// Seconds between the two looks: 0.01 to 86400
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, value_parser = interval,
          allow_negative_numbers = true)]
    interval: f64,
    /// How often that is shown; 0: until it is interrupted
    #[arg(long, value_name = "TIMES", default_value_t = 1)]
    count: u64,
    /// Print one JSON object instead of tables, or one per look, if it is to be shown several times
    #[arg(long)]
    json: bool,
    /// Look once, and write all counters into a file, for --diff
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "diff", "prometheus", "listen"])]
    save: Option<PathBuf>,
    /// What has changed from one file to another
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"],
          conflicts_with_all = ["pid", "all", "prometheus", "listen"])]
    diff: Option<Vec<PathBuf>>,
    /// Look once, and print all counters as Prometheus reads them
    #[arg(long, conflicts_with_all = ["json", "listen"])]
    prometheus: bool,
    /// Serve that over HTTP at ADDR, HOST:PORT, path /metrics, until it is interrupted; port 0 takes any free one
    #[arg(long, value_name = "ADDR", conflicts_with = "json", value_parser = address)]
    listen: Option<SocketAddr>,
}

/// A process by its number.
pub(crate) fn pid(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        "a process is named by its number, such as 4711; `apus metrics` says which there are"
            .to_owned()
    })
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

/// Does what is asked for.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some([old, new]) = arguments.diff.as_deref() {
        let (before, now) = (files::read(old)?, files::read(new)?);
        return show(arguments, &files::changes(&before, &now)?);
    }
    if let Some(address) = arguments.listen {
        return export::listen(address, arguments.pid);
    }
    let processes = select(arguments.pid, arguments.all, "metrics")?;
    if let Some(path) = &arguments.save {
        return files::write(path, &snapshots(&processes)?);
    }
    if arguments.prometheus {
        return output::write(apus::prometheus::text(snapshots(&processes)?, true));
    }
    watch(arguments, &processes)
}

/// Shows what changes from look to look.
fn watch(arguments: &Arguments, processes: &[Process]) -> Result<(), Failure> {
    let mut before = snapshots(processes)?;
    let mut shown = 0;
    loop {
        thread::sleep(Duration::from_secs_f64(arguments.interval));
        let now = snapshots(processes)?;
        show(arguments, &files::changes(&before, &now)?)?;
        before = now;
        shown += 1;
        if shown == arguments.count {
            return Ok(());
        }
    }
}

/// The counters of these processes. Of several some may have ended meanwhile.
fn snapshots(processes: &[Process]) -> Result<Vec<Snapshot>, Failure> {
    let mut found = Vec::new();
    for process in processes {
        match process.snapshot() {
            Ok(snapshot) => found.push(snapshot),
            Err(apus::live::Error::Absent { .. }) if processes.len() > 1 => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

fn show(arguments: &Arguments, changes: &[Change]) -> Result<(), Failure> {
    if arguments.json {
        let processes: Vec<_> = changes.iter().map(Change::json).collect();
        return output::line(&json!({ "processes": processes }).to_string());
    }
    let texts: Vec<_> = changes.iter().map(text::of).collect();
    output::write(texts.join("\n"))
}

impl From<apus::live::Error> for Failure {
    fn from(error: apus::live::Error) -> Self {
        // What another user's process says shall not speak to the terminal of root.
        Self::Work(error.to_string().replace(char::is_control, "?"))
    }
}
