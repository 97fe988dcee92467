//! How are round trips distributed, and what have the slowest in common?
//!
//! A round trip is from `call` to `returned` at the client. RPCs are put into classes by the longer of their two
//! messages, as a long message takes longer for a good reason; how slow an RPC was is its round trip by the median of its
//! class. The slowest 1 % by this measure are held against the middle half (percentiles 25 to 75):
//!
//! - stage by stage ([`super::stages`]): where the additional time was spent, as means;
//! - by circumstances, each of which an RPC was in or not: how many of the slowest were, and how many of all others.

use super::cores::{Cores, LEAST_GAP};
use super::stages::{STAGES, Stage, in_order, stage, stages};
use super::threads::Threads;
use super::{Distribution, Filter, micros};
use crate::merge::{Call, Merged};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;

/// Classes of lengths: up to so many bytes; then all longer ones.
const UPTO: [u64; 6] = [100, 1_000, 10_000, 100_000, 1_000_000, u64::MAX];

/// Longer messages hold up short ones.
const LONG: u64 = 10_000;

/// More packets in one look at the socket have waited for each other.
const MANY: u32 = 8;

/// The first RPCs between two hosts find cold caches.
const FIRST: usize = 10;

/// How many of the slowest are named.
const NAMED: usize = 10;

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rtt {
    /// Those of which there are RPCs, the shortest first.
    pub classes: Vec<Class>,
    /// RPCs that were chosen of which the trace lacks the call or the return.
    pub incomplete: usize,
    /// The slowest 1 %; nothing if there are no RPCs.
    pub slowest: Option<Slowest>,
}

/// RPCs of about the same length.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Class {
    /// The longer of both messages has so many bytes at most; `None`: there is no bound.
    pub upto_bytes: Option<u64>,
    /// Their round trips.
    pub rtt: Distribution,
}

/// What the slowest have in common.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slowest {
    /// How many they are.
    pub rpcs: usize,
    /// The least slow of them took so many times the median of its class.
    pub slower_than_median: f64,
    /// Where they spent their time, in the order of the stages.
    pub stages: Vec<Excess>,
    /// What they were in, the most telling first.
    pub circumstances: Vec<Circumstance>,
    /// The slowest of all, to look at them one by one.
    pub named: Vec<Named>,
}

/// A stage of the slowest beside the usual.
#[derive(Clone, Debug, PartialEq)]
pub struct Excess {
    /// Which.
    pub stage: Stage,
    /// Mean of the slowest, in nanoseconds.
    pub slowest: f64,
    /// Mean of the middle half, in nanoseconds.
    pub usual: f64,
}

/// What an RPC can be in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Circumstance {
    /// In words.
    pub what: String,
    /// Share of the slowest, 0 to 1.
    pub of_slowest: f64,
    /// Share of all others, 0 to 1.
    pub of_others: f64,
}

/// An RPC.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its id.
    pub id: u64,
    /// When it was called, in nanoseconds on the common clock.
    pub at: i64,
    /// Its round trip in nanoseconds.
    pub rtt: i64,
    /// The stage that took most beyond the usual.
    pub most: Option<Stage>,
}

/// An RPC with its round trip.
struct Ended<'a> {
    call: &'a Call,
    rtt: i64,
    class: usize,
    /// By the median of its class.
    slowness: f64,
}

impl Rtt {
    /// Of the RPCs that `filter` admits.
    #[must_use]
    pub fn of(merged: &Merged, filter: &Filter) -> Self {
        let mut classes: BTreeMap<usize, Vec<i64>> = BTreeMap::new();
        let (mut all, mut incomplete) = (Vec::new(), 0);
        for call in filter.calls(merged) {
            let Some(rtt) = call.rtt() else {
                incomplete += 1;
                continue;
            };
            let class = class(call);
            classes.entry(class).or_default().push(rtt);
            all.push(Ended { call, rtt, class, slowness: 0.0 });
        }
        let classes: BTreeMap<usize, Distribution> =
            classes.into_iter().map(|(class, rtts)| (class, rtts.into_iter().collect())).collect();
        for ended in &mut all {
            ended.slowness = ended.rtt as f64 / classes[&ended.class].median().max(1) as f64;
        }
        all.sort_by(|a, b| b.slowness.total_cmp(&a.slowness).then(a.call.id.cmp(&b.call.id)));
        let upto = |class: usize| Some(UPTO[class]).filter(|bytes| *bytes != u64::MAX);
        let line = |(class, rtt)| Class { upto_bytes: upto(class), rtt };
        Self {
            slowest: (!all.is_empty()).then(|| Slowest::of(merged, &all)),
            classes: classes.into_iter().map(line).collect(),
            incomplete,
        }
    }
}

fn class(call: &Call) -> usize {
    let longer = [Client, Server].into_iter().filter_map(|side| call.length(side)).max();
    UPTO.iter().position(|upto| longer.unwrap_or(0) <= *upto).unwrap_or(0)
}

impl Slowest {
    /// `all` has the slowest first.
    fn of(merged: &Merged, all: &[Ended<'_>]) -> Self {
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
            named: slowest.iter().take(NAMED).map(|ended| ended.named(&usual)).collect(),
        }
    }
}

impl Ended<'_> {
    fn named(&self, usual: &[f64; STAGES]) -> Named {
        let most = stages(self.call).and_then(|stages| {
            let beyond = |number: &usize| stages[*number].unwrap_or(0) as f64 - usual[*number];
            in_order().max_by(|a, b| beyond(a).total_cmp(&beyond(b))).map(stage)
        });
        Named { id: self.call.id, at: self.call.begin(), rtt: self.rtt, most }
    }
}

/// Mean of each stage, in nanoseconds.
fn means(all: &[Ended<'_>]) -> [f64; STAGES] {
    let mut sums = [0.0; STAGES];
    for times in all.iter().filter_map(|ended| stages(ended.call)) {
        for (sum, time) in sums.iter_mut().zip(times) {
            *sum += time.unwrap_or(0) as f64;
        }
    }
    sums.map(|sum| sum / all.len().max(1) as f64)
}

/// Circumstances that more of the slowest were in than of the others; the greatest difference first.
fn circumstances(
    merged: &Merged,
    slowest: &[Ended<'_>],
    others: &[Ended<'_>],
) -> Vec<Circumstance> {
    let world = World::of(merged);
    let count = |all: &[Ended<'_>]| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for what in all.iter().flat_map(|ended| world.circumstances(ended.call)) {
            *counts.entry(what).or_default() += 1;
        }
        counts
    };
    let (slow, usual) = (count(slowest), count(others));
    let share = |count: usize, all: &[Ended<'_>]| count as f64 / all.len().max(1) as f64;
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

/// What is looked up for each RPC.
struct World<'a> {
    merged: &'a Merged,
    threads: Threads,
    cores: Cores,
    /// When long messages were under way.
    long: Vec<(i64, i64, u64)>,
    /// When the tenth RPC of a way began.
    warm: Vec<i64>,
}

impl<'a> World<'a> {
    fn of(merged: &'a Merged) -> Self {
        let long = merged.calls.iter().filter(|call| UPTO[class(call)] > LONG);
        let mut begun = vec![Vec::new(); merged.ways.len()];
        for call in &merged.calls {
            begun[call.way].push(call.begin());
        }
        let tenth = |begun: Vec<i64>| begun.get(FIRST).copied().unwrap_or(i64::MIN);
        Self {
            merged,
            threads: Threads::of(merged),
            cores: Cores::of(merged, LEAST_GAP),
            long: long.map(|call| (call.begin(), call.end(), call.id)).collect(),
            warm: begun.into_iter().map(tenth).collect(),
        }
    }

    /// All that an RPC was in.
    fn circumstances(&self, call: &Call) -> Vec<String> {
        let mut all = Vec::new();
        let mut note = |is: bool, what: &str| {
            if is {
                all.push(what.to_owned());
            }
        };
        let has = |events: &[Event]| events.iter().any(|event| call.has(*event));
        note(has(&[Event::ResendSent, Event::ResendReceived]), "bytes were asked for again");
        let again = call.marks.iter().any(|mark| {
            mark.event == Event::DataSent && DataFields::from_numbers(mark.a, mark.b).retransmitted
        });
        note(again, "bytes were sent again");
        note(call.has(Event::Lost), "packets came in another order, or not at all");
        note(call.has(Event::Restart), "the request was sent again from its start");
        note(call.has(Event::Throttled), "the pacer made it wait");
        note(has(&[Event::BusySent, Event::BusyReceived]), "the peer was busy with something else");
        note(has(&[Event::GrantReceived, Event::GrantSent]), "it needed grants");
        for (side, name) in [(Client, "client"), (Server, "server")] {
            let told = call.all(side, Event::HandedOff).any(|mark| mark.b != 0);
            note(told, &format!("the {name} handed it to another thread"));
            note(self.poller_slept(call, side), &format!("the {name}'s poller was asleep"));
            note(self.many_packets(call, side), &format!("the {name} got {MANY} packets at once"));
            note(
                self.stalled(call, side),
                &format!("a thread of the {name} that had it stood still"),
            );
            note(self.limited(call, side), &format!("a quota or feedback held the {name} up"));
            if let Some(thread) = self.thread(call, side) {
                note(true, &format!("{name}'s thread {}", self.merged.thread_name(thread)));
            }
        }
        note(self.beside_long(call), "a long message was under way");
        note(call.begin() < self.warm[call.way], "one of the first RPCs between both");
        let peer = self.merged.ways[call.way].addresses;
        note(
            self.merged.ways.len() > 1,
            &format!("between {} and {}", peer.endpoint, peer.address),
        );
        all
    }

    /// The thread that got the message at that side, if the process has several.
    fn thread(&self, call: &Call, side: Side) -> Option<usize> {
        let event = if side == Client { Event::Returned } else { Event::RequestReturned };
        let thread = call.first(side, event)?.thread;
        let process = self.merged.threads[thread].process;
        let several = self.merged.threads.iter().filter(|it| it.process == process).count() > 1;
        several.then_some(thread)
    }

    /// Whether the thread that took the message from the kernel had to be woken for it.
    fn poller_slept(&self, call: &Call, side: Side) -> bool {
        let Some(came) = call.first(side, Event::FromKernel) else { return false };
        let left = call.all(side.other(), Event::ToKernel).rfind(|mark| mark.at <= came.at);
        left.is_some_and(|left| self.threads.has(came.thread, Event::Wake, left.at, came.at))
    }

    fn many_packets(&self, call: &Call, side: Side) -> bool {
        call.all(side, Event::FromKernel).any(|came| {
            // The look is recorded before what was found in it.
            let looks = self.threads.between(came.thread, came.at - LEAST_GAP, came.at);
            let look = looks.iter().rfind(|it| it.record.event() == Some(Event::Look));
            look.is_some_and(|look| look.record.a >= MANY)
        })
    }

    fn stalled(&self, call: &Call, side: Side) -> bool {
        let (begin, end) = (call.begin(), call.end());
        let had = |thread| call.at(side).any(|mark| mark.thread == thread);
        let during = |at: i64, lasted: i64| at < end && at + lasted > begin;
        self.cores.stalls.iter().any(|it| during(it.at, it.lasted) && had(it.thread))
    }

    fn limited(&self, call: &Call, side: Side) -> bool {
        let Some(process) = call.process(side, &self.merged.ways) else { return false };
        let threads = self.merged.threads.iter().enumerate();
        let mut threads = threads.filter(|(_, thread)| thread.process == process);
        threads.any(|(thread, _)| {
            [Event::QuotaHit, Event::FeedbackStop]
                .into_iter()
                .any(|event| self.threads.has(thread, event, call.begin(), call.end()))
        })
    }

    fn beside_long(&self, call: &Call) -> bool {
        let during = |(begin, end, id): &(i64, i64, u64)| {
            *id != call.id && *begin < call.end() && *end > call.begin()
        };
        UPTO[class(call)] <= LONG && self.long.iter().any(during)
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

impl Serialize for Named {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("at_us", &micros(self.at as f64))?;
        map.serialize_entry("rtt_us", &micros(self.rtt as f64))?;
        map.serialize_entry("most", &self.most)?;
        map.end()
    }
}
