//! Losses: the bytes requested again by RESEND, and the cause of each request.
//!
//! Each `resend_sent` names the bytes that a receiver lacks. Both traces together show the cause:
//!
//! - on the way: the bytes had been sent before the RESEND and arrived only by a retransmission, or
//!   never. They were lost, or dropped by a queue.
//! - dropped here: as before, and the receiver recorded that it dropped a packet of this RPC
//!   (`dropped`, with the reason).
//! - late: the original transmission arrived after the RESEND.
//! - not sent yet: the sender had sent none of the bytes. It was busy, or waiting for the pacer or
//!   for grants.
//! - request not sent yet: the client requested the whole response before it had sent its whole
//!   request.
//! - request on the way: the client requested the whole response; the server had not received the
//!   whole request, which had been sent.
//! - still served: the client requested the whole response before the server's application replied.
//! - came before: the receiver already had the bytes.
//! - unknown: the sender has no trace, or the RPC is not traced.
//!
//! The wait ends with the first `data_received` that contains a requested byte. The report also
//! counts other rare events: drops, restarts and failures by reason, gaps (`lost`: a packet arrived
//! before an earlier one), calls that exceeded their time.

use super::distribution::{Distribution, micros};
use super::filter::RpcFilter;
use crate::merge::{MergedTraces, RpcRecord, TimedRecord, TracedRpc};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event, EventScope, Unit};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;

/// Report on losses.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Losses {
    /// Causes, the most frequent first.
    pub causes: Vec<CauseCount>,
    /// RESENDs, the earliest first.
    pub resends: Vec<Resend>,
    /// Other rare events, the most frequent first.
    pub rare: Vec<AnomalyCount>,
}

/// RESENDs with the same cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseCount {
    /// Cause of the RESENDs.
    pub cause: String,
    /// Number of RESENDs.
    pub resends: usize,
    /// Times until some of the bytes arrived.
    pub wait: Distribution,
}

/// A RESEND and its cause.
#[derive(Clone, Debug, PartialEq)]
pub struct Resend {
    /// RPC id.
    pub id: u64,
    /// Send time, in nanoseconds on the common clock.
    pub at: i64,
    /// The message that it refers to: `request` or `response`.
    pub message: &'static str,
    /// Offset of the first requested byte.
    pub offset: u32,
    /// Number of requested bytes; `None` requests all bytes sent so far.
    pub length: Option<u32>,
    /// Cause.
    pub cause: String,
    /// Nanoseconds until some of the bytes arrived.
    pub wait: Option<i64>,
}

/// Number of rare events of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnomalyCount {
    /// Name of the process that recorded them.
    pub process: String,
    /// Name of the event.
    pub event: &'static str,
    /// Reason, if the event has one.
    pub reason: Option<String>,
    /// Number of events.
    pub count: usize,
}

impl Losses {
    /// Builds the report on the RPCs that match `filter`. Other rare events are counted for all
    /// RPCs.
    #[must_use]
    pub fn of(merged: &MergedTraces, filter: &RpcFilter) -> Self {
        let mut resends: Vec<Resend> = Vec::new();
        for rpc in filter.rpcs(merged) {
            for receiver in [Client, Server] {
                let sent = rpc.all(receiver, Event::ResendSent);
                resends.extend(sent.map(|resend| Resend::of(merged, rpc, receiver, resend)));
            }
        }
        resends.sort_by_key(|resend| resend.at);
        let mut waits: BTreeMap<&str, (usize, Vec<i64>)> = BTreeMap::new();
        for Resend { cause, wait, .. } in &resends {
            let of = waits.entry(cause).or_default();
            of.0 += 1;
            of.1.extend(wait);
        }
        let line = |(cause, (resends, waits)): (&str, (usize, Vec<i64>))| CauseCount {
            cause: cause.to_owned(),
            resends,
            wait: waits.into_iter().collect(),
        };
        let mut causes: Vec<CauseCount> = waits.into_iter().map(line).collect();
        causes.sort_by_key(|line| std::cmp::Reverse(line.resends));
        Self { causes, resends, rare: rare(merged) }
    }
}

/// Length in a RESEND that requests all bytes.
const ALL: u32 = u32::MAX;

impl Resend {
    fn of(merged: &MergedTraces, rpc: &TracedRpc, receiver: Side, resend: &RpcRecord) -> Self {
        let requested = DataFields::from_numbers(resend.a, resend.b);
        let comes =
            |record: &&RpcRecord| overlap(&data(record), &requested) && record.at >= resend.at;
        let arrival = rpc.all(receiver, Event::DataReceived).find(comes);
        Self {
            id: rpc.id,
            at: resend.at,
            message: if receiver == Server { "request" } else { "response" },
            offset: requested.offset,
            length: Some(requested.length).filter(|length| *length != ALL),
            cause: cause(merged, rpc, receiver, resend),
            wait: arrival.map(|arrival| arrival.at - resend.at),
        }
    }
}

fn cause(merged: &MergedTraces, rpc: &TracedRpc, receiver: Side, resend: &RpcRecord) -> String {
    let (sender, requested) = (receiver.other(), data(resend));
    let known = rpc.process(sender, &merged.associations).is_some()
        && rpc.at(sender).any(|record| record.event.scope() != EventScope::Anomaly);
    let sent = |record: &&RpcRecord| record.at <= resend.at && overlap(&data(record), &requested);
    let first_sent = rpc.all(sender, Event::DataSent).find(sent);
    let received =
        || rpc.all(receiver, Event::DataReceived).filter(|it| overlap(&data(it), &requested));
    let reply = rpc.first(Server, Event::Reply);
    if requested.length != ALL && received().any(|record| record.at < resend.at) {
        return "came before".to_owned();
    }
    if first_sent.is_none() && receiver == Client && reply.is_none_or(|it| it.at > resend.at) {
        let requested = rpc.first(Server, Event::Parsed).filter(|it| it.at <= resend.at);
        return match (requested, known) {
            (Some(_), _) => "still served",
            (None, true) if !has_sent_all(rpc, resend.at) => "request not sent yet",
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
    if received().any(|record| record.at >= resend.at && !data(record).retransmitted) {
        return "late".to_owned();
    }
    let dropped = rpc.all(receiver, Event::Dropped).find(|record| record.at <= resend.at);
    match dropped {
        Some(record) => {
            format!("dropped here: {}", reason(merged, record.thread, "drop_reason", record.a))
        }
        None => "on the way".to_owned(),
    }
}

/// Returns whether the client had sent its whole request.
fn has_sent_all(rpc: &TracedRpc, until: i64) -> bool {
    let sent = rpc.all(Client, Event::DataSent).filter(|record| record.at <= until).map(data);
    let upto = sent.map(|burst| u64::from(burst.offset) + u64::from(burst.length)).max();
    rpc.length(Client).is_some_and(|length| upto >= Some(length))
}

const fn data(record: &RpcRecord) -> DataFields {
    DataFields::from_numbers(record.a, record.b)
}

/// Returns whether two byte ranges overlap.
fn overlap(a: &DataFields, b: &DataFields) -> bool {
    let end = |it: &DataFields| u64::from(it.offset) + u64::from(it.length);
    u64::from(a.offset) < end(b) && u64::from(b.offset) < end(a)
}

fn reason(merged: &MergedTraces, thread: usize, list: &str, number: u32) -> String {
    let values = &merged.process_of(thread).head.values;
    let name = values.get(list).and_then(|names| names.get(number as usize));
    name.cloned().unwrap_or_else(|| format!("{list} {number}"))
}

/// Counts anomalies other than RESENDs.
fn rare(merged: &MergedTraces) -> Vec<AnomalyCount> {
    let mut counts: BTreeMap<(usize, Event, Option<String>), usize> = BTreeMap::new();
    for TimedRecord { thread, record, .. } in &merged.records {
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
    let line = |((process, event, reason), count): ((usize, Event, Option<String>), usize)| {
        AnomalyCount { process: merged.process_name(process), event: event.name(), reason, count }
    };
    let mut all: Vec<AnomalyCount> = counts.into_iter().map(line).collect();
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
