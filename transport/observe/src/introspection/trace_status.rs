//! Requests about the time trace of a live process: its state, its records, freezing and resuming.
//!
//! There is one trace per process: a client with access to one endpoint has access to the whole
//! trace.

use crate::introspection::response::{Response, json};
use apus_trace::auto_save::{SavedFiles, saved_files};
use apus_trace::recorder;
use apus_trace::{FreezeReason, Sampling};
use serde::{Deserialize, Serialize};

/// State of a process's time trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceStatus {
    /// Whether events are recorded, that is, the trace is neither switched off nor frozen.
    pub recording: bool,
    /// Extent of the recording while the trace is not frozen, in the text form of [`Sampling`]:
    /// `off`, `sampled`, `sampled=100`, `all`.
    pub sampling: String,
    /// One RPC in `period` is traced; 0: none.
    pub period: u32,
    /// The reason for the freeze, if the trace is frozen.
    pub frozen: Option<FreezeReason>,
    /// Nanoseconds since the freeze; 0 if the trace is not frozen.
    pub frozen_nanos: u64,
    /// Number of threads with records, including threads that have ended and whose rings were not
    /// reused.
    pub threads: u64,
    /// Number of records: at most the last 16 thousand of each thread.
    pub records: u64,
    /// Folders for a file whenever a trigger freezes the trace
    /// (`EndpointBuilder::trace_files`).
    pub folders: Vec<String>,
    /// Number of files written there.
    pub files: u64,
    /// The reason why the last freeze has no file, if it has none.
    pub problem: Option<String>,
    /// Whether the request changed the state: `false` for `trace status`, for freezing a frozen
    /// trace, and for resuming a trace that is not frozen.
    pub changed: bool,
}

/// Returns the trace in the format of trace files.
pub(crate) fn dump() -> Response {
    let mut bytes = Vec::new();
    recorder::snapshot().write(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

pub(crate) fn status() -> Response {
    json(&current(false))
}

pub(crate) fn freeze() -> Response {
    let changed = recorder::freeze(FreezeReason::Demand);
    let status = current(changed);
    if status.frozen.is_none() && status.sampling == Sampling::Off.to_string() {
        return Err("it records no time trace that could be frozen".to_owned());
    }
    json(&status)
}

pub(crate) fn resume() -> Response {
    json(&current(recorder::resume()))
}

fn current(changed: bool) -> TraceStatus {
    let status = recorder::status();
    let frozen = status.frozen.map(|frozen| frozen.reason);
    let SavedFiles { folders, files, problem, .. } = saved_files();
    TraceStatus {
        recording: frozen.is_none() && status.sampling != Sampling::Off,
        sampling: status.sampling.to_string(),
        period: status.sampling.period(),
        frozen,
        frozen_nanos: u64::try_from(status.frozen_for.as_nanos()).unwrap_or(u64::MAX),
        threads: status.threads as u64,
        records: status.records,
        folders: folders.iter().map(|folder| folder.display().to_string()).collect(),
        files,
        problem,
        changed,
    }
}
