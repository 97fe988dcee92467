//! How does one get at the trace of a process that runs?

use std::fs;
use std::path::{Path, PathBuf};

use apus::live::Process;
use apus_trace::Trace;
use clap::Args;
use serde_json::{Value, json};

use super::processes::Processes;
use crate::destination::Destination;
use crate::failure::Failure;
use crate::output;

/// Write the trace of a process that runs into a file
///
/// Of any process of the same user that has an endpoint, if it does not forbid that: the last 16 thousand things that each of its
/// threads did, up to now, or up to the moment at which it was frozen. The process goes on as before. To look at what several
/// did at the same time, freeze all of them first: rings of busy threads last for milliseconds.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus trace dump
  apus trace dump 4711 --out server.tt
  apus trace dump --all --out traces")]
pub(super) struct Arguments {
    #[command(flatten)]
    processes: Processes,
    /// Write it into this file; or into this directory, as HOST-PID.tt. With --all a directory, which is made if it is missing
    #[arg(long, value_name = "FILE|DIR", default_value = ".")]
    out: PathBuf,
    /// Print one JSON object instead of a line for each file
    #[arg(long)]
    json: bool,
}

/// What was written.
struct Written {
    file: PathBuf,
    trace: Trace,
}

/// Writes the files, and says which.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { processes, out, json } = arguments;
    let place = Place::open(out, processes.may_be_several())?;
    let traces = processes.ask("trace dump", Process::trace)?;
    let written = traces.into_iter().map(|(_, trace)| place.write(trace));
    let written = written.collect::<Result<Vec<_>, _>>()?;
    if *json {
        let traces: Vec<_> = written.iter().map(Written::json).collect();
        return output::line(&json!({ "traces": traces }).to_string());
    }
    output::write(written.iter().map(Written::line).collect::<String>())
}

/// Where the files go.
enum Place<'a> {
    File(&'a Path),
    Directory(&'a Path),
}

impl<'a> Place<'a> {
    /// Whether anything can be written is found out before anybody is asked.
    fn open(out: &'a Path, directory: bool) -> Result<Self, Failure> {
        let is_named_so = out.as_os_str().as_encoded_bytes().ends_with(b"/");
        if !directory && !is_named_so && !out.is_dir() {
            return Destination::open("--out", out).map(|_| Self::File(out));
        }
        fs::create_dir_all(out).map_err(|error| Failure::Argument {
            argument: "--out".to_owned(),
            problem: format!("{}: {error}; name a directory that can be written", out.display()),
        })?;
        Ok(Self::Directory(out))
    }

    fn write(&self, trace: Trace) -> Result<Written, Failure> {
        let file = match self {
            Self::File(file) => file.to_path_buf(),
            Self::Directory(directory) => directory.join(trace.head.file_name(None)),
        };
        trace.save(&file).map_err(|error| Failure::of("write the trace", &error))?;
        Ok(Written { file, trace })
    }
}

impl Written {
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
