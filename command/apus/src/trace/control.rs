//! `apus trace freeze`, `resume` and `status`: control of recording in running processes.

use apus::introspection::{Process, Query, TraceStatus};
use apus::snapshot::Snapshot;
use clap::Args;
use serde_json::{Map, Value, json};

use crate::processes::{Processes, Responses, Silent, label};
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Freeze the trace of a running process, so that its records are kept
///
/// The process records nothing until `apus trace resume`; `apus trace dump` writes its records to a
/// file. A trace that is already frozen, for instance because of a slow RPC, stays as it is.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace freeze
  apus trace freeze --all
  apus trace freeze 4711 --json")]
pub(super) struct Freeze {
    #[command(flatten)]
    control: ControlArguments,
}

/// Resume recording in a running process, whatever has frozen its trace
///
/// New records gradually overwrite the old ones.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace resume
  apus trace resume --all
  apus trace resume 4711 --json")]
pub(super) struct Resume {
    #[command(flatten)]
    control: ControlArguments,
}

/// Show what running processes record: share of RPCs, number of records, and what has frozen the
/// trace
///
/// Also shows the files that a process has written automatically, if it is configured to (section
/// `[trace]` of docs/configuration.md).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace status
  apus trace status --all
  apus trace status 4711 --json")]
pub(super) struct Status {
    #[command(flatten)]
    control: ControlArguments,
}

/// The processes, and the form of the answer.
#[derive(Debug, Args)]
struct ControlArguments {
    #[command(flatten)]
    processes: Processes,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn freeze(arguments: &Freeze) -> Result<(), Failure> {
    arguments.control.show("trace freeze", Query::FREEZE_TRACE)
}

pub(super) fn resume(arguments: &Resume) -> Result<(), Failure> {
    arguments.control.show("trace resume", Query::RESUME_TRACE)
}

pub(super) fn status(arguments: &Status) -> Result<(), Failure> {
    arguments.control.show("trace status", Query::TRACE_STATUS)
}

impl ControlArguments {
    /// Sends the request to each process, and prints the status of its recording afterwards.
    ///
    /// # Errors
    ///
    /// A process has not responded. The others are printed before.
    fn show(&self, command: &str, query: Query<TraceStatus>) -> Result<(), Failure> {
        let processes = self.processes.select(command)?;
        let responses = Responses::request(&processes, query)?;
        let received = &responses.received;
        if self.json {
            let processes: Vec<_> =
                received.iter().map(|(process, status)| json(process, status)).collect();
            let silent: Vec<_> = responses.silent.iter().map(Silent::json).collect();
            output::line(&json!({ "processes": processes, "silent": silent }).to_string())?;
        } else {
            let processes: Vec<_> = received.iter().map(|(process, _)| process.clone()).collect();
            let snapshots = Query::SNAPSHOT.all(&processes);
            let lines = received.iter().zip(snapshots).map(|((process, status), snapshot)| {
                text(&name(process, snapshot.ok().as_ref()), status)
            });
            output::write(lines.collect::<String>())?;
        }
        Silent::require_none(&responses.silent)
    }
}

fn json(process: &Process, status: &TraceStatus) -> Value {
    let mut object = Map::from_iter([("pid".to_owned(), process.pid().into())]);
    if let Ok(Value::Object(status)) = serde_json::to_value(status) {
        object.extend(status);
    }
    Value::Object(object)
}

/// Returns the process id, and the program and addresses if the process still runs.
fn name(process: &Process, snapshot: Option<&Snapshot>) -> String {
    match snapshot {
        Some(snapshot) => format!("process {}, {}", process.pid(), label(snapshot)),
        None => format!("process {}", process.pid()),
    }
}

/// Returns one line on recording, plus one each on the files and on the last problem, if any.
fn text(name: &str, status: &TraceStatus) -> String {
    let TraceStatus { records, threads, frozen_nanos, .. } = status;
    let seconds = *frozen_nanos as f64 / 1e9;
    let recording = match (status.frozen, status.period) {
        (Some(reason), _) => format!("frozen {seconds:.1} s ago ({})", reason.name()),
        (None, 0) => "nothing is recorded".to_owned(),
        (None, 1) => "every RPC is recorded".to_owned(),
        (None, period) => format!("one RPC in {period} is recorded"),
    };
    let mut text = format!("{name}: {recording}; {records} records of {threads} threads\n");
    if !status.folders.is_empty() || status.files > 0 {
        let folders = status.folders.join(", ");
        text += &format!("  {} files written to {folders}\n", status.files);
    }
    if let Some(problem) = &status.problem {
        text += &format!("  the last file could not be written: {problem}\n");
    }
    // The text may come from a process of another user: control characters must not reach root's
    // terminal.
    text.replace(|c: char| c.is_control() && c != '\n', "?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::trace::FreezeReason;

    #[test]
    fn the_status_is_printed_as_text() {
        let on = TraceStatus { period: 64, threads: 3, records: 999, ..TraceStatus::default() };
        assert_eq!(text("p", &on), "p: one RPC in 64 is recorded; 999 records of 3 threads\n");
        let off = text("p", &TraceStatus::default());
        assert_eq!(off, "p: nothing is recorded; 0 records of 0 threads\n");
        let frozen = TraceStatus {
            frozen: Some(FreezeReason::SlowRpc),
            frozen_nanos: 2_340_000_000,
            folders: vec!["/traces".to_owned()],
            files: 16,
            problem: Some("full\u{1b}[2J".to_owned()),
            ..on
        };
        assert_eq!(
            text("p", &frozen),
            "p: frozen 2.3 s ago (slow_rpc); 999 records of 3 threads\n  \
             16 files written to /traces\n  the last file could not be written: full?[2J\n"
        );
    }
}
