//! Single RPCs: addresses, lengths, round trip and rates of each.
//!
//! The round trip is from `call` to `returned`. For messages of several packets:
//!
//! - first grant: from `queued` to the sender's first `grant_received`;
//! - transmit: bytes from the first to the last `data_sent` divided by the time between them, at
//!   the sender;
//! - receive: bytes from the first to the last `data_received` divided by the time between them, at
//!   the receiver. Both rates exclude the bytes of the first burst, since the time starts with it;
//! - copy: bytes divided by the sum of the times from each `from_kernel` to the last
//!   `data_received` of that batch: the receiver's rate of parsing packets and copying them into
//!   the message.

use super::distribution::{Distribution, micros};
use super::filter::RpcFilter;
use crate::merge::{MergedTraces, RpcRecord, TracedRpc};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{DataFields, Event};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::fmt;
use std::str::FromStr;

/// Report on single RPCs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RpcList {
    /// Number of matching RPCs.
    pub rpcs: usize,
    /// The first of these RPCs, in the requested order.
    pub lines: Vec<RpcLine>,
    /// Round trips of all completed RPCs.
    pub rtt: Distribution,
    /// Times from `queued` to the first grant, for all messages that received a grant.
    pub first_grant: Distribution,
}

/// An RPC in the report.
#[derive(Clone, Debug, PartialEq)]
pub struct RpcLine {
    /// RPC id.
    pub id: u64,
    /// Time of its first record, in nanoseconds on the common clock.
    pub at: i64,
    /// The client.
    pub client: RpcEnd,
    /// The server.
    pub server: RpcEnd,
    /// Round trip in nanoseconds; `None` if the trace lacks the call or the return.
    pub rtt: Option<i64>,
    /// Request and response.
    pub messages: [MessageRates; 2],
    /// Names of its anomalies, for instance `resend_sent`.
    pub remarks: Vec<&'static str>,
}

/// One end of an RPC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RpcEnd {
    /// Its address, as recorded by the traced process.
    pub address: String,
    /// Name of the process, if it is traced.
    pub process: Option<String>,
}

/// Times and rates of a request or a response.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageRates {
    /// Length in bytes, if known.
    pub length: Option<u64>,
    /// Nanoseconds from `queued` to the first grant.
    pub first_grant: Option<i64>,
    /// Transmit rate in Gbit/s.
    pub transmit: Option<f64>,
    /// Receive rate in Gbit/s.
    pub receive: Option<f64>,
    /// Copy rate in Gbit/s.
    pub copy: Option<f64>,
}

/// Display order of RPCs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RpcOrder {
    /// Earliest first.
    Time,
    /// Longest round trip first.
    #[default]
    Rtt,
    /// Longest message first.
    Length,
    /// Longest wait for the first grant first.
    FirstGrant,
    /// Lowest transmit rate first.
    Transmit,
    /// Lowest receive rate first.
    Receive,
    /// Lowest copy rate first.
    Copy,
}

impl RpcList {
    /// Builds the report on the RPCs that match `filter`, with at most `limit` lines.
    #[must_use]
    pub fn of(merged: &MergedTraces, filter: &RpcFilter, order: RpcOrder, limit: usize) -> Self {
        let mut lines: Vec<RpcLine> =
            filter.rpcs(merged).map(|rpc| RpcLine::of(merged, rpc)).collect();
        let rtt = lines.iter().filter_map(|line| line.rtt).collect();
        let grants = lines.iter().flat_map(|line| line.messages).filter_map(|it| it.first_grant);
        let (first_grant, rpcs) = (grants.collect(), lines.len());
        lines.sort_by(|a, b| order.rank(a).total_cmp(&order.rank(b)).then(a.at.cmp(&b.at)));
        lines.truncate(limit);
        Self { rpcs, lines, rtt, first_grant }
    }
}

impl RpcOrder {
    /// All orders with their names.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Time, "time"),
        (Self::Rtt, "rtt"),
        (Self::Length, "length"),
        (Self::FirstGrant, "first-grant"),
        (Self::Transmit, "transmit"),
        (Self::Receive, "receive"),
        (Self::Copy, "copy"),
    ];

    /// Returns the sort key of a line: lower values first, unknown values last.
    fn rank(self, line: &RpcLine) -> f64 {
        let least = |of: fn(&MessageRates) -> Option<f64>| {
            line.messages.iter().filter_map(of).fold(f64::INFINITY, f64::min)
        };
        let greatest = |of: fn(&MessageRates) -> Option<f64>| {
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

impl fmt::Display for RpcOrder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(order, _)| order == self).map_or("", |(_, name)| name);
        formatter.write_str(name)
    }
}

impl FromStr for RpcOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let order = Self::ALL.iter().find(|(_, name)| *name == text).map(|(order, _)| *order);
        let names = || Self::ALL.map(|(_, name)| name).join(", ");
        order.ok_or_else(|| format!("`{text}` is none of {}", names()))
    }
}

impl RpcLine {
    fn of(merged: &MergedTraces, rpc: &TracedRpc) -> Self {
        let association = &merged.associations[rpc.association];
        // The first address belongs to the association's first end.
        let mut addresses = [association.addresses.endpoint, association.addresses.address];
        addresses.rotate_left(rpc.client);
        let names = [Client, Server].map(|side| rpc.process(side, &merged.associations));
        let end = |end: usize| RpcEnd {
            address: addresses[end].to_string(),
            process: names[end].map(|process| merged.process_name(process)),
        };
        let rare =
            |record: &RpcRecord| record.event.scope() == apus_trace::event::EventScope::Anomaly;
        let mut remarks: Vec<&'static str> = rpc
            .records
            .iter()
            .filter(|record| rare(record))
            .map(|record| record.event.name())
            .collect();
        remarks.sort_unstable();
        remarks.dedup();
        Self {
            id: rpc.id,
            at: rpc.begin(),
            client: end(0),
            server: end(1),
            rtt: rpc.rtt(),
            messages: [Client, Server].map(|sender| MessageRates::of(rpc, sender)),
            remarks,
        }
    }
}

impl MessageRates {
    /// Computes the figures of the message transmitted by `sender`.
    fn of(rpc: &TracedRpc, sender: Side) -> Self {
        let queued = rpc.first(sender, Event::Queued);
        let granted = rpc.first(sender, Event::GrantReceived);
        let first_grant = queued.zip(granted).map(|(queued, granted)| granted.at - queued.at);
        let sent: Vec<&RpcRecord> = rpc.all(sender, Event::DataSent).collect();
        let arrival: Vec<&RpcRecord> = rpc.all(sender.other(), Event::DataReceived).collect();
        Self {
            length: rpc.length(sender),
            first_grant,
            transmit: rate(&sent),
            receive: rate(&arrival),
            copy: copy_rate(rpc, sender.other(), &arrival),
        }
    }
}

/// Returns the rate from the first to the last of these bursts in Gbit/s; `None` with fewer than
/// two distinct times.
fn rate(bursts: &[&RpcRecord]) -> Option<f64> {
    let (first, rest) = bursts.split_first()?;
    let nanos = rest.last()?.at - first.at;
    let bytes: u64 = rest.iter().map(|burst| length(burst)).sum();
    gigabits(bytes, nanos)
}

/// Returns the receiver's rate of handling its batches, in Gbit/s.
fn copy_rate(rpc: &TracedRpc, receiver: Side, arrival: &[&RpcRecord]) -> Option<f64> {
    // In a single-packet message, parsing takes longer than copying.
    if arrival.len() < 2 {
        return None;
    }
    let batches: Vec<i64> = rpc.all(receiver, Event::FromKernel).map(|batch| batch.at).collect();
    let mut nanos = 0;
    for (index, begin) in batches.iter().enumerate() {
        let end = batches.get(index + 1).copied().unwrap_or(i64::MAX);
        let last = arrival.iter().rfind(|record| (*begin..end).contains(&record.at));
        nanos += last.map_or(0, |last| last.at - begin);
    }
    let first = batches.first()?;
    gigabits(
        arrival.iter().filter(|record| record.at >= *first).map(|record| length(record)).sum(),
        nanos,
    )
}

const fn length(burst: &RpcRecord) -> u64 {
    DataFields::from_numbers(burst.a, burst.b).length as u64
}

fn gigabits(bytes: u64, nanos: i64) -> Option<f64> {
    (nanos > 0 && bytes > 0).then(|| bytes as f64 * 8.0 / nanos as f64)
}

impl Serialize for RpcLine {
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

impl Serialize for MessageRates {
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
