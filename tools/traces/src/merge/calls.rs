//! What did both sides record of an RPC?

use super::domains::Domains;
use super::ways::{Ends, Way};
use apus_trace::event::Event;
use apus_trace::{Side, Trace};
use std::collections::BTreeMap;

/// What is known about an RPC.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its id, as the client writes it.
    pub id: u64,
    /// The place of its way in [`super::Merged::ways`].
    pub way: usize,
    /// Which end of the way is the client.
    pub client: usize,
    /// What happened to it, the earliest first.
    pub marks: Vec<Mark>,
}

/// Something that happened to an RPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Nanoseconds on the common clock.
    pub at: i64,
    /// The thread that recorded it, by its place in [`super::Merged::threads`].
    pub thread: usize,
    /// At which end.
    pub side: Side,
    /// What.
    pub event: Event,
    /// The record's numbers.
    pub a: u32,
    /// The same.
    pub b: u64,
}

/// All RPCs, with times of the clock of each process.
pub(super) fn calls(traces: &[(String, Trace)], domains: &Domains, ends: &Ends) -> Vec<Call> {
    let mut calls: BTreeMap<(usize, usize, u64), Vec<Mark>> = BTreeMap::new();
    let mut threads = 0;
    for (process, (_, trace)) in traces.iter().enumerate() {
        for (place, thread) in trace.threads.iter().enumerate() {
            for record in &thread.records {
                let (Some(rpc), Some(event)) = (record.rpc(), record.event()) else { continue };
                let Some(&(way, end)) = ends.get(&(process, rpc.peer())) else { continue };
                let side = rpc.side();
                let client = if side == Side::Client { end } else { 1 - end };
                let at = domains.local(process, record.ticks);
                let thread = threads + place;
                let mark = Mark { at, thread, side, event, a: record.a, b: record.b };
                calls.entry((way, client, rpc.id())).or_default().push(mark);
            }
        }
        threads += trace.threads.len();
    }
    let call = |((way, client, id), mut marks): (_, Vec<Mark>)| {
        marks.sort_by_key(|mark| mark.at);
        Call { id, way, client, marks }
    };
    calls.into_iter().map(call).collect()
}

impl Call {
    /// Puts everything on the common clock: the time that a process' local time is.
    pub(super) fn place(&mut self, way: &Way, common: impl Fn(usize, i64) -> i64) {
        let client = self.client;
        for mark in &mut self.marks {
            let end = if mark.side == Side::Client { client } else { 1 - client };
            let process = way.ends[end].expect("who recorded something is there");
            mark.at = common(process, mark.at);
        }
        self.marks.sort_by_key(|mark| mark.at);
    }

    /// When the first thing happened to it.
    #[must_use]
    pub fn begin(&self) -> i64 {
        self.marks.first().map_or(0, |mark| mark.at)
    }

    /// When the last thing happened to it.
    #[must_use]
    pub fn end(&self) -> i64 {
        self.marks.last().map_or(0, |mark| mark.at)
    }

    /// All that happened at one end, the earliest first.
    pub fn at(&self, side: Side) -> impl DoubleEndedIterator<Item = &Mark> {
        self.marks.iter().filter(move |mark| mark.side == side)
    }

    /// All of one event at one end.
    pub fn all(&self, side: Side, event: Event) -> impl DoubleEndedIterator<Item = &Mark> {
        self.at(side).filter(move |mark| mark.event == event)
    }

    /// The first of one event at one end.
    #[must_use]
    pub fn first(&self, side: Side, event: Event) -> Option<&Mark> {
        self.all(side, event).next()
    }

    /// The last of one event at one end that was not after `until`.
    #[must_use]
    pub fn last_until(&self, side: Side, event: Event, until: i64) -> Option<&Mark> {
        self.all(side, event).rfind(|mark| mark.at <= until)
    }

    /// Whether something of that kind happened to it, at either end.
    #[must_use]
    pub fn has(&self, event: Event) -> bool {
        self.marks.iter().any(|mark| mark.event == event)
    }

    /// From the call to its return, in nanoseconds, as the client measures it. `None` if the trace does not have both.
    #[must_use]
    pub fn rtt(&self) -> Option<i64> {
        let call = self.first(Side::Client, Event::Call)?;
        let returned = self.first(Side::Client, Event::Returned)?;
        Some(returned.at - call.at)
    }

    /// Bytes of the message that `side` sends: the request of the client, the response of the server.
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
        told.iter().find_map(|(side, event)| self.first(*side, *event)).map(|mark| mark.b)
    }

    /// The process at one end, by its place; `None` if its trace is not there.
    #[must_use]
    pub fn process(&self, side: Side, ways: &[Way]) -> Option<usize> {
        let end = if side == Side::Client { self.client } else { 1 - self.client };
        ways[self.way].ends[end]
    }
}
