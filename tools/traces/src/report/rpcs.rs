//! What happened to each RPC?
//!
//! One line for each: when it was called, who called whom, how long its messages are, its round trip (`call` to
//! `returned`). For messages of several packets also
//!
//! - until the first grant: from `queued` to the sender's first `grant_received`;
//! - transmit: bytes from the first `to_kernel` to the last, by the time between them, at the sender;
//! - receive: bytes from the first `data_received` to the last, by the time between them, at the receiver. Of both the
//!   bytes of the first burst do not count, as the clock starts with them;
//! - copy: bytes by the time from each `from_kernel` to the last `data_received` of that batch: how fast the receiver
//!   takes packets apart and copies them into the message.

use super::{Distribution, Filter, micros};
use crate::merge::{Call, Mark, Merged};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::fmt;
use std::str::FromStr;

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rpcs {
    /// How many RPCs were chosen.
    pub rpcs: usize,
    /// The first ones of them in the order that was asked for.
    pub lines: Vec<Line>,
    /// Round trips of all that have ended.
    pub rtt: Distribution,
    /// From `queued` until the first grant, of all messages that got one.
    pub first_grant: Distribution,
}

/// An RPC.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its id.
    pub id: u64,
    /// When the first thing that is known happened to it, in nanoseconds on the common clock.
    pub at: i64,
    /// Who called.
    pub client: End,
    /// Who was called.
    pub server: End,
    /// Its round trip in nanoseconds; `None` if the trace has not both ends of it.
    pub rtt: Option<i64>,
    /// The request and the response.
    pub messages: [Message; 2],
    /// What should be rare and happened to it, like `resend_sent`.
    pub remarks: Vec<&'static str>,
}

/// One end of an RPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct End {
    /// Its address, as the process knows it whose trace is there.
    pub address: String,
    /// The process, if its trace is there.
    pub process: Option<String>,
}

/// A request or a response.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Message {
    /// Bytes, if known.
    pub length: Option<u64>,
    /// From `queued` until the first grant, in nanoseconds.
    pub first_grant: Option<i64>,
    /// Gigabit a second.
    pub transmit: Option<f64>,
    /// Gigabit a second.
    pub receive: Option<f64>,
    /// Gigabit a second.
    pub copy: Option<f64>,
}

/// In which order RPCs are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The earliest first.
    Time,
    /// The longest round trip first.
    #[default]
    Rtt,
    /// The longest message first.
    Length,
    /// Those that waited longest for a grant first.
    FirstGrant,
    /// The slowest transmission first.
    Transmit,
    /// The slowest reception first.
    Receive,
    /// The slowest copying first.
    Copy,
}

impl Rpcs {
    /// Of the RPCs that `filter` admits, `limit` lines at most.
    #[must_use]
    pub fn of(merged: &Merged, filter: &Filter, order: Order, limit: usize) -> Self {
        let mut lines: Vec<Line> =
            filter.calls(merged).map(|call| Line::of(merged, call)).collect();
        let rtt = lines.iter().filter_map(|line| line.rtt).collect();
        let grants = lines.iter().flat_map(|line| line.messages).filter_map(|it| it.first_grant);
        let (first_grant, rpcs) = (grants.collect(), lines.len());
        lines.sort_by(|a, b| order.rank(a).total_cmp(&order.rank(b)).then(a.at.cmp(&b.at)));
        lines.truncate(limit);
        Self { rpcs, lines, rtt, first_grant }
    }
}

impl Order {
    /// All of them, with the words that name them.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Time, "time"),
        (Self::Rtt, "rtt"),
        (Self::Length, "length"),
        (Self::FirstGrant, "first-grant"),
        (Self::Transmit, "transmit"),
        (Self::Receive, "receive"),
        (Self::Copy, "copy"),
    ];

    /// The least comes first; what is not known comes last.
    fn rank(self, line: &Line) -> f64 {
        let least = |of: fn(&Message) -> Option<f64>| {
            line.messages.iter().filter_map(of).fold(f64::INFINITY, f64::min)
        };
        let greatest = |of: fn(&Message) -> Option<f64>| {
            -line.messages.iter().filter_map(of).fold(f64::NEG_INFINITY, f64::max)
        };
        match self {
            Self::Time => line.at as f64,
            Self::Rtt => -line.rtt.map_or(f64::NEG_INFINITY, |rtt| rtt as f64),
            Self::Length => greatest(|message| message.length.map(|bytes| bytes as f64)),
            Self::FirstGrant => greatest(|message| message.first_grant.map(|nanos| nanos as f64)),
            Self::Transmit => least(|message| message.transmit),
            Self::Receive => least(|message| message.receive),
            Self::Copy => least(|message| message.copy),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(order, _)| order == self).map_or("", |(_, name)| name);
        formatter.write_str(name)
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(_, name)| *name == text).map(|(order, _)| *order);
        let names = || Self::ALL.map(|(_, name)| name).join(", ");
        found.ok_or_else(|| format!("`{text}` is none of {}", names()))
    }
}

impl Line {
    fn of(merged: &Merged, call: &Call) -> Self {
        let way = &merged.ways[call.way];
        // The first address is that of the first end.
        let mut addresses = [way.addresses.endpoint, way.addresses.address];
        addresses.rotate_left(call.client);
        let names = [Client, Server].map(|side| call.process(side, &merged.ways));
        let end = |end: usize| End {
            address: addresses[end].to_string(),
            process: names[end].map(|process| merged.process_name(process)),
        };
        let rare = |mark: &Mark| mark.event.scope() == apus_trace::event::EventScope::Anomaly;
        let mut remarks: Vec<&'static str> =
            call.marks.iter().filter(|mark| rare(mark)).map(|mark| mark.event.name()).collect();
        remarks.sort_unstable();
        remarks.dedup();
        Self {
            id: call.id,
            at: call.begin(),
            client: end(0),
            server: end(1),
            rtt: call.rtt(),
            messages: [Client, Server].map(|sender| Message::of(call, sender)),
            remarks,
        }
    }
}

impl Message {
    /// The message that `sender` sends.
    fn of(call: &Call, sender: Side) -> Self {
        let queued = call.first(sender, Event::Queued);
        let granted = call.first(sender, Event::GrantReceived);
        let first_grant = queued.zip(granted).map(|(queued, granted)| granted.at - queued.at);
        let sent: Vec<&Mark> = call.all(sender, Event::DataSent).collect();
        let came: Vec<&Mark> = call.all(sender.other(), Event::DataReceived).collect();
        Self {
            length: call.length(sender),
            first_grant,
            transmit: rate(&sent),
            receive: rate(&came),
            copy: copied(call, sender.other(), &came),
        }
    }
}

/// Gigabit a second from the first to the last of these bursts. `None` of less than two moments.
fn rate(bursts: &[&Mark]) -> Option<f64> {
    let (first, rest) = bursts.split_first()?;
    let nanos = rest.last()?.at - first.at;
    let bytes: u64 = rest.iter().map(|burst| length(burst)).sum();
    gigabits(bytes, nanos)
}

/// How fast the receiver handled what had come in each batch.
fn copied(call: &Call, receiver: Side, came: &[&Mark]) -> Option<f64> {
    // A message of one packet is parsed for longer than it is copied.
    if came.len() < 2 {
        return None;
    }
    let batches: Vec<i64> = call.all(receiver, Event::FromKernel).map(|batch| batch.at).collect();
    let mut nanos = 0;
    for (index, begin) in batches.iter().enumerate() {
        let end = batches.get(index + 1).copied().unwrap_or(i64::MAX);
        let last = came.iter().rfind(|mark| (*begin..end).contains(&mark.at));
        nanos += last.map_or(0, |last| last.at - begin);
    }
    let first = batches.first()?;
    gigabits(came.iter().filter(|mark| mark.at >= *first).map(|mark| length(mark)).sum(), nanos)
}

const fn length(burst: &Mark) -> u64 {
    DataFields::from_numbers(burst.a, burst.b).length as u64
}

fn gigabits(bytes: u64, nanos: i64) -> Option<f64> {
    (nanos > 0 && bytes > 0).then(|| bytes as f64 * 8.0 / nanos as f64)
}

impl Serialize for Line {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("at_us", &micros(self.at as f64))?;
        map.serialize_entry("client", &self.client)?;
        map.serialize_entry("server", &self.server)?;
        map.serialize_entry("rtt_us", &self.rtt.map(|nanos| micros(nanos as f64)))?;
        map.serialize_entry("request", &self.messages[0])?;
        map.serialize_entry("response", &self.messages[1])?;
        map.serialize_entry("remarks", &self.remarks)?;
        map.end()
    }
}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let digits = |rate: Option<f64>| rate.map(|rate| (rate * 1e3).round() / 1e3);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("bytes", &self.length)?;
        let first_grant = self.first_grant.map(|nanos| micros(nanos as f64));
        map.serialize_entry("first_grant_us", &first_grant)?;
        map.serialize_entry("transmit_gbps", &digits(self.transmit))?;
        map.serialize_entry("receive_gbps", &digits(self.receive))?;
        map.serialize_entry("copy_gbps", &digits(self.copy))?;
        map.end()
    }
}
