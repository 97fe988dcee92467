//! How is recording stopped, resumed and looked at, in processes that run?

use apus::live::{Error, Process, TraceStatus};
use clap::Args;
use serde_json::{Map, Value, json};

use super::processes::{Processes, name};
use crate::failure::Failure;
use crate::output;

/// Stop recording in a process that runs, so that what it holds stays there
///
/// Nothing is recorded any more until `apus trace resume`; `apus trace dump` writes what is there into a file. A trace that was
/// frozen already, by a slow RPC say, stays as it was.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace freeze
  apus trace freeze --all
  apus trace freeze 4711 --json")]
pub(super) struct Freeze {
    #[command(flatten)]
    asked: Asked,
}

/// Let a process that runs go on recording, whatever had frozen its trace
///
/// What it holds is overwritten by and by.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace resume
  apus trace resume --all
  apus trace resume 4711 --json")]
pub(super) struct Resume {
    #[command(flatten)]
    asked: Asked,
}

/// Show what processes that run record: how many RPCs, how much they hold, and what has frozen it
///
/// And which files it has left behind by itself, if it was set up to (section [trace] of docs/configuration.md).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace status
  apus trace status --all
  apus trace status 4711 --json")]
pub(super) struct Status {
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Args)]
struct Asked {
    #[command(flatten)]
    processes: Processes,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

pub(super) fn freeze(arguments: &Freeze) -> Result<(), Failure> {
    arguments.asked.show("trace freeze", Process::freeze_trace)
}

pub(super) fn resume(arguments: &Resume) -> Result<(), Failure> {
    arguments.asked.show("trace resume", Process::resume_trace)
}

pub(super) fn status(arguments: &Status) -> Result<(), Failure> {
    arguments.asked.show("trace status", Process::trace_status)
}

impl Asked {
    /// Asks, and shows how recording stands then.
    fn show(
        &self,
        command: &str,
        question: fn(&Process) -> Result<TraceStatus, Error>,
    ) -> Result<(), Failure> {
        let answers = self.processes.ask(command, question)?;
        if self.json {
            let processes: Vec<_> = answers.iter().map(|(it, status)| json(it, status)).collect();
            return output::line(&json!({ "processes": processes }).to_string());
        }
        output::write(
            answers.iter().map(|(it, status)| text(&name(it), status)).collect::<String>(),
        )
    }
}

fn json(process: &Process, status: &TraceStatus) -> Value {
    let mut object = Map::from_iter([("pid".to_owned(), process.pid().into())]);
    if let Ok(Value::Object(status)) = serde_json::to_value(status) {
        object.extend(status);
    }
    Value::Object(object)
}

/// A line, and one more for files that are left behind.
fn text(name: &str, status: &TraceStatus) -> String {
    let TraceStatus { records, threads, frozen_nanos, .. } = status;
    let seconds = *frozen_nanos as f64 / 1e9;
    let stands = match (status.frozen, status.period) {
        (Some(reason), _) => format!("frozen {seconds:.1} s ago ({})", reason.name()),
        (None, 0) => "nothing is recorded".to_owned(),
        (None, 1) => "every RPC is recorded".to_owned(),
        (None, period) => format!("one RPC in {period} is recorded"),
    };
    let mut text = format!("{name}: {stands}; {records} records of {threads} threads\n");
    if !status.folders.is_empty() || status.files > 0 {
        let folders = status.folders.join(", ");
        text += &format!("  {} files left behind; they go into {folders}\n", status.files);
    }
    if let Some(problem) = &status.problem {
        text += &format!("  no file of the last: {problem}\n");
    }
    // What another user's process says shall not speak to the terminal of root.
    text.replace(|c: char| c.is_control() && c != '\n', "?")
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus::trace::FreezeReason;

    #[test]
    fn how_recording_stands_is_said_in_words() {
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
             16 files left behind; they go into /traces\n  no file of the last: full?[2J\n"
        );
    }
}
