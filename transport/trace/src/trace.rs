//! Traces: the recorded data of a process.

use crate::clock::Calibration;
use crate::event::Event;
use crate::freeze_reason::FreezeReason;
use crate::peers::{Peer, PeerIndex};
use crate::record::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The records of the threads of one process, up to a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Origin of the trace, and the meaning of the numbers in the records.
    pub head: Head,
    /// The threads with records, in the order of their first records.
    pub threads: Vec<Thread>,
}

/// Origin and vocabulary of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Name of the host.
    pub host: String,
    /// Name of the program.
    pub program: String,
    /// Process id.
    pub pid: u32,
    /// Converts the ticks of records into nanoseconds and times of day.
    pub clock: Calibration,
    /// Sampling period: one RPC in `period` was traced; 0 if recording was off when the trace was
    /// read.
    pub period: u32,
    /// Time and reason of the freeze, if the trace was frozen.
    pub frozen: Option<Frozen>,
    /// Peers that records name; the first one has [`PeerIndex`] 1.
    pub peers: Vec<Peer>,
    /// Names of the events by their numbers.
    pub events: BTreeMap<u16, String>,
    /// Names of the numbers of fields with [`crate::event::Unit::Name`], by the list's name.
    pub values: BTreeMap<String, Vec<String>>,
}

/// Time and reason of a freeze.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// Reason of the freeze.
    pub reason: FreezeReason,
    /// Time of the freeze in ticks, which [`Head::clock`] converts.
    pub ticks: u64,
}

/// The records of one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Name of the thread, or its number if it had none.
    pub name: String,
    /// Thread id.
    pub tid: u32,
    /// CPU that the thread last ran on; if it has ended, CPU of its first record.
    pub cpu: u32,
    /// Number of records that were overwritten by newer ones.
    pub overwritten: u64,
    /// Records in the order of their ticks.
    pub records: Vec<Record>,
}

impl Head {
    /// Returns the peer with this index.
    #[must_use]
    pub fn peer(&self, index: PeerIndex) -> Option<&Peer> {
        self.peers.get(usize::from(index.0).checked_sub(1)?)
    }

    /// Returns a file name that no other process of any host uses: `HOST-PID.tt`, or
    /// `HOST-PID-MORE.tt`. Characters that are unusual in file names are replaced.
    #[must_use]
    pub fn file_name(&self, more: Option<&str>) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
        let host: String = self.host.chars().map(plain).collect();
        let more = more.map(|more| format!("-{more}")).unwrap_or_default();
        format!("{host}-{}{more}.tt", self.pid)
    }
}

impl Trace {
    /// Returns the name of a record's event.
    #[must_use]
    pub fn name(&self, record: &Record) -> &str {
        match record.event() {
            Some(event) => event.name(),
            None => self.head.events.get(&record.kind).map_or("unknown", String::as_str),
        }
    }

    /// Returns the name of a number in the list `list`.
    #[must_use]
    pub fn value(&self, list: &str, number: u64) -> Option<&str> {
        let names = self.head.values.get(list)?;
        names.get(usize::try_from(number).ok()?).map(String::as_str)
    }

    /// Returns all records with their threads, thread by thread.
    pub fn records(&self) -> impl Iterator<Item = (&Thread, &Record)> {
        let of = |thread| std::iter::repeat(thread);
        self.threads.iter().flat_map(move |thread| of(thread).zip(&thread.records))
    }

    /// Returns all records of one event, thread by thread.
    pub fn all(&self, event: Event) -> impl Iterator<Item = (&Thread, &Record)> {
        self.records().filter(move |(_, record)| record.event() == Some(event))
    }
}
