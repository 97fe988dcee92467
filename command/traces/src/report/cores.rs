//! Core usage: finds gaps during which a thread with work did not run.
//!
//! A waiting thread may go without records for any time. A working thread records an event every
//! few microseconds. A longer gap within work means that the thread did not run: the scheduler gave
//! its core to another thread, a system call took long, or a page fault occurred. If several
//! threads of a host have a gap at the same time, the whole host paused (an SMI, a hypervisor).
//!
//! Intervals of work are: a poll of the socket, a send, a pass of the loop (`look`, `send`, `pass`:
//! the duration `took`, which ends at the record); from `call` or `reply` to the same RPC's
//! `to_kernel` or `local_sent` on the same thread; from `woken` to the same RPC's `returned` or
//! `request_returned`. The time between them is waiting or application time, and gaps there are
//! ignored. `sleep` to `wake` is sleep.

use super::distribution::{Distribution, micros};
use super::intervals::union;
use super::thread_records::ThreadRecords;
use crate::merge::{MergedTraces, TimedRecord};
use apus_trace::event::Event;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::HashMap;

/// Default minimum length of a gap, in nanoseconds.
pub const MIN_GAP: i64 = 50_000;

/// Report on core usage.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CoreUsage {
    /// Usage by thread, in the order of the traces.
    pub threads: Vec<ThreadUsage>,
    /// Gaps, the longest first.
    pub stalls: Vec<Stall>,
}

/// Time budget of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadUsage {
    /// Name of the thread.
    pub thread: String,
    /// Last CPU it ran on.
    pub cpu: u32,
    /// Nanoseconds from its first to its last record.
    pub span: i64,
    /// Nanoseconds within intervals of work.
    pub working: i64,
    /// Nanoseconds asleep.
    pub asleep: i64,
    /// Gaps within work.
    pub gaps: Distribution,
}

/// A gap within work.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// Index of the thread in [`MergedTraces::threads`].
    pub thread: usize,
    /// Name of the thread.
    pub name: String,
    /// Start, in nanoseconds on the common clock.
    pub at: i64,
    /// Duration in nanoseconds.
    pub duration: i64,
    /// Events before and after the gap.
    pub between: [String; 2],
    /// Number of other threads of the host with a gap at the same time.
    pub others: usize,
}

impl CoreUsage {
    /// Builds the report from gaps longer than `min_gap` nanoseconds.
    #[must_use]
    pub fn of(merged: &MergedTraces, min_gap: i64) -> Self {
        let threads = ThreadRecords::of(merged);
        let mut stalls = Vec::new();
        let mut usages = Vec::new();
        for thread in 0..merged.threads.len() {
            let all = threads.all(thread);
            let work = work_intervals(merged, all);
            let thread_stalls = stalls_in(merged, all, &work, min_gap);
            let duration = |stretch: &(i64, i64)| stretch.1 - stretch.0;
            usages.push(ThreadUsage {
                thread: merged.thread_name(thread),
                cpu: merged.threads[thread].cpu,
                span: record_span(all),
                working: work.iter().map(duration).sum(),
                asleep: sleeps(all).iter().map(duration).sum(),
                gaps: thread_stalls.iter().map(|stall| stall.duration).collect(),
            });
            stalls.extend(thread_stalls);
        }
        mark_simultaneous(merged, &mut stalls);
        stalls.sort_by_key(|stall| (-stall.duration, stall.at));
        Self { threads: usages, stalls }
    }

    /// Returns the number of gaps that coincide with a gap of another thread of the host.
    #[must_use]
    pub fn simultaneous(&self) -> usize {
        self.stalls.iter().filter(|stall| stall.others > 0).count()
    }
}

fn record_span(all: &[TimedRecord]) -> i64 {
    match all {
        [first, .., last] => last.at - first.at,
        _ => 0,
    }
}

/// Returns the disjoint intervals during which a thread worked, earliest first.
fn work_intervals(merged: &MergedTraces, all: &[TimedRecord]) -> Vec<(i64, i64)> {
    let mut intervals = Vec::new();
    // Start of the work on each RPC.
    let mut work_start: HashMap<_, i64> = HashMap::new();
    for entry in all {
        let (Some(event), rpc) = (entry.record.event(), entry.record.rpc()) else { continue };
        match event {
            Event::Look | Event::Send | Event::Pass => {
                intervals.push((entry.at - merged.operation_time(entry), entry.at));
            }
            Event::Call | Event::Reply | Event::Woken => {
                work_start.insert(rpc, entry.at);
            }
            Event::ToKernel | Event::LocalSent | Event::Returned | Event::RequestReturned => {
                if let Some(from) = work_start.remove(&rpc) {
                    intervals.push((from, entry.at));
                }
            }
            // A sleeping thread does not work.
            Event::Sleep => work_start.clear(),
            _ => {}
        }
    }
    union(intervals)
}

/// Returns the intervals during which a thread slept.
fn sleeps(all: &[TimedRecord]) -> Vec<(i64, i64)> {
    let mut sleeps = Vec::new();
    let mut since = None;
    for entry in all {
        match entry.record.event() {
            Some(Event::Sleep) => since = Some(entry.at),
            Some(Event::Wake) => {
                sleeps.extend(since.take().map(|since| (since, entry.at)));
            }
            _ => {}
        }
    }
    sleeps
}

fn stalls_in(
    merged: &MergedTraces,
    all: &[TimedRecord],
    work: &[(i64, i64)],
    min_gap: i64,
) -> Vec<Stall> {
    let mut stalls = Vec::new();
    for &(from, until) in work {
        let first = all.partition_point(|entry| entry.at < from);
        let end = all.partition_point(|entry| entry.at <= until).max(first);
        // The start of the interval bounds the first gap, even without a record at that time.
        let (mut at, mut name) = (from, "begin of work".to_owned());
        for entry in &all[first..end] {
            let next = entry.record.event().map_or("unknown", Event::name);
            // The recorded operation started within the interval, so its start bounds a gap too.
            let took = merged.operation_time(entry);
            let began = (entry.at - took).max(at);
            let begin = if took > 0 { format!("begin of {next}") } else { next.to_owned() };
            let pieces = [(at, began, &name, begin.as_str()), (began, entry.at, &begin, next)];
            for (begin, until, before, after) in pieces {
                if until - begin > min_gap && !is_between(all, begin, until) {
                    stalls.push(Stall {
                        thread: entry.thread,
                        name: merged.thread_name(entry.thread),
                        at: begin,
                        duration: until - begin,
                        between: [before.clone(), after.to_owned()],
                        others: 0,
                    });
                }
            }
            (at, name) = (entry.at, next.to_owned());
        }
    }
    stalls
}

/// Returns whether the thread recorded an event between two times.
fn is_between(all: &[TimedRecord], from: i64, until: i64) -> bool {
    let first = all.partition_point(|entry| entry.at <= from);
    all.get(first).is_some_and(|entry| entry.at < until)
}

/// For each gap, counts the threads on other cores of the host with a gap that overlaps it by at
/// least half of the shorter gap.
fn mark_simultaneous(merged: &MergedTraces, stalls: &mut [Stall]) {
    stalls.sort_by_key(|stall| stall.at);
    let clock_of = |stall: &Stall| {
        let process = merged.threads[stall.thread].process;
        merged.clocks.iter().position(|link| link.processes.contains(&process))
    };
    let clocks: Vec<_> = stalls.iter().map(clock_of).collect();
    for one in 0..stalls.len() {
        for other in one + 1..stalls.len() {
            let (a, b) = (&stalls[one], &stalls[other]);
            if b.at >= a.at + a.duration {
                break;
            }
            let common = (a.at + a.duration).min(b.at + b.duration) - b.at;
            let half = a.duration.min(b.duration) / 2;
            if clocks[one] == clocks[other] && a.thread != b.thread && common >= half {
                stalls[one].others += 1;
                stalls[other].others += 1;
            }
        }
    }
}

impl Serialize for ThreadUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("thread", &self.thread)?;
        map.serialize_entry("cpu", &self.cpu)?;
        map.serialize_entry("seen_us", &micros(self.span as f64))?;
        map.serialize_entry("worked_us", &micros(self.working as f64))?;
        map.serialize_entry("slept_us", &micros(self.asleep as f64))?;
        map.serialize_entry("gaps", &self.gaps)?;
        map.end()
    }
}

impl Serialize for Stall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("thread", &self.name)?;
        map.serialize_entry("at_us", &micros(self.at as f64))?;
        map.serialize_entry("lasted_us", &micros(self.duration as f64))?;
        map.serialize_entry("between", &self.between)?;
        map.serialize_entry("other_threads", &self.others)?;
        map.end()
    }
}
