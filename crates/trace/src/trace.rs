//! What is kept of what a process recorded?

use crate::clock::Calibration;
use crate::event::Event;
use crate::peers::{Peer, PeerIndex};
use crate::record::Record;
use crate::recorder::FreezeReason;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What the threads of one process recorded, up to a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Where and when, and what the numbers in the records stand for.
    pub head: Head,
    /// The threads that recorded something, in the order in which they first did.
    pub threads: Vec<Thread>,
}

/// What is to be known about a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Name of the host.
    pub host: String,
    /// Name of the program.
    pub program: String,
    /// Number of the process.
    pub pid: u32,
    /// What ticks are worth.
    pub clock: Calibration,
    /// One RPC in so many was traced; 0: nothing was recorded any more when the trace was looked at.
    pub period: u32,
    /// When and why recording had been frozen, if it had.
    pub frozen: Option<Frozen>,
    /// Those whom records name, the first by [`PeerIndex`] 1.
    pub peers: Vec<Peer>,
    /// Names of the events by their numbers.
    pub events: BTreeMap<u16, String>,
    /// What the numbers of fields with [`crate::event::Unit::Name`] stand for, by the list's name.
    pub values: BTreeMap<String, Vec<String>>,
}

/// When and why a trace was frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// Why.
    pub reason: FreezeReason,
    /// When.
    pub ticks: u64,
}

/// What one thread recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its name, or its number if it had none.
    pub name: String,
    /// Its number in the host.
    pub tid: u32,
    /// The CPU on which it ran last; if it has ended, at first.
    pub cpu: u32,
    /// Its records that had been overwritten by newer ones.
    pub overwritten: u64,
    /// In the order of their ticks.
    pub records: Vec<Record>,
}

impl Head {
    /// The peer at this place.
    #[must_use]
    pub fn peer(&self, index: PeerIndex) -> Option<&Peer> {
        self.peers.get(usize::from(index.0).checked_sub(1)?)
    }

    /// A name for a file with this trace that no other process of any host has: `HOST-PID.tt`, with something more behind the
    /// number if that is said. What is unusual in names of files is replaced.
    #[must_use]
    pub fn file_name(&self, more: Option<&str>) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let host: String = self.host.chars().map(plain).collect();
        let more = more.map(|more| format!("-{more}")).unwrap_or_default();
        format!("{host}-{}{more}.tt", self.pid)
    }
}

impl Trace {
    /// The name of what a record says.
    #[must_use]
    pub fn name(&self, record: &Record) -> &str {
        match record.event() {
            Some(event) => event.name(),
            None => self.head.events.get(&record.kind).map_or("unknown", String::as_str),
        }
    }

    /// What a number of the list `list` stands for.
    #[must_use]
    pub fn value(&self, list: &str, number: u64) -> Option<&str> {
        let names = self.head.values.get(list)?;
        names.get(usize::try_from(number).ok()?).map(String::as_str)
    }

    /// All records with their threads, thread by thread.
    pub fn records(&self) -> impl Iterator<Item = (&Thread, &Record)> {
        let of = |thread| std::iter::repeat(thread);
        self.threads.iter().flat_map(move |thread| of(thread).zip(&thread.records))
    }

    /// All records of one event, thread by thread.
    pub fn all(&self, event: Event) -> impl Iterator<Item = (&Thread, &Record)> {
        self.records().filter(move |(_, record)| record.event() == Some(event))
    }
}
