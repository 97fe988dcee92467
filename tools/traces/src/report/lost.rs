//! What was asked for again, and why?
//!
//! Each `resend_sent` names bytes of a message that its receiver misses. What became of them follows from both traces:
//!
//! - on the way: they had been sent before, and did not come until after the RESEND, by a burst that was sent again, or
//!   never: lost, or dropped by a queue;
//! - dropped here: the same, and the receiver recorded that it did not use a packet of this RPC (`dropped`, which says why);
//! - late: they came after all, by the burst that was sent first, after they had been asked for;
//! - not sent yet: the sender had sent nothing of them: it was busy, its pacer or the grants held it up;
//! - request not sent yet: all of a response was asked for, and the client had not sent all of its request;
//! - request on the way: the same, but it had, and the server had not got all of it;
//! - still served: all of a response was asked for, and the server's application had not replied yet;
//! - came before: the receiver had them already;
//! - unknown: the sender's trace is not there, or the RPC is not traced.
//!
//! The wait is from `resend_sent` until the first `data_received` that holds a byte that was asked for. Beside that, what
//! else should be rare, as counts: drops, restarts and failures by reason, gaps (`lost`: a packet came ahead of
//! others), calls that were too slow.

use super::{Distribution, Filter, micros};
use crate::merge::{Call, Mark, Merged, Stamped};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event, EventScope, Unit};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lost {
    /// Causes, the most frequent first.
    pub causes: Vec<CauseLine>,
    /// Each RESEND, the earliest first.
    pub resends: Vec<Resend>,
    /// What else should be rare, the most frequent first.
    pub rare: Vec<Rare>,
}

/// RESENDs with the same cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseLine {
    /// Why bytes were asked for.
    pub cause: String,
    /// How often.
    pub resends: usize,
    /// How long it took until some of them came.
    pub wait: Distribution,
}

/// A RESEND.
#[derive(Clone, Debug, PartialEq)]
pub struct Resend {
    /// The RPC.
    pub id: u64,
    /// When it was sent, in nanoseconds on the common clock.
    pub at: i64,
    /// Of which message: `request` or `response`.
    pub message: &'static str,
    /// The first byte that was asked for.
    pub offset: u32,
    /// Bytes; `None`: all that was sent.
    pub length: Option<u32>,
    /// Why.
    pub cause: String,
    /// How long it took until some of them came, in nanoseconds.
    pub wait: Option<i64>,
}

/// Something rare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rare {
    /// The process that recorded it.
    pub process: String,
    /// The event.
    pub event: &'static str,
    /// The reason, if it has one.
    pub reason: Option<String>,
    /// How often.
    pub count: usize,
}

impl Lost {
    /// Of the RPCs that `filter` admits; what else is rare is counted of all.
    #[must_use]
    pub fn of(merged: &Merged, filter: &Filter) -> Self {
        let mut resends: Vec<Resend> = Vec::new();
        for call in filter.calls(merged) {
            for receiver in [Client, Server] {
                let sent = call.all(receiver, Event::ResendSent);
                resends.extend(sent.map(|resend| Resend::of(merged, call, receiver, resend)));
            }
        }
        resends.sort_by_key(|resend| resend.at);
        let mut waits: BTreeMap<&str, (usize, Vec<i64>)> = BTreeMap::new();
        for Resend { cause, wait, .. } in &resends {
            let of = waits.entry(cause).or_default();
            of.0 += 1;
            of.1.extend(wait);
        }
        let line = |(cause, (resends, waits)): (&str, (usize, Vec<i64>))| CauseLine {
            cause: cause.to_owned(),
            resends,
            wait: waits.into_iter().collect(),
        };
        let mut causes: Vec<CauseLine> = waits.into_iter().map(line).collect();
        causes.sort_by_key(|line| std::cmp::Reverse(line.resends));
        Self { causes, resends, rare: rare(merged) }
    }
}

/// Asks for everything.
const ALL: u32 = u32::MAX;

impl Resend {
    fn of(merged: &Merged, call: &Call, receiver: Side, resend: &Mark) -> Self {
        let asked = DataFields::from_numbers(resend.a, resend.b);
        let comes = |mark: &&Mark| overlap(&data(mark), &asked) && mark.at >= resend.at;
        let came = call.all(receiver, Event::DataReceived).find(comes);
        Self {
            id: call.id,
            at: resend.at,
            message: if receiver == Server { "request" } else { "response" },
            offset: asked.offset,
            length: Some(asked.length).filter(|length| *length != ALL),
            cause: cause(merged, call, receiver, resend),
            wait: came.map(|came| came.at - resend.at),
        }
    }
}

fn cause(merged: &Merged, call: &Call, receiver: Side, resend: &Mark) -> String {
    let (sender, asked) = (receiver.other(), data(resend));
    let known = call.process(sender, &merged.ways).is_some()
        && call.at(sender).any(|mark| mark.event.scope() != EventScope::Anomaly);
    let sent = |mark: &&Mark| mark.at <= resend.at && overlap(&data(mark), &asked);
    let first_sent = call.all(sender, Event::DataSent).find(sent);
    let received =
        || call.all(receiver, Event::DataReceived).filter(|it| overlap(&data(it), &asked));
    let reply = call.first(Server, Event::Reply);
    if asked.length != ALL && received().any(|mark| mark.at < resend.at) {
        return "came before".to_owned();
    }
    if first_sent.is_none() && receiver == Client && reply.is_none_or(|it| it.at > resend.at) {
        let requested = call.first(Server, Event::Parsed).filter(|it| it.at <= resend.at);
        return match (requested, known) {
            (Some(_), _) => "still served",
            (None, true) if !has_sent_all(call, resend.at) => "request not sent yet",
            (None, true) => "request on the way",
            (None, false) => "unknown: the sender's trace does not have it",
        }
        .to_owned();
    }
    if !known {
        return "unknown: the sender's trace does not have it".to_owned();
    }
    if first_sent.is_none() {
        return "not sent yet".to_owned();
    }
    if received().any(|mark| mark.at >= resend.at && !data(mark).retransmitted) {
        return "late".to_owned();
    }
    let dropped = call.all(receiver, Event::Dropped).find(|mark| mark.at <= resend.at);
    match dropped {
        Some(mark) => {
            format!("dropped here: {}", reason(merged, mark.thread, "drop_reason", mark.a))
        }
        None => "on the way".to_owned(),
    }
}

/// Whether the client had sent all of its request.
fn has_sent_all(call: &Call, until: i64) -> bool {
    let sent = call.all(Client, Event::DataSent).filter(|mark| mark.at <= until).map(data);
    let upto = sent.map(|burst| u64::from(burst.offset) + u64::from(burst.length)).max();
    call.length(Client).is_some_and(|length| upto >= Some(length))
}

const fn data(mark: &Mark) -> DataFields {
    DataFields::from_numbers(mark.a, mark.b)
}

/// Whether two ranges of bytes have one in common.
fn overlap(a: &DataFields, b: &DataFields) -> bool {
    let end = |it: &DataFields| u64::from(it.offset) + u64::from(it.length);
    u64::from(a.offset) < end(b) && u64::from(b.offset) < end(a)
}

fn reason(merged: &Merged, thread: usize, list: &str, number: u32) -> String {
    let values = &merged.process_of(thread).head.values;
    let name = values.get(list).and_then(|names| names.get(number as usize));
    name.cloned().unwrap_or_else(|| format!("{list} {number}"))
}

/// Anomalies but for RESENDs, counted.
fn rare(merged: &Merged) -> Vec<Rare> {
    let mut counts: BTreeMap<(usize, Event, Option<String>), usize> = BTreeMap::new();
    for Stamped { thread, record, .. } in &merged.records {
        let Some(event) = record.event().filter(|event| event.scope() == EventScope::Anomaly)
        else {
            continue;
        };
        let named = record.fields().find_map(|(field, value)| match field.unit {
            Unit::Name(list) => Some((list, u32::try_from(value).unwrap_or(u32::MAX))),
            _ => None,
        });
        let reason = named.map(|(list, number)| reason(merged, *thread, list, number));
        *counts.entry((merged.threads[*thread].process, event, reason)).or_default() += 1;
    }
    let line = |((process, event, reason), count): ((usize, Event, Option<String>), usize)| Rare {
        process: merged.process_name(process),
        event: event.name(),
        reason,
        count,
    };
    let mut all: Vec<Rare> = counts.into_iter().map(line).collect();
    all.sort_by_key(|rare| std::cmp::Reverse(rare.count));
    all
}

impl Serialize for Resend {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("at_us", &micros(self.at as f64))?;
        map.serialize_entry("message", self.message)?;
        map.serialize_entry("offset", &self.offset)?;
        map.serialize_entry("bytes", &self.length)?;
        map.serialize_entry("cause", &self.cause)?;
        map.serialize_entry("wait_us", &self.wait.map(|nanos| micros(nanos as f64)))?;
        map.end()
    }
}
