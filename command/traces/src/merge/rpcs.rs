//! RPCs as recorded by both sides.

use super::associations::{Association, AssociationIndex};
use super::clock_domains::ClockDomains;
use apus_trace::event::Event;
use apus_trace::{Side, Trace};
use std::collections::BTreeMap;

/// An RPC with the records of both sides.
#[derive(Clone, Debug)]
pub struct TracedRpc {
    /// RPC id, as written by the client.
    pub id: u64,
    /// Index of its association in [`super::MergedTraces::associations`].
    pub association: usize,
    /// Index of the client among the association's ends.
    pub client: usize,
    /// Its records, the earliest first.
    pub records: Vec<RpcRecord>,
}

/// A record of one RPC, on the common clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpcRecord {
    /// Nanoseconds on the common clock.
    pub at: i64,
    /// Index of the recording thread in [`super::MergedTraces::threads`].
    pub thread: usize,
    /// Recording side.
    pub side: Side,
    /// Event.
    pub event: Event,
    /// First number of the record.
    pub a: u32,
    /// Second number of the record.
    pub b: u64,
}

/// Collects all RPCs, with times on the clock of each process.
pub(super) fn rpcs(
    traces: &[(String, Trace)],
    clock_domains: &ClockDomains,
    ends: &AssociationIndex,
) -> Vec<TracedRpc> {
    let mut rpcs: BTreeMap<(usize, usize, u64), Vec<RpcRecord>> = BTreeMap::new();
    let mut threads = 0;
    for (process, (_, trace)) in traces.iter().enumerate() {
        for (place, thread) in trace.threads.iter().enumerate() {
            for record in &thread.records {
                let (Some(rpc), Some(event)) = (record.rpc(), record.event()) else { continue };
                let Some(&(association, end)) = ends.get(&(process, rpc.peer())) else { continue };
                let side = rpc.side();
                let client = if side == Side::Client { end } else { 1 - end };
                let at = clock_domains.local(process, record.ticks);
                let thread = threads + place;
                let record = RpcRecord { at, thread, side, event, a: record.a, b: record.b };
                rpcs.entry((association, client, rpc.id())).or_default().push(record);
            }
        }
        threads += trace.threads.len();
    }
    let rpc = |((association, client, id), mut records): (_, Vec<RpcRecord>)| {
        records.sort_by_key(|record| record.at);
        TracedRpc { id, association, client, records }
    };
    rpcs.into_iter().map(rpc).collect()
}

impl TracedRpc {
    /// Converts all times to the common clock; `common` converts a process's time.
    pub(super) fn align(&mut self, association: &Association, common: impl Fn(usize, i64) -> i64) {
        let client = self.client;
        for record in &mut self.records {
            let end = if record.side == Side::Client { client } else { 1 - client };
            let process = association.ends[end].expect("who recorded something is there");
            record.at = common(process, record.at);
        }
        self.records.sort_by_key(|record| record.at);
    }

    /// Returns the time of the first record.
    #[must_use]
    pub fn begin(&self) -> i64 {
        self.records.first().map_or(0, |record| record.at)
    }

    /// Returns the time of the last record.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.records.last().map_or(0, |record| record.at)
    }

    /// Returns the records of one side, the earliest first.
    pub fn at(&self, side: Side) -> impl DoubleEndedIterator<Item = &RpcRecord> {
        self.records.iter().filter(move |record| record.side == side)
    }

    /// Returns the records of an event at one side.
    pub fn all(&self, side: Side, event: Event) -> impl DoubleEndedIterator<Item = &RpcRecord> {
        self.at(side).filter(move |record| record.event == event)
    }

    /// Returns the first record of an event at one side.
    #[must_use]
    pub fn first(&self, side: Side, event: Event) -> Option<&RpcRecord> {
        self.all(side, event).next()
    }

    /// Returns the last record of an event at one side, up to `until`.
    #[must_use]
    pub fn last_until(&self, side: Side, event: Event, until: i64) -> Option<&RpcRecord> {
        self.all(side, event).rfind(|record| record.at <= until)
    }

    /// Returns whether either side recorded the event.
    #[must_use]
    pub fn has(&self, event: Event) -> bool {
        self.records.iter().any(|record| record.event == event)
    }

    /// Returns the nanoseconds from call to return, measured at the client; `None` if the trace
    /// lacks either record.
    #[must_use]
    pub fn rtt(&self) -> Option<i64> {
        let rpc = self.first(Side::Client, Event::Call)?;
        let returned = self.first(Side::Client, Event::Returned)?;
        Some(returned.at - rpc.at)
    }

    /// Returns the length in bytes of the message sent by `side`: the client's request, or the
    /// server's response.
    #[must_use]
    pub fn length(&self, side: Side) -> Option<u64> {
        let told = match side {
            Side::Client => [
                (Side::Client, Event::Call),
                (Side::Client, Event::Queued),
                (Side::Server, Event::Parsed),
                (Side::Server, Event::RequestReturned),
            ],
            Side::Server => [
                (Side::Server, Event::Reply),
                (Side::Server, Event::Queued),
                (Side::Client, Event::Parsed),
                (Side::Client, Event::Returned),
            ],
        };
        told.iter().find_map(|(side, event)| self.first(*side, *event)).map(|record| record.b)
    }

    /// Returns the index of the process at one side; `None` if it is not traced.
    #[must_use]
    pub fn process(&self, side: Side, associations: &[Association]) -> Option<usize> {
        let end = if side == Side::Client { self.client } else { 1 - self.client };
        associations[self.association].ends[end]
    }
}
