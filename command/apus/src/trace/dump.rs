//! `apus trace dump`: the traces of running processes as files.

use std::fs;
use std::path::{Path, PathBuf};

use apus::introspection::Query;
use apus_trace::Trace;
use clap::Args;
use serde_json::{Value, json};

use crate::processes::{Processes, Responses, Silent};
use apus_command_line::destination::Destination;
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Write the trace of a running process to a file
///
/// The trace contains the last 16384 records of each thread, up to now or up to the moment when the
/// trace was frozen. Every process of the same user that has an endpoint can be asked, unless it
/// forbids that; it continues to run. To compare several processes, freeze all of them first: the
/// ring of a busy thread covers only some milliseconds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace dump
  apus trace dump 4711 --out server.tt
  apus trace dump --all --out traces")]
pub(super) struct DumpArguments {
    #[command(flatten)]
    processes: Processes,
    /// Write to this file, or to HOST-PID.tt in this directory. With --all it is a directory, which
    /// is created if it does not exist
    #[arg(long, value_name = "FILE|DIR", default_value = ".")]
    out: PathBuf,
    /// Print one JSON object instead of a line for each file
    #[arg(long)]
    json: bool,
}

/// A trace with its file.
struct DumpedTrace {
    file: PathBuf,
    trace: Trace,
}

/// Writes the files, and prints their names.
///
/// # Errors
///
/// A process has not responded, after the traces of the others were written; or a file cannot be
/// written.
pub(super) fn run(arguments: &DumpArguments) -> Result<(), Failure> {
    let DumpArguments { processes, out, json } = arguments;
    let target = Target::open(out, processes.all)?;
    let processes = processes.select("trace dump")?;
    let Responses { received, silent } = Responses::request(&processes, Query::TRACE)?;
    let dumped = received.into_iter().map(|(_, trace)| target.write(trace));
    let dumped = dumped.collect::<Result<Vec<_>, _>>()?;
    if *json {
        let traces: Vec<_> = dumped.iter().map(DumpedTrace::json).collect();
        let silent: Vec<_> = silent.iter().map(Silent::json).collect();
        output::line(&json!({ "traces": traces, "silent": silent }).to_string())?;
    } else {
        output::write(dumped.iter().map(DumpedTrace::line).collect::<String>())?;
    }
    Silent::require_none(&silent)
}

/// The file, or the directory for several files.
enum Target<'a> {
    File(&'a Path, Destination),
    Directory(&'a Path),
}

impl<'a> Target<'a> {
    /// Checks that the files are writable before any request is sent. `directory` means that there
    /// may be several files.
    fn open(out: &'a Path, directory: bool) -> Result<Self, Failure> {
        let ends_with_slash = out.as_os_str().as_encoded_bytes().ends_with(b"/");
        if !directory && !ends_with_slash && !out.is_dir() {
            return Destination::open("--out", out).map(|file| Self::File(out, file));
        }
        fs::create_dir_all(out).map_err(|error| Failure::Argument {
            argument: "--out".to_owned(),
            problem: format!("{}: {error}; name a directory that can be written", out.display()),
        })?;
        Ok(Self::Directory(out))
    }

    fn write(&self, trace: Trace) -> Result<DumpedTrace, Failure> {
        let file = match self {
            Self::File(path, file) => {
                let mut bytes = Vec::new();
                trace.write(&mut bytes).expect("writing to memory succeeds");
                file.fill(&bytes)?;
                path.to_path_buf()
            }
            Self::Directory(directory) => {
                let path = directory.join(trace.head.file_name(None));
                trace.save(&path).map_err(|error| Failure::of("write the trace", &error))?;
                path
            }
        };
        Ok(DumpedTrace { file, trace })
    }
}

impl DumpedTrace {
    fn records(&self) -> usize {
        self.trace.threads.iter().map(|thread| thread.records.len()).sum()
    }

    fn line(&self) -> String {
        let Self { file, trace } = self;
        let frozen = match trace.head.frozen {
            Some(frozen) => format!(", frozen ({})", frozen.reason.name()),
            None => String::new(),
        };
        let (records, threads) = (self.records(), trace.threads.len());
        let file = file.display();
        format!(
            "{file}: {records} records of {threads} threads of process {}{frozen}\n",
            trace.head.pid
        )
    }

    fn json(&self) -> Value {
        let Self { file, trace } = self;
        json!({
            "pid": trace.head.pid,
            "file": file,
            "records": self.records(),
            "threads": trace.threads.len(),
            "frozen": trace.head.frozen.map(|frozen| frozen.reason.name()),
        })
    }
}
