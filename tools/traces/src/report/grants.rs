//! Is enough granted, and does the link idle while work waits?
//!
//! Of messages that need grants, and once they have the first one:
//!
//! - outstanding, at the receiver: bytes that it has granted (`grant_sent`) and that have not come (`data_received`);
//! - available, at the sender: bytes that it may send (`grant_received`) and has not sent (`data_sent`).
//!
//! Both are summed up over the messages of a process and averaged over the time in which it has such messages.
//!
//! A receiver has *work waiting* while a message of several packets has come in part (first `data_received` to `parsed`).
//! If then no DATA comes for longer than the least gap, its link idles, as far as traced RPCs tell: if only some
//! RPCs are traced, what the others sent is not seen, and idle times are too long. Whose fault a gap is follows from what
//! is known in its middle: nothing was outstanding (the receiver had granted nothing: its grants are too few); the
//! sender had bytes available (it did not send: something else went first, or its thread did not run); or everything that
//! was granted was on its way, or its grants were (the network). A sender whose trace is not there counts as the network.

use super::micros;
use super::stretches::join;
use crate::merge::{Call, Merged};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Shorter gaps are the way that packets come, in nanoseconds, unless something else is asked for: with 100 kB a
/// message, 20 us is as long as 25 kB take at 10 Gbit/s.
pub const LEAST_GAP: i64 = 20_000;

/// How many points a curve has at most.
const POINTS: usize = 200;

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grants {
    /// One for each process that received or sent messages that need grants, or had work waiting.
    pub processes: Vec<Process>,
}

/// What a process granted, and was granted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// Granted by it, and not come.
    pub outstanding: Level,
    /// Granted to it, and not sent.
    pub available: Level,
    /// What came, and what did not.
    pub link: Link,
}

/// A number of bytes that changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    /// Messages that need grants.
    pub messages: usize,
    /// Nanoseconds in which there was such a message.
    pub time: i64,
    /// Mean bytes over that time.
    pub mean: f64,
    /// Most bytes.
    pub max: i64,
    /// Share of that time in which it was 0.
    pub none: f64,
    /// Means over equal parts of the trace: the middle of the part in nanoseconds on the common clock, and bytes.
    pub curve: Vec<(i64, f64)>,
}

/// What came on a link while work was waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// Bytes of payload of traced RPCs that came.
    pub bytes: u64,
    /// Nanoseconds in which a message had come in part.
    pub waiting: i64,
    /// Of these, nanoseconds in gaps.
    pub idle: i64,
    /// How many gaps.
    pub gaps: usize,
    /// The longest one, in nanoseconds.
    pub longest: i64,
    /// Nanoseconds of gaps by cause: nothing granted, sender had grants, on the way.
    pub causes: [i64; 3],
}

/// What [`Link::causes`] are.
pub const CAUSES: [&str; 3] = ["nothing granted", "sender had grants", "on the way"];

impl Grants {
    /// Of gaps of at least `least` nanoseconds.
    #[must_use]
    pub fn of(merged: &Merged, least: i64) -> Self {
        let mut all: Vec<Steps> = (0..merged.processes.len()).map(|_| Steps::default()).collect();
        for call in &merged.calls {
            for sender in [Client, Server] {
                collect(merged, call, sender, &mut all);
            }
        }
        let span = merged.records.first().zip(merged.records.last());
        let span = span.map_or((0, 0), |(first, last)| (first.at, last.at));
        let gone: Vec<Vec<(i64, i64)>> = all.iter().map(|steps| sums(&steps.outstanding)).collect();
        let process = |(process, steps): (usize, Steps)| Process {
            name: merged.process_name(process),
            outstanding: Level::of(&steps.outstanding, steps.granting.clone(), span),
            available: Level::of(&steps.available, steps.granted.clone(), span),
            link: Link::of(&steps, &gone[process], least),
        };
        let is_any = |process: &Process| {
            process.outstanding.messages + process.available.messages > 0
                || process.link.waiting > 0
        };
        Self { processes: all.into_iter().enumerate().map(process).filter(is_any).collect() }
    }
}

/// What changes when at a process.
#[derive(Default)]
struct Steps {
    /// Bytes more or less outstanding, and available.
    outstanding: Vec<(i64, i64)>,
    available: Vec<(i64, i64)>,
    /// When messages that need grants were under way: incoming, outgoing.
    granting: Vec<(i64, i64)>,
    granted: Vec<(i64, i64)>,
    /// When a message had come in part, and which bytes its sender could have sent: steps of its level.
    waiting: Vec<(i64, i64)>,
    senders: Vec<(i64, i64)>,
    /// What came.
    arrivals: Vec<(i64, u64)>,
}

/// What the message of `sender` adds to both processes.
fn collect(merged: &Merged, call: &Call, sender: Side, all: &mut [Steps]) {
    let receiver = sender.other();
    let available = available(call, sender);
    let life = |steps: &[(i64, i64)]| Some((steps.first()?.0, steps.last()?.0));
    if let Some(process) = call.process(sender, &merged.ways) {
        all[process].available.extend(&available);
        all[process].granted.extend(life(&available));
    }
    let Some(process) = call.process(receiver, &merged.ways) else { return };
    let steps = &mut all[process];
    let outstanding = outstanding(call, receiver);
    steps.granting.extend(life(&outstanding));
    steps.outstanding.extend(outstanding);
    steps.senders.extend(available);
    let came: Vec<_> = call.all(receiver, Event::DataReceived).collect();
    steps.arrivals.extend(came.iter().map(|mark| (mark.at, u64::from(data(mark).length))));
    if let [first, .., last] = came[..] {
        let whole = call.first(receiver, Event::Parsed).map_or(last.at, |parsed| parsed.at);
        steps.waiting.push((first.at, whole.max(first.at)));
    }
}

const fn data(mark: &crate::merge::Mark) -> DataFields {
    DataFields::from_numbers(mark.a, mark.b)
}

/// By how much the outstanding bytes of an incoming message change, and when.
fn outstanding(call: &Call, receiver: Side) -> Vec<(i64, i64)> {
    steps(call, receiver, Event::GrantSent, |mark, level| match mark.event {
        Event::DataReceived if !data(mark).retransmitted => {
            level.gone = level.gone.saturating_add(i64::from(mark.a));
        }
        // Nothing is missing any more.
        Event::Parsed => level.gone = i64::MAX,
        _ => {}
    })
}

/// By how much the available bytes of an outgoing message change, and when.
fn available(call: &Call, sender: Side) -> Vec<(i64, i64)> {
    steps(call, sender, Event::GrantReceived, |mark, level| {
        if mark.event == Event::DataSent {
            let DataFields { offset, length, .. } = data(mark);
            level.gone = level.gone.max(i64::from(offset) + i64::from(length));
        }
    })
}

/// Bytes that are granted, and those that have gone.
#[derive(Default)]
struct Granted {
    upto: i64,
    gone: i64,
}

fn steps(
    call: &Call,
    side: Side,
    grant: Event,
    mut change: impl FnMut(&crate::merge::Mark, &mut Granted),
) -> Vec<(i64, i64)> {
    let (mut level, mut before, mut steps) = (Granted::default(), 0, Vec::new());
    for mark in call.at(side) {
        if mark.event == grant {
            level.upto = level.upto.max(i64::try_from(mark.b).unwrap_or(i64::MAX));
        } else {
            change(mark, &mut level);
        }
        let now = level.upto.saturating_sub(level.gone).max(0);
        if now != before {
            steps.push((mark.at, now - before));
            before = now;
        }
    }
    // A message whose end the trace lacks ends with it.
    if before != 0 {
        steps.push((call.end(), -before));
    }
    steps
}

/// Levels after each step, the earliest first.
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

/// The level at a moment.
fn level_at(levels: &[(i64, i64)], at: i64) -> i64 {
    let after = levels.partition_point(|step| step.0 <= at);
    after.checked_sub(1).map_or(0, |place| levels[place].1)
}

/// Bytes times nanoseconds from one moment to another, and nanoseconds in which there were none.
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

impl Level {
    fn of(steps: &[(i64, i64)], lives: Vec<(i64, i64)>, span: (i64, i64)) -> Self {
        let messages = lives.len();
        if messages == 0 {
            return Self::default();
        }
        let (levels, lives) = (sums(steps), join(lives));
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

/// Means over equal parts of the time.
fn curve(levels: &[(i64, i64)], (first, last): (i64, i64)) -> Vec<(i64, f64)> {
    let part = ((last - first) / POINTS as i64).max(1);
    let parts = ((last - first) / part).clamp(1, POINTS as i64);
    let mean = |index| {
        let from = first + part * index;
        (from + part / 2, area(levels, from, from + part).0 / part as f64)
    };
    (0..parts).map(mean).collect()
}

impl Link {
    fn of(steps: &Steps, outstanding: &[(i64, i64)], least: i64) -> Self {
        let mut arrivals = steps.arrivals.clone();
        arrivals.sort_unstable();
        let senders = sums(&steps.senders);
        let mut link = Self { bytes: arrivals.iter().map(|it| it.1).sum(), ..Self::default() };
        for (from, until) in join(steps.waiting.clone()) {
            link.waiting += until - from;
            let first = arrivals.partition_point(|it| it.0 <= from);
            let rest = arrivals[first..].iter().map(|it| it.0).take_while(|at| *at < until);
            let mut at = from;
            for next in rest.chain([until]) {
                let gap = next - at;
                if gap >= least {
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

impl Serialize for Level {
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

impl Serialize for Link {
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
