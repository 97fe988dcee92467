//! What do the traces of several processes say together?
//!
//! ```text
//!   traces ─▶ domains: which of them have the same clock
//!          ─▶ ways:    which peer of one is which peer of another
//!          ─▶ calls:   what both sides recorded of an RPC
//!          ─▶ clocks:  how far one is ahead of another (corridor), from the packets of those calls
//!          ─▶ Merged:  all records in the order in which they happened, on one clock
//! ```

mod calls;
mod clocks;
mod corridor;
mod domains;
#[cfg(test)]
mod tests;
mod ways;

pub use calls::{Call, Mark};
pub use clocks::{ClockLink, Placement};
pub use ways::Way;

use apus_trace::event::{Event, Unit};
use apus_trace::{Head, Record, Trace};
use std::collections::HashMap;
use std::path::Path;

/// What several processes recorded, on one clock.
#[derive(Debug)]
pub struct Merged {
    /// The processes, in the order of their traces.
    pub processes: Vec<Process>,
    /// The threads of all of them, by process.
    pub threads: Vec<MergedThread>,
    /// All records, the earliest first.
    pub records: Vec<Stamped>,
    /// What is known about each RPC, the earliest first.
    pub calls: Vec<Call>,
    /// Which processes talked with each other.
    pub ways: Vec<Way>,
    /// How the clocks were brought together, one for each clock.
    pub clocks: Vec<ClockLink>,
    /// What a reader of reports has to know: what is missing, or is uncertain.
    pub notes: Vec<String>,
}

/// One of the traces.
#[derive(Clone, Debug)]
pub struct Process {
    /// Where the trace comes from: the name of its file.
    pub source: String,
    /// What the trace says about itself.
    pub head: Head,
}

/// A thread of one of the processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedThread {
    /// The place of its process in [`Merged::processes`].
    pub process: usize,
    /// Its name.
    pub name: String,
    /// Its number in the host.
    pub tid: u32,
    /// The CPU on which it ran last.
    pub cpu: u32,
    /// Its records that had been overwritten by newer ones.
    pub overwritten: u64,
}

/// A record, and when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamped {
    /// Nanoseconds on the common clock: since the first record of the first process, negative if it was before that.
    pub at: i64,
    /// The place of its thread in [`Merged::threads`].
    pub thread: usize,
    /// What was recorded.
    pub record: Record,
}

/// Why traces cannot be merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There is no trace.
    #[error("no trace to look at: name the files of one process or of several")]
    Nothing,
    /// What one process recorded would count twice.
    #[error(
        "{first} and {second} are traces of the same process ({program}, pid {pid} on {host}): name one of them"
    )]
    Twice {
        /// Where the one comes from.
        first: String,
        /// Where the other comes from.
        second: String,
        /// The host of both.
        host: String,
        /// The program.
        program: String,
        /// The process.
        pid: u32,
    },
}

impl Merged {
    /// Of traces, each with where it comes from.
    ///
    /// # Errors
    ///
    /// [`MergeError`]: there is none, or one is there twice.
    pub fn of(traces: Vec<(String, Trace)>) -> Result<Self, MergeError> {
        if traces.is_empty() {
            return Err(MergeError::Nothing);
        }
        refuse_twins(&traces)?;
        let domains = domains::Domains::of(&traces);
        let (ways, ends) = ways::ways(&traces);
        let mut calls = calls::calls(&traces, &domains, &ends);
        let clocks = clocks::Clocks::of(&traces, &domains, &ways, &calls);
        for call in &mut calls {
            call.place(&ways[call.way], |process, local| {
                clocks.common(domains.of_process(process), local)
            });
        }
        calls.sort_by_key(Call::begin);

        let mut notes = clocks.notes();
        let mut merged = Self {
            processes: Vec::new(),
            threads: Vec::new(),
            records: Vec::new(),
            calls,
            ways,
            clocks: clocks.into_links(),
            notes: Vec::new(),
        };
        for (process, (source, trace)) in traces.into_iter().enumerate() {
            merged.add(process, source, trace, &domains, &mut notes);
        }
        merged.records.sort_by_key(|stamped| stamped.at);
        merged.notes = notes;
        Ok(merged)
    }

    fn add(
        &mut self,
        process: usize,
        source: String,
        trace: Trace,
        domains: &domains::Domains,
        notes: &mut Vec<String>,
    ) {
        let Trace { head, threads } = trace;
        let domain = domains.of_process(process);
        let mut lost = 0;
        for thread in threads {
            let place = self.threads.len();
            lost += thread.overwritten;
            for record in thread.records {
                let at = self.clocks[domain].common(domains.local(process, record.ticks));
                self.records.push(Stamped { at, thread: place, record });
            }
            let apus_trace::Thread { name, tid, cpu, overwritten, .. } = thread;
            self.threads.push(MergedThread { process, name, tid, cpu, overwritten });
        }
        if lost > 0 {
            notes.push(format!(
                "{source}: {lost} older records had been overwritten when it was written; threads begin at \
                 different times"
            ));
        }
        self.processes.push(Process { source, head });
    }

    /// The process of a thread.
    #[must_use]
    pub fn process_of(&self, thread: usize) -> &Process {
        &self.processes[self.threads[thread].process]
    }

    /// What people call a process: the name of its file without the ending; if others have the same, with its folder.
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

    /// What people call a thread: its name, and its process if there are several.
    #[must_use]
    pub fn thread_name(&self, thread: usize) -> String {
        let MergedThread { process, name, .. } = &self.threads[thread];
        if self.processes.len() == 1 {
            return name.clone();
        }
        format!("{}: {name}", self.process_name(*process))
    }

    /// Whether every process traced every RPC.
    #[must_use]
    pub fn traces_all(&self) -> bool {
        self.processes.iter().all(|process| process.head.period == 1)
    }

    /// The name of a value of a record's field, like the reason of a drop.
    #[must_use]
    pub fn value_name(&self, stamped: &Stamped, list: &str, number: u64) -> String {
        let values = &self.process_of(stamped.thread).head.values;
        let name = values.get(list).and_then(|names| names.get(usize::try_from(number).ok()?));
        name.cloned().unwrap_or_else(|| format!("{list} {number}"))
    }

    /// How long took what has ended with this record, in nanoseconds; 0 if it does not say.
    #[must_use]
    pub fn took(&self, stamped: &Stamped) -> i64 {
        let ticks = stamped.record.fields().find(|(field, _)| field.unit == Unit::Ticks);
        let clock = self.process_of(stamped.thread).head.clock;
        let nanos = ticks.map_or(0, |(_, ticks)| clock.nanos(ticks));
        i64::try_from(nanos).unwrap_or(domains::LARGEST).min(domains::LARGEST)
    }

    /// All records of an event, the earliest first.
    pub fn all(&self, event: Event) -> impl Iterator<Item = &Stamped> {
        self.records.iter().filter(move |stamped| stamped.record.event() == Some(event))
    }

    /// From the first to the last record, in nanoseconds.
    #[must_use]
    pub fn duration(&self) -> i64 {
        match (self.records.first(), self.records.last()) {
            (Some(first), Some(last)) => last.at.saturating_sub(first.at),
            _ => 0,
        }
    }

    /// Places of the records of each thread, the earliest first.
    #[must_use]
    pub fn by_thread(&self) -> Vec<Vec<Stamped>> {
        let mut all = vec![Vec::new(); self.threads.len()];
        for stamped in &self.records {
            all[stamped.thread].push(*stamped);
        }
        all
    }
}

/// The same process twice, be it at different times.
fn refuse_twins(traces: &[(String, Trace)]) -> Result<(), MergeError> {
    let mut seen = HashMap::new();
    for (source, Trace { head, .. }) in traces {
        let key = (&head.host, head.pid, head.clock.start.ticks);
        if let Some(first) = seen.insert(key, source) {
            let (first, second) = (first.clone(), source.clone());
            let Head { host, program, pid, .. } = head.clone();
            return Err(MergeError::Twice { first, second, host, program, pid });
        }
    }
    Ok(())
}
