//! Round trips: their distribution, and common properties of the slowest.
//!
//! A round trip is from `call` to `returned` at the client. RPCs are divided into classes by their
//! longer message, since a longer message legitimately takes longer. The slowness of an RPC is its
//! round trip divided by the median of its class. The slowest 1 % are compared with the middle half
//! (percentiles 25 to 75):
//!
//! - by stage ([`super::stages`]): mean additional time;
//! - by circumstance: share of affected RPCs among the slowest, and among all others.

use super::cores::{CoreUsage, MIN_GAP};
use super::distribution::{Distribution, micros};
use super::filter::RpcFilter;
use super::stages::{STAGES, Stage, in_order, stage, stages};
use super::thread_records::ThreadRecords;
use crate::merge::{MergedTraces, TracedRpc};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;

/// Upper bounds of the length classes in bytes.
const CLASS_BOUNDS: [u64; 6] = [100, 1_000, 10_000, 100_000, 1_000_000, u64::MAX];

/// Minimum length in bytes of messages that delay short messages.
const LONG_MESSAGE: u64 = 10_000;

/// Maximum number of packets received by one poll without delaying each other.
const MANY_PACKETS: u32 = 8;

/// Number of initial RPCs between two endpoints that run with cold caches.
const COLD_RPCS: usize = 10;

/// Number of slowest RPCs in the report.
const MAX_EXAMPLES: usize = 10;

/// Report on round trips.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RoundTrips {
    /// Length classes that occur, the shortest first.
    pub classes: Vec<LengthClass>,
    /// Number of matching RPCs whose call or return is missing from the trace.
    pub incomplete: usize,
    /// The slowest 1 %; `None` if there are no RPCs.
    pub slowest: Option<Slowest>,
}

/// RPCs of similar length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LengthClass {
    /// Upper bound for the longer message in bytes; `None` for the last class.
    pub upto_bytes: Option<u64>,
    /// Round trips.
    pub rtt: Distribution,
}

/// Common properties of the slowest RPCs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slowest {
    /// Number of slowest RPCs.
    pub rpcs: usize,
    /// Slowness of the fastest of these RPCs: multiple of its class's median.
    pub slower_than_median: f64,
    /// Their stages, in order.
    pub stages: Vec<Excess>,
    /// Their circumstances, the greatest difference first.
    pub circumstances: Vec<Circumstance>,
    /// The slowest RPCs, for closer inspection.
    #[serde(rename = "named")]
    pub examples: Vec<SlowRpc>,
}

/// Mean duration of a stage among the slowest RPCs, and its usual duration.
#[derive(Clone, Debug, PartialEq)]
pub struct Excess {
    /// The stage.
    pub stage: Stage,
    /// Mean of the slowest, in nanoseconds.
    pub slowest: f64,
    /// Mean of the middle half, in nanoseconds.
    pub usual: f64,
}

/// Frequency of a circumstance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Circumstance {
    /// Description of the circumstance.
    pub what: String,
    /// Share of the slowest, 0 to 1.
    pub of_slowest: f64,
    /// Share of all others, 0 to 1.
    pub of_others: f64,
}

/// One of the slowest RPCs.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowRpc {
    /// RPC id.
    pub id: u64,
    /// Time of its first record, in nanoseconds on the common clock.
    pub at: i64,
    /// Round trip in nanoseconds.
    pub rtt: i64,
    /// The stage that exceeded its usual duration most.
    pub most: Option<Stage>,
}

/// A completed RPC.
struct CompletedRpc<'a> {
    rpc: &'a TracedRpc,
    rtt: i64,
    class: usize,
    /// Round trip divided by the median of its class.
    slowness: f64,
}

impl RoundTrips {
    /// Builds the report on the RPCs that match `filter`.
    #[must_use]
    pub fn of(merged: &MergedTraces, filter: &RpcFilter) -> Self {
        let mut classes: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
        let (mut all, mut incomplete) = (Vec::new(), 0);
        for rpc in filter.rpcs(merged) {
            let Some(rtt) = rpc.rtt() else {
                incomplete += 1;
                continue;
            };
            let class = class(rpc);
            classes.entry(class).or_default().push(rtt);
            all.push(CompletedRpc { rpc, rtt, class, slowness: 0.0 });
        }
        let classes: BTreeMap<usize, Distribution> =
            classes.into_iter().map(|(class, rtts)| (class, rtts.into_iter().collect())).collect();
        for completed in &mut all {
            completed.slowness =
                completed.rtt as f64 / classes[&completed.class].median().max(1) as f64;
        }
        all.sort_by(|a, b| b.slowness.total_cmp(&a.slowness).then(a.rpc.id.cmp(&b.rpc.id)));
        let upto = |class: usize| Some(CLASS_BOUNDS[class]).filter(|bytes| *bytes != u64::MAX);
        let line = |(class, rtt)| LengthClass { upto_bytes: upto(class), rtt };
        Self {
            slowest: (!all.is_empty()).then(|| Slowest::of(merged, &all)),
            classes: classes.into_iter().map(line).collect(),
            incomplete,
        }
    }
}

fn class(rpc: &TracedRpc) -> usize {
    let longer = [Client, Server].into_iter().filter_map(|side| rpc.length(side)).max();
    CLASS_BOUNDS.iter().position(|upto| longer.unwrap_or(0) <= *upto).unwrap_or(0)
}

impl Slowest {
    /// Builds the comparison; `all` is ordered from slowest to fastest.
    fn of(merged: &MergedTraces, all: &[CompletedRpc<'_>]) -> Self {
        let count = all.len().div_ceil(100);
        let (slowest, others) = all.split_at(count);
        let middle = if all.len() < 4 { all } else { &all[all.len() / 4..all.len() * 3 / 4] };
        let (slow, usual) = (means(slowest), means(middle));
        let excess = |number: usize| Excess {
            stage: stage(number),
            slowest: slow[number],
            usual: usual[number],
        };
        let stages = in_order().map(excess).filter(|it| it.slowest != 0.0 || it.usual != 0.0);
        Self {
            rpcs: count,
            slower_than_median: (slowest[count - 1].slowness * 100.0).round() / 100.0,
            stages: stages.collect(),
            circumstances: circumstances(merged, slowest, others),
            examples: slowest
                .iter()
                .take(MAX_EXAMPLES)
                .map(|completed| completed.summary(&usual))
                .collect(),
        }
    }
}

impl CompletedRpc<'_> {
    fn summary(&self, usual: &[f64; STAGES]) -> SlowRpc {
        let most = stages(self.rpc).and_then(|stages| {
            let beyond = |number: &usize| stages[*number].unwrap_or(0) as f64 - usual[*number];
            in_order().max_by(|a, b| beyond(a).total_cmp(&beyond(b))).map(stage)
        });
        SlowRpc { id: self.rpc.id, at: self.rpc.begin(), rtt: self.rtt, most }
    }
}

/// Returns the mean of each stage in nanoseconds.
fn means(all: &[CompletedRpc<'_>]) -> [f64; STAGES] {
    let mut sums = [0.0; STAGES];
    for times in all.iter().filter_map(|completed| stages(completed.rpc)) {
        for (sum, time) in sums.iter_mut().zip(times) {
            *sum += time.unwrap_or(0) as f64;
        }
    }
    sums.map(|sum| sum / all.len().max(1) as f64)
}

/// Returns the circumstances that are more frequent among the slowest than among the others, the
/// greatest difference first.
fn circumstances(
    merged: &MergedTraces,
    slowest: &[CompletedRpc<'_>],
    others: &[CompletedRpc<'_>],
) -> Vec<Circumstance> {
    let index = CircumstanceIndex::of(merged);
    let count = |all: &[CompletedRpc<'_>]| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for what in all.iter().flat_map(|completed| index.circumstances(completed.rpc)) {
            *counts.entry(what).or_default() += 1;
        }
        counts
    };
    let (slow, usual) = (count(slowest), count(others));
    let share = |count: usize, all: &[CompletedRpc<'_>]| count as f64 / all.len().max(1) as f64;
    let circumstance = |(what, count): (String, usize)| {
        let of_others = share(usual.get(&what).copied().unwrap_or(0), others);
        let of_slowest = share(count, slowest);
        let [of_slowest, of_others] = [of_slowest, of_others].map(|it| (it * 1e4).round() / 1e4);
        Circumstance { what, of_slowest, of_others }
    };
    let difference = |it: &Circumstance| it.of_slowest - it.of_others;
    let mut all: Vec<_> =
        slow.into_iter().map(circumstance).filter(|it| difference(it) > 0.0).collect();
    all.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
    all
}

/// Indices used to compute the circumstances of an RPC.
struct CircumstanceIndex<'a> {
    merged: &'a MergedTraces,
    threads: ThreadRecords,
    cores: CoreUsage,
    /// Start, end and id of RPCs with long messages.
    long: Vec<(i64, i64, u64)>,
    /// Start of the tenth RPC of each association.
    warm: Vec<i64>,
}

impl<'a> CircumstanceIndex<'a> {
    fn of(merged: &'a MergedTraces) -> Self {
        let long = merged.rpcs.iter().filter(|rpc| CLASS_BOUNDS[class(rpc)] > LONG_MESSAGE);
        let mut begun = vec![Vec::new(); merged.associations.len()];
        for rpc in &merged.rpcs {
            begun[rpc.association].push(rpc.begin());
        }
        let tenth = |begun: Vec<i64>| begun.get(COLD_RPCS).copied().unwrap_or(i64::MIN);
        Self {
            merged,
            threads: ThreadRecords::of(merged),
            cores: CoreUsage::of(merged, MIN_GAP),
            long: long.map(|rpc| (rpc.begin(), rpc.end(), rpc.id)).collect(),
            warm: begun.into_iter().map(tenth).collect(),
        }
    }

    /// Returns the circumstances of an RPC.
    fn circumstances(&self, rpc: &TracedRpc) -> Vec<String> {
        let mut all = Vec::new();
        let mut note = |is: bool, what: &str| {
            if is {
                all.push(what.to_owned());
            }
        };
        let has = |events: &[Event]| events.iter().any(|event| rpc.has(*event));
        note(has(&[Event::ResendSent, Event::ResendReceived]), "bytes were requested by RESEND");
        let again = rpc.records.iter().any(|record| {
            record.event == Event::DataSent
                && DataFields::from_numbers(record.a, record.b).retransmitted
        });
        note(again, "bytes were retransmitted");
        note(rpc.has(Event::Lost), "packets were reordered or lost");
        note(rpc.has(Event::Restart), "the request was restarted");
        note(rpc.has(Event::Throttled), "the pacer delayed it");
        note(has(&[Event::BusySent, Event::BusyReceived]), "BUSY was sent");
        note(has(&[Event::GrantReceived, Event::GrantSent]), "it needed grants");
        for (side, name) in [(Client, "client"), (Server, "server")] {
            let notified = rpc.all(side, Event::HandedOff).any(|record| record.b != 0);
            note(notified, &format!("the {name} handed it to another thread"));
            note(self.poller_slept(rpc, side), &format!("the {name}'s poller was asleep"));
            note(
                self.many_packets(rpc, side),
                &format!("the {name} got {MANY_PACKETS} packets at once"),
            );
            note(
                self.stalled(rpc, side),
                &format!("a thread of the {name} that handled it paused"),
            );
            note(self.limited(rpc, side), &format!("a quota or feedback stopped the {name}"));
            if let Some(thread) = self.thread(rpc, side) {
                note(true, &format!("{name}'s thread {}", self.merged.thread_name(thread)));
            }
        }
        note(self.beside_long(rpc), "a long message was in progress");
        note(
            rpc.begin() < self.warm[rpc.association],
            "one of the first RPCs between both endpoints",
        );
        let peer = self.merged.associations[rpc.association].addresses;
        note(
            self.merged.associations.len() > 1,
            &format!("between {} and {}", peer.endpoint, peer.address),
        );
        all
    }

    /// Returns the thread that received the message at that side, if the process has several
    /// threads.
    fn thread(&self, rpc: &TracedRpc, side: Side) -> Option<usize> {
        let event = if side == Client { Event::Returned } else { Event::RequestReturned };
        let thread = rpc.first(side, event)?.thread;
        let process = self.merged.threads[thread].process;
        let several = self.merged.threads.iter().filter(|it| it.process == process).count() > 1;
        several.then_some(thread)
    }

    /// Returns whether the thread that received the message from the kernel had to be woken for it.
    fn poller_slept(&self, rpc: &TracedRpc, side: Side) -> bool {
        let Some(arrival) = rpc.first(side, Event::FromKernel) else { return false };
        let departure =
            rpc.all(side.other(), Event::ToKernel).rfind(|record| record.at <= arrival.at);
        departure.is_some_and(|departure| {
            self.threads.has(arrival.thread, Event::Wake, departure.at, arrival.at)
        })
    }

    fn many_packets(&self, rpc: &TracedRpc, side: Side) -> bool {
        rpc.all(side, Event::FromKernel).any(|arrival| {
            // The poll is recorded before the packets that it returned.
            let looks = self.threads.between(arrival.thread, arrival.at - MIN_GAP, arrival.at);
            let look = looks.iter().rfind(|it| it.record.event() == Some(Event::Look));
            look.is_some_and(|look| look.record.a >= MANY_PACKETS)
        })
    }

    fn stalled(&self, rpc: &TracedRpc, side: Side) -> bool {
        let (begin, end) = (rpc.begin(), rpc.end());
        let had = |thread| rpc.at(side).any(|record| record.thread == thread);
        let during = |at: i64, lasted: i64| at < end && at + lasted > begin;
        self.cores.stalls.iter().any(|it| during(it.at, it.duration) && had(it.thread))
    }

    fn limited(&self, rpc: &TracedRpc, side: Side) -> bool {
        let Some(process) = rpc.process(side, &self.merged.associations) else { return false };
        let threads = self.merged.threads.iter().enumerate();
        let mut threads = threads.filter(|(_, thread)| thread.process == process);
        threads.any(|(thread, _)| {
            [Event::QuotaHit, Event::FeedbackStop]
                .into_iter()
                .any(|event| self.threads.has(thread, event, rpc.begin(), rpc.end()))
        })
    }

    fn beside_long(&self, rpc: &TracedRpc) -> bool {
        let during = |(begin, end, id): &(i64, i64, u64)| {
            *id != rpc.id && *begin < rpc.end() && *end > rpc.begin()
        };
        CLASS_BOUNDS[class(rpc)] <= LONG_MESSAGE && self.long.iter().any(during)
    }
}

impl Serialize for Excess {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("place", self.stage.place)?;
        map.serialize_entry("stage", self.stage.name)?;
        map.serialize_entry("slowest_us", &micros(self.slowest))?;
        map.serialize_entry("usual_us", &micros(self.usual))?;
        map.end()
    }
}

impl Serialize for SlowRpc {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("at_us", &micros(self.at as f64))?;
        map.serialize_entry("rtt_us", &micros(self.rtt as f64))?;
        map.serialize_entry("most", &self.most)?;
        map.end()
    }
}
