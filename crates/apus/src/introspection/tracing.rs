//! What does a live process say of its time trace, and what can be done to that?
//!
//! The trace is the process's: whoever may look at one of its endpoints may have all of it.

use super::requests::{Answer, written};
use crate::trace::{self, FreezeReason, Sampling, SavedFiles};
use serde::{Deserialize, Serialize};

/// How the time trace of a process stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceStatus {
    /// Whether anything is recorded: it is neither switched off nor frozen.
    pub recording: bool,
    /// What is recorded while it is not frozen, as [`Sampling`] writes it: `off`, `sampled`, `sampled=100`, `all`.
    pub sampling: String,
    /// One RPC in so many is traced then; 0: none.
    pub period: u32,
    /// Why it was frozen, if it is.
    pub frozen: Option<FreezeReason>,
    /// Nanoseconds since then; 0 if it is not.
    pub frozen_nanos: u64,
    /// Threads whose records are there, those that have ended lately included.
    pub threads: u64,
    /// Records that are there: the last 16 thousand of each thread at most.
    pub records: u64,
    /// Folders into which it writes files when it freezes by itself ([`EndpointBuilder::trace_files`](crate::EndpointBuilder::trace_files)).
    pub folders: Vec<String>,
    /// Files that it has written so.
    pub files: u64,
    /// Why there is none of the last freeze, if there is none.
    pub problem: Option<String>,
    /// Whether the request has changed anything: `false` for who only looks, freezes what is frozen, or resumes what goes on.
    pub changed: bool,
}

/// The trace as the bytes of a file.
pub(super) fn dump() -> Answer {
    let mut bytes = Vec::new();
    trace::snapshot().write(&mut bytes).map_err(|error| error.to_string())?;
    Ok(bytes)
}

pub(super) fn status() -> Answer {
    written(&now(false))
}

pub(super) fn freeze() -> Answer {
    let changed = trace::freeze(FreezeReason::Demand);
    let now = now(changed);
    if now.frozen.is_none() && now.sampling == Sampling::Off.to_string() {
        return Err("it records no time trace that could be frozen".to_owned());
    }
    written(&now)
}

pub(super) fn resume() -> Answer {
    written(&now(trace::thaw()))
}

fn now(changed: bool) -> TraceStatus {
    let status = trace::status();
    let frozen = status.frozen.map(|frozen| frozen.reason);
    let SavedFiles { folders, files, problem, .. } = trace::saved_files();
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
