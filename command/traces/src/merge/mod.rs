//! Merging: puts the traces of several processes on one clock, and finds their common RPCs.
//!
//! ```text
//!   traces ─▶ clock_domains: traces with the same clock
//!          ─▶ associations:  peers of one process matched with peers of another
//!          ─▶ rpcs:          RPCs with the records of both sides
//!          ─▶ clocks:        offsets between clocks (clock_offset), from the packets of these RPCs
//!          ─▶ MergedTraces:  all records in chronological order, on one clock
//! ```
//!
//! [`crate::report`] and [`crate::perfetto`] are built from the result.

mod associations;
mod clock_domains;
mod clock_offset;
mod clocks;
mod rpcs;
#[cfg(test)]
mod tests;

pub use associations::Association;
pub use clocks::{ClockAlignment, Placement};
pub use rpcs::{RpcRecord, TracedRpc};

use apus_trace::event::{Event, Unit};
use apus_trace::{Head, Record, Trace};
use std::collections::HashMap;
use std::path::Path;

/// Traces of several processes on one clock.
#[derive(Debug)]
pub struct MergedTraces {
    /// The processes, in the order of their traces.
    pub processes: Vec<Process>,
    /// The threads of all processes.
    pub threads: Vec<MergedThread>,
    /// All records, the earliest first.
    pub records: Vec<TimedRecord>,
    /// The RPCs, the earliest first.
    pub rpcs: Vec<TracedRpc>,
    /// Pairs of endpoints that exchanged RPCs.
    pub associations: Vec<Association>,
    /// Alignment of each clock.
    pub clocks: Vec<ClockAlignment>,
    /// Warnings for readers of reports: missing or uncertain data.
    pub notes: Vec<String>,
}

/// A traced process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Origin of the trace: the name of its file.
    pub source: String,
    /// Header of the trace.
    pub head: Head,
}

/// A thread of a traced process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedThread {
    /// Index of its process in [`MergedTraces::processes`].
    pub process: usize,
    /// Name of the thread.
    pub name: String,
    /// Thread id within the host.
    pub tid: u32,
    /// Last CPU it ran on.
    pub cpu: u32,
    /// Number of its records overwritten by newer records.
    pub overwritten: u64,
}

/// A record with its time on the common clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimedRecord {
    /// Nanoseconds since the first record of the first process; negative for earlier records.
    pub at: i64,
    /// Index of its thread in [`MergedTraces::threads`].
    pub thread: usize,
    /// The record.
    pub record: Record,
}

/// Error of merging.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// No trace was given.
    #[error("no trace given: name the files of one process or of several")]
    NoTraces,
    /// Two traces belong to the same process; its records would count twice.
    #[error(
        "{first} and {second} are traces of the same process ({program}, pid {pid} on {host}): name one of them"
    )]
    DuplicateProcess {
        /// File name of the first trace.
        first: String,
        /// File name of the second trace.
        second: String,
        /// Name of the host.
        host: String,
        /// Name of the program.
        program: String,
        /// Process id.
        pid: u32,
    },
}

impl MergedTraces {
    /// Merges traces, each with the name of its file.
    ///
    /// # Errors
    ///
    /// [`MergeError`]: no trace, or two traces of the same process.
    pub fn of(traces: Vec<(String, Trace)>) -> Result<Self, MergeError> {
        if traces.is_empty() {
            return Err(MergeError::NoTraces);
        }
        check_duplicates(&traces)?;
        let clock_domains = clock_domains::ClockDomains::of(&traces);
        let (associations, ends) = associations::associations(&traces);
        let mut rpcs = rpcs::rpcs(&traces, &clock_domains, &ends);
        let clocks = clocks::Clocks::of(&traces, &clock_domains, &associations, &rpcs);
        for rpc in &mut rpcs {
            rpc.align(&associations[rpc.association], |process, local| {
                clocks.common(clock_domains.of_process(process), local)
            });
        }
        rpcs.sort_by_key(TracedRpc::begin);

        let mut notes = clocks.notes();
        let mut merged = Self {
            processes: Vec::new(),
            threads: Vec::new(),
            records: Vec::new(),
            rpcs,
            associations,
            clocks: clocks.into_links(),
            notes: Vec::new(),
        };
        for (process, (source, trace)) in traces.into_iter().enumerate() {
            merged.add(process, source, trace, &clock_domains, &mut notes);
        }
        merged.records.sort_by_key(|entry| entry.at);
        merged.notes = notes;
        Ok(merged)
    }

    fn add(
        &mut self,
        process: usize,
        source: String,
        trace: Trace,
        clock_domains: &clock_domains::ClockDomains,
        notes: &mut Vec<String>,
    ) {
        let Trace { head, threads } = trace;
        let domain = clock_domains.of_process(process);
        let mut overwritten_records = 0;
        for thread in threads {
            let place = self.threads.len();
            overwritten_records += thread.overwritten;
            for record in thread.records {
                let at = self.clocks[domain].common(clock_domains.local(process, record.ticks));
                self.records.push(TimedRecord { at, thread: place, record });
            }
            let apus_trace::Thread { name, tid, cpu, overwritten, .. } = thread;
            self.threads.push(MergedThread { process, name, tid, cpu, overwritten });
        }
        if overwritten_records > 0 {
            notes.push(format!(
                "{source}: {overwritten_records} older records had been overwritten when it was written; threads begin at \
                 different times"
            ));
        }
        self.processes.push(Process { source, head });
    }

    /// Returns the process of a thread.
    #[must_use]
    pub fn process_of(&self, thread: usize) -> &Process {
        &self.processes[self.threads[thread].process]
    }

    /// Returns the display name of a process: its file name without the extension, or the whole
    /// path if that is ambiguous.
    #[must_use]
    pub fn process_name(&self, process: usize) -> String {
        let short = |source: &str| {
            let stem = Path::new(source).file_stem().unwrap_or_default();
            stem.to_string_lossy().into_owned()
        };
        let own = &self.processes[process].source;
        let name = short(own);
        let same = self.processes.iter().filter(|other| short(&other.source) == name).count();
        if same > 1 || name.is_empty() { own.clone() } else { name }
    }

    /// Returns the display name of a thread: its name, prefixed with its process if several are
    /// traced.
    #[must_use]
    pub fn thread_name(&self, thread: usize) -> String {
        let MergedThread { process, name, .. } = &self.threads[thread];
        if self.processes.len() == 1 {
            return name.clone();
        }
        format!("{}: {name}", self.process_name(*process))
    }

    /// Returns whether every process traced every RPC.
    #[must_use]
    pub fn traces_all(&self) -> bool {
        self.processes.iter().all(|process| process.head.period == 1)
    }

    /// Returns the name of an enumerated value, for instance a drop reason.
    #[must_use]
    pub fn value_name(&self, entry: &TimedRecord, list: &str, number: u64) -> String {
        let values = &self.process_of(entry.thread).head.values;
        let name = values.get(list).and_then(|names| names.get(usize::try_from(number).ok()?));
        name.cloned().unwrap_or_else(|| format!("{list} {number}"))
    }

    /// Returns the duration of the operation that ended with this record, in nanoseconds; 0 if the
    /// event has none.
    #[must_use]
    pub fn operation_time(&self, entry: &TimedRecord) -> i64 {
        let ticks = entry.record.fields().find(|(field, _)| field.unit == Unit::Ticks);
        let clock = self.process_of(entry.thread).head.clock;
        let nanos = ticks.map_or(0, |(_, ticks)| clock.nanos(ticks));
        i64::try_from(nanos).unwrap_or(clock_domains::MAX_TIME).min(clock_domains::MAX_TIME)
    }

    /// Returns all records of an event, the earliest first.
    pub fn all(&self, event: Event) -> impl Iterator<Item = &TimedRecord> {
        self.records.iter().filter(move |entry| entry.record.event() == Some(event))
    }

    /// Returns the nanoseconds from the first to the last record.
    #[must_use]
    pub fn duration(&self) -> i64 {
        match (self.records.first(), self.records.last()) {
            (Some(first), Some(last)) => last.at.saturating_sub(first.at),
            _ => 0,
        }
    }

    /// Returns the records of each thread, the earliest first.
    #[must_use]
    pub fn by_thread(&self) -> Vec<Vec<TimedRecord>> {
        let mut all = vec![Vec::new(); self.threads.len()];
        for entry in &self.records {
            all[entry.thread].push(*entry);
        }
        all
    }
}

/// Rejects two traces of the same process, even if they cover different times.
fn check_duplicates(traces: &[(String, Trace)]) -> Result<(), MergeError> {
    let mut sources = HashMap::new();
    for (source, Trace { head, .. }) in traces {
        let key = (&head.host, head.pid, head.clock.start.ticks);
        if let Some(first) = sources.insert(key, source) {
            let (first, second) = (first.clone(), source.clone());
            let Head { host, program, pid, .. } = head.clone();
            return Err(MergeError::DuplicateProcess { first, second, host, program, pid });
        }
    }
    Ok(())
}
