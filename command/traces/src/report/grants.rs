//! Grants: whether receivers grant enough, and whether links idle while messages are incomplete.
//!
//! For messages that need grants, from their first grant on:
//!
//! - outstanding, at the receiver: bytes granted (`grant_sent`) and not received (`data_received`);
//! - available, at the sender: bytes granted (`grant_received`) and not sent (`data_sent`).
//!
//! Both are summed over the messages of a process, and averaged over the time during which it has
//! such messages.
//!
//! A receiver has *work waiting* while a message of several packets has arrived in part (first
//! `data_received` to `parsed`). If no DATA arrives for longer than the minimum gap, its link is
//! idle. If only some RPCs are traced, packets of the others are invisible, and idle times are too
//! long. The cause of a gap follows from the state in its middle: no outstanding bytes (the
//! receiver granted too little); bytes available at the sender (it sent another message first, or
//! its thread did not run); otherwise all granted bytes or their grants were in flight (the
//! network). A sender without a trace counts as the network.

use super::distribution::micros;
use super::intervals::union;
use crate::merge::{MergedTraces, TracedRpc};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Default minimum length of a gap, in nanoseconds. Packets of longer messages arrive in bursts: 25
/// kB take 20 µs at 10 Gbit/s.
pub const MIN_GAP: i64 = 20_000;

/// Maximum number of points in a curve.
const MAX_POINTS: usize = 200;

/// Report on grants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grants {
    /// Processes that received or sent messages that need grants, or had work waiting.
    pub processes: Vec<ProcessGrants>,
}

/// Grants of a process.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProcessGrants {
    /// Name of the process.
    pub name: String,
    /// Bytes it granted and has not received.
    pub outstanding: ByteLevel,
    /// Bytes granted to it that it has not sent.
    pub available: ByteLevel,
    /// Use of its incoming link.
    pub link: LinkUsage,
}

/// A number of bytes over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByteLevel {
    /// Number of messages that need grants.
    pub messages: usize,
    /// Nanoseconds with at least one such message.
    pub time: i64,
    /// Mean over that time, in bytes.
    pub mean: f64,
    /// Maximum in bytes.
    pub max: i64,
    /// Share of that time with the number at 0.
    pub none: f64,
    /// Means over equal parts of the trace: middle of the part, in nanoseconds on the common clock,
    /// and bytes.
    pub curve: Vec<(i64, f64)>,
}

/// Use of an incoming link while work was waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkUsage {
    /// Payload bytes of traced RPCs that arrived.
    pub bytes: u64,
    /// Nanoseconds during which a message had arrived in part.
    pub waiting: i64,
    /// Nanoseconds of that time in gaps.
    pub idle: i64,
    /// Number of gaps.
    pub gaps: usize,
    /// Longest gap in nanoseconds.
    pub longest: i64,
    /// Nanoseconds of gaps by cause, in the order of [`CAUSES`].
    pub causes: [i64; 3],
}

/// Causes of gaps, in the order of [`LinkUsage::causes`].
pub const CAUSES: [&str; 3] = ["nothing granted", "sender had grants", "on the way"];

impl Grants {
    /// Builds the report from gaps of at least `min_gap` nanoseconds.
    #[must_use]
    pub fn of(merged: &MergedTraces, min_gap: i64) -> Self {
        let mut all: Vec<ProcessChanges> =
            (0..merged.processes.len()).map(|_| ProcessChanges::default()).collect();
        for rpc in &merged.rpcs {
            for sender in [Client, Server] {
                collect(merged, rpc, sender, &mut all);
            }
        }
        let span = merged.records.first().zip(merged.records.last());
        let span = span.map_or((0, 0), |(first, last)| (first.at, last.at));
        let outstanding: Vec<Vec<(i64, i64)>> =
            all.iter().map(|steps| sums(&steps.outstanding)).collect();
        let process = |(process, steps): (usize, ProcessChanges)| ProcessGrants {
            name: merged.process_name(process),
            outstanding: ByteLevel::of(&steps.outstanding, steps.granting.clone(), span),
            available: ByteLevel::of(&steps.available, steps.granted.clone(), span),
            link: LinkUsage::of(&steps, &outstanding[process], min_gap),
        };
        let is_any = |process: &ProcessGrants| {
            process.outstanding.messages + process.available.messages > 0
                || process.link.waiting > 0
        };
        Self { processes: all.into_iter().enumerate().map(process).filter(is_any).collect() }
    }
}

/// Changes at a process over time.
#[derive(Default)]
struct ProcessChanges {
    /// Changes of outstanding and of available bytes.
    outstanding: Vec<(i64, i64)>,
    available: Vec<(i64, i64)>,
    /// Intervals with messages that need grants in progress: incoming, outgoing.
    granting: Vec<(i64, i64)>,
    granted: Vec<(i64, i64)>,
    /// Intervals during which a message had arrived in part, and changes of the bytes that its
    /// sender could have sent.
    waiting: Vec<(i64, i64)>,
    senders: Vec<(i64, i64)>,
    /// Arrivals: time and bytes.
    arrivals: Vec<(i64, u64)>,
}

/// Adds the message transmitted by `sender` to the changes of both processes.
fn collect(merged: &MergedTraces, rpc: &TracedRpc, sender: Side, all: &mut [ProcessChanges]) {
    let receiver = sender.other();
    let available = available(rpc, sender);
    let life = |steps: &[(i64, i64)]| Some((steps.first()?.0, steps.last()?.0));
    if let Some(process) = rpc.process(sender, &merged.associations) {
        all[process].available.extend(&available);
        all[process].granted.extend(life(&available));
    }
    let Some(process) = rpc.process(receiver, &merged.associations) else { return };
    let steps = &mut all[process];
    let outstanding = outstanding(rpc, receiver);
    steps.granting.extend(life(&outstanding));
    steps.outstanding.extend(outstanding);
    steps.senders.extend(available);
    let arrivals: Vec<_> = rpc.all(receiver, Event::DataReceived).collect();
    steps
        .arrivals
        .extend(arrivals.iter().map(|record| (record.at, u64::from(data(record).length))));
    if let [first, .., last] = arrivals[..] {
        let whole = rpc.first(receiver, Event::Parsed).map_or(last.at, |parsed| parsed.at);
        steps.waiting.push((first.at, whole.max(first.at)));
    }
}

const fn data(record: &crate::merge::RpcRecord) -> DataFields {
    DataFields::from_numbers(record.a, record.b)
}

/// Returns the changes of an incoming message's outstanding bytes.
fn outstanding(rpc: &TracedRpc, receiver: Side) -> Vec<(i64, i64)> {
    steps(rpc, receiver, Event::GrantSent, |record, level| match record.event {
        Event::DataReceived if !data(record).retransmitted => {
            level.transferred = level.transferred.saturating_add(i64::from(record.a));
        }
        // The message is complete.
        Event::Parsed => level.transferred = i64::MAX,
        _ => {}
    })
}

/// Returns the changes of an outgoing message's available bytes.
fn available(rpc: &TracedRpc, sender: Side) -> Vec<(i64, i64)> {
    steps(rpc, sender, Event::GrantReceived, |record, level| {
        if record.event == Event::DataSent {
            let DataFields { offset, length, .. } = data(record);
            level.transferred = level.transferred.max(i64::from(offset) + i64::from(length));
        }
    })
}

/// Granted offset, and bytes sent or received.
#[derive(Default)]
struct GrantState {
    granted: i64,
    transferred: i64,
}

fn steps(
    rpc: &TracedRpc,
    side: Side,
    grant: Event,
    mut change: impl FnMut(&crate::merge::RpcRecord, &mut GrantState),
) -> Vec<(i64, i64)> {
    let (mut level, mut before, mut steps) = (GrantState::default(), 0, Vec::new());
    for record in rpc.at(side) {
        if record.event == grant {
            level.granted = level.granted.max(i64::try_from(record.b).unwrap_or(i64::MAX));
        } else {
            change(record, &mut level);
        }
        let now = level.granted.saturating_sub(level.transferred).max(0);
        if now != before {
            steps.push((record.at, now - before));
            before = now;
        }
    }
    // If the trace lacks the end of the message, it ends with its last record.
    if before != 0 {
        steps.push((rpc.end(), -before));
    }
    steps
}

/// Returns the level after each change, the earliest first.
fn sums(steps: &[(i64, i64)]) -> Vec<(i64, i64)> {
    let mut sorted = steps.to_vec();
    sorted.sort_unstable_by_key(|step| step.0);
    let mut level = 0_i64;
    for step in &mut sorted {
        level = level.saturating_add(step.1);
        step.1 = level;
    }
    sorted
}

/// Returns the level at a time.
fn level_at(levels: &[(i64, i64)], at: i64) -> i64 {
    let after = levels.partition_point(|step| step.0 <= at);
    after.checked_sub(1).map_or(0, |place| levels[place].1)
}

/// Returns the integral of the level over an interval in byte-nanoseconds, and the nanoseconds at
/// level 0.
fn area(levels: &[(i64, i64)], from: i64, until: i64) -> (f64, i64) {
    let (mut area, mut none) = (0.0, 0);
    let (mut at, mut level) = (from, level_at(levels, from));
    let first = levels.partition_point(|step| step.0 <= from);
    let rest = levels[first..].iter().take_while(|step| step.0 < until);
    for &(next, after) in rest.chain([&(until, 0)]) {
        area += level as f64 * (next - at) as f64;
        none += if level == 0 { next - at } else { 0 };
        (at, level) = (next, after);
    }
    (area, none)
}

impl ByteLevel {
    fn of(steps: &[(i64, i64)], lives: Vec<(i64, i64)>, span: (i64, i64)) -> Self {
        let messages = lives.len();
        if messages == 0 {
            return Self::default();
        }
        let (levels, lives) = (sums(steps), union(lives));
        let (mut time, mut bytes, mut none) = (0, 0.0, 0);
        for (from, until) in lives {
            let (area, without) = area(&levels, from, until);
            (time, bytes, none) = (time + until - from, bytes + area, none + without);
        }
        Self {
            messages,
            time,
            mean: bytes / time.max(1) as f64,
            max: levels.iter().map(|step| step.1).max().unwrap_or(0),
            none: none as f64 / time.max(1) as f64,
            curve: curve(&levels, span),
        }
    }
}

/// Returns the means over equal parts of the time.
fn curve(levels: &[(i64, i64)], (first, last): (i64, i64)) -> Vec<(i64, f64)> {
    let part = ((last - first) / MAX_POINTS as i64).max(1);
    let parts = ((last - first) / part).clamp(1, MAX_POINTS as i64);
    let mean = |index| {
        let from = first + part * index;
        (from + part / 2, area(levels, from, from + part).0 / part as f64)
    };
    (0..parts).map(mean).collect()
}

impl LinkUsage {
    fn of(steps: &ProcessChanges, outstanding: &[(i64, i64)], min_gap: i64) -> Self {
        let mut arrivals = steps.arrivals.clone();
        arrivals.sort_unstable();
        let senders = sums(&steps.senders);
        let mut link = Self { bytes: arrivals.iter().map(|it| it.1).sum(), ..Self::default() };
        for (from, until) in union(steps.waiting.clone()) {
            link.waiting += until - from;
            let first = arrivals.partition_point(|it| it.0 <= from);
            let rest = arrivals[first..].iter().map(|it| it.0).take_while(|at| *at < until);
            let mut at = from;
            for next in rest.chain([until]) {
                let gap = next - at;
                if gap >= min_gap {
                    let middle = at + gap / 2;
                    let cause = if level_at(&senders, middle) > 0 {
                        1
                    } else if level_at(outstanding, middle) == 0 {
                        0
                    } else {
                        2
                    };
                    link.gaps += 1;
                    link.idle += gap;
                    link.longest = link.longest.max(gap);
                    link.causes[cause] += gap;
                }
                at = next;
            }
        }
        link
    }
}

impl Serialize for ByteLevel {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("messages", &self.messages)?;
        map.serialize_entry("time_us", &micros(self.time as f64))?;
        map.serialize_entry("mean_bytes", &self.mean.round())?;
        map.serialize_entry("max_bytes", &self.max)?;
        map.serialize_entry("share_of_time_none", &((self.none * 1e4).round() / 1e4))?;
        map.end()
    }
}

impl Serialize for LinkUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("bytes", &self.bytes)?;
        map.serialize_entry("waiting_us", &micros(self.waiting as f64))?;
        map.serialize_entry("idle_us", &micros(self.idle as f64))?;
        map.serialize_entry("gaps", &self.gaps)?;
        map.serialize_entry("longest_us", &micros(self.longest as f64))?;
        for (cause, nanos) in CAUSES.iter().zip(self.causes) {
            let name = format!("idle_{}_us", cause.replace(' ', "_"));
            map.serialize_entry(&name, &micros(nanos as f64))?;
        }
        map.end()
    }
}
