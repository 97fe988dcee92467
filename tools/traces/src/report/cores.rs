//! When did nothing run?
//!
//! A thread that waits may be silent for as long as it likes. One that works may not: between two of its records inside
//! a stretch of work there are some microseconds of code. A longer gap means that the thread did not run: the scheduler
//! gave its core to somebody else, a system call took long, a page came from elsewhere; or, if several threads of a host
//! had a gap at the same time, that the whole host stood still (an SMI, a hypervisor).
//!
//! Stretches of work are: a look at the socket, a send, a pass of the loop (`look`, `send`, `pass`: from `took` ago until
//! the record); from `call` or `reply` to the same RPC's `to_kernel` or `local_sent` of the same thread; from `woken` to
//! the same RPC's `returned` or `request_returned`. What lies between them is waiting, or the application's business,
//! and no gap is looked for there. `sleep` to `wake` is sleep.

use super::stretches::join;
use super::threads::Threads;
use super::{Distribution, micros};
use crate::merge::{Merged, Stamped};
use apus_trace::event::Event;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::HashMap;

/// Shorter gaps are no stalls, in nanoseconds, unless something else is asked for.
pub const LEAST_GAP: i64 = 50_000;

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cores {
    /// The threads, in the order of the traces.
    pub threads: Vec<Usage>,
    /// The gaps, the longest first.
    pub stalls: Vec<Stall>,
}

/// How a thread spent its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// Its name.
    pub thread: String,
    /// The CPU on which it ran last.
    pub cpu: u32,
    /// From its first to its last record, in nanoseconds.
    pub seen: i64,
    /// Nanoseconds in stretches of work.
    pub worked: i64,
    /// Nanoseconds asleep.
    pub slept: i64,
    /// The gaps.
    pub gaps: Distribution,
}

/// A gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// The thread, by its place in [`Merged::threads`].
    pub thread: usize,
    /// Its name.
    pub name: String,
    /// When it began, in nanoseconds on the common clock.
    pub at: i64,
    /// How long it was, in nanoseconds.
    pub lasted: i64,
    /// The last thing before it, and the first after it.
    pub between: [String; 2],
    /// Other threads of the host that had a gap at the same time.
    pub others: usize,
}

impl Cores {
    /// Of gaps that are longer than `least` nanoseconds.
    #[must_use]
    pub fn of(merged: &Merged, least: i64) -> Self {
        let threads = Threads::of(merged);
        let mut stalls = Vec::new();
        let mut usages = Vec::new();
        for thread in 0..merged.threads.len() {
            let all = threads.all(thread);
            let work = stretches(merged, all);
            let found = stalls_in(merged, all, &work, least);
            let lasted = |stretch: &(i64, i64)| stretch.1 - stretch.0;
            usages.push(Usage {
                thread: merged.thread_name(thread),
                cpu: merged.threads[thread].cpu,
                seen: span(all),
                worked: work.iter().map(lasted).sum(),
                slept: sleeps(all).iter().map(lasted).sum(),
                gaps: found.iter().map(|stall| stall.lasted).collect(),
            });
            stalls.extend(found);
        }
        mark_simultaneous(merged, &mut stalls);
        stalls.sort_by_key(|stall| (-stall.lasted, stall.at));
        Self { threads: usages, stalls }
    }

    /// Gaps in which several threads of a host stood still.
    #[must_use]
    pub fn simultaneous(&self) -> usize {
        self.stalls.iter().filter(|stall| stall.others > 0).count()
    }
}

fn span(all: &[Stamped]) -> i64 {
    match all {
        [first, .., last] => last.at - first.at,
        _ => 0,
    }
}

/// When a thread worked: stretches that do not overlap, the earliest first.
fn stretches(merged: &Merged, all: &[Stamped]) -> Vec<(i64, i64)> {
    let mut stretches = Vec::new();
    // Where an RPC's work began.
    let mut begun: HashMap<_, i64> = HashMap::new();
    for stamped in all {
        let (Some(event), rpc) = (stamped.record.event(), stamped.record.rpc()) else { continue };
        match event {
            Event::Look | Event::Send | Event::Pass => {
                stretches.push((stamped.at - merged.took(stamped), stamped.at));
            }
            Event::Call | Event::Reply | Event::Woken => {
                begun.insert(rpc, stamped.at);
            }
            Event::ToKernel | Event::LocalSent | Event::Returned | Event::RequestReturned => {
                if let Some(from) = begun.remove(&rpc) {
                    stretches.push((from, stamped.at));
                }
            }
            // Whoever sleeps does not work.
            Event::Sleep => begun.clear(),
            _ => {}
        }
    }
    join(stretches)
}

/// When a thread slept.
fn sleeps(all: &[Stamped]) -> Vec<(i64, i64)> {
    let mut sleeps = Vec::new();
    let mut since = None;
    for stamped in all {
        match stamped.record.event() {
            Some(Event::Sleep) => since = Some(stamped.at),
            Some(Event::Wake) => {
                sleeps.extend(since.take().map(|since| (since, stamped.at)));
            }
            _ => {}
        }
    }
    sleeps
}

fn stalls_in(merged: &Merged, all: &[Stamped], work: &[(i64, i64)], least: i64) -> Vec<Stall> {
    let mut stalls = Vec::new();
    for &(from, until) in work {
        let first = all.partition_point(|stamped| stamped.at < from);
        let end = all.partition_point(|stamped| stamped.at <= until).max(first);
        // The beginning of the stretch is a moment, too, although nothing may have been recorded then.
        let (mut at, mut name) = (from, "begin of work".to_owned());
        for stamped in &all[first..end] {
            let next = stamped.record.event().map_or("unknown", Event::name);
            // What has ended now began in between: its begin is a moment as well.
            let took = merged.took(stamped);
            let began = (stamped.at - took).max(at);
            let begin = if took > 0 { format!("begin of {next}") } else { next.to_owned() };
            let pieces = [(at, began, &name, begin.as_str()), (began, stamped.at, &begin, next)];
            for (begin, until, before, after) in pieces {
                if until - begin > least && !is_between(all, begin, until) {
                    stalls.push(Stall {
                        thread: stamped.thread,
                        name: merged.thread_name(stamped.thread),
                        at: begin,
                        lasted: until - begin,
                        between: [before.clone(), after.to_owned()],
                        others: 0,
                    });
                }
            }
            (at, name) = (stamped.at, next.to_owned());
        }
    }
    stalls
}

/// Whether the thread recorded something between two moments.
fn is_between(all: &[Stamped], from: i64, until: i64) -> bool {
    let first = all.partition_point(|stamped| stamped.at <= from);
    all.get(first).is_some_and(|stamped| stamped.at < until)
}

/// Counts for each stall how many threads on other cores of the host stood still for half of the shorter time at least.
fn mark_simultaneous(merged: &Merged, stalls: &mut [Stall]) {
    stalls.sort_by_key(|stall| stall.at);
    let clock_of = |stall: &Stall| {
        let process = merged.threads[stall.thread].process;
        merged.clocks.iter().position(|link| link.processes.contains(&process))
    };
    let clocks: Vec<_> = stalls.iter().map(clock_of).collect();
    for one in 0..stalls.len() {
        for other in one + 1..stalls.len() {
            let (a, b) = (&stalls[one], &stalls[other]);
            if b.at >= a.at + a.lasted {
                break;
            }
            let common = (a.at + a.lasted).min(b.at + b.lasted) - b.at;
            let half = a.lasted.min(b.lasted) / 2;
            if clocks[one] == clocks[other] && a.thread != b.thread && common >= half {
                stalls[one].others += 1;
                stalls[other].others += 1;
            }
        }
    }
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("thread", &self.thread)?;
        map.serialize_entry("cpu", &self.cpu)?;
        map.serialize_entry("seen_us", &micros(self.seen as f64))?;
        map.serialize_entry("worked_us", &micros(self.worked as f64))?;
        map.serialize_entry("slept_us", &micros(self.slept as f64))?;
        map.serialize_entry("gaps", &self.gaps)?;
        map.end()
    }
}

impl Serialize for Stall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("thread", &self.name)?;
        map.serialize_entry("at_us", &micros(self.at as f64))?;
        map.serialize_entry("lasted_us", &micros(self.lasted as f64))?;
        map.serialize_entry("between", &self.between)?;
        map.serialize_entry("other_threads", &self.others)?;
        map.end()
    }
}
