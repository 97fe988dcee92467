//! File operations: their path from the client's kernel through the server and back.
//!
//! An operation is recorded by the mount (`fs_operation`, `fs_reply`, with the same id). Calls that
//! the mount made in between (`fs_call`, `fs_response`) belong to it, including calls that other
//! operations wait for. A call is joined to the server's first request of the same kind in that
//! time (`fs_request`, `fs_respond`), and to the commits in between (`fs_commit`). If all RPCs are
//! traced, the call's RPC is the next RPC started by the mount's thread, and its stages are
//! stations as well.
//!
//! An operation that returned before its changes were sent has no calls: this is the normal case
//! for `write`, whose calls belong to the later `sync`.

use super::distribution::Distribution;
use crate::merge::{MergedTraces, TimedRecord};
use apus_trace::event::{Event, EventScope, Unit};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};

/// Report on file operations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileOperations {
    /// Operations by kind, the most frequent first.
    pub kinds: Vec<OperationCount>,
    /// All operations, the longest first.
    pub operations: Vec<FileOperation>,
    /// Operations without a reply in the traces.
    pub incomplete: usize,
}

/// Operations of one kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationCount {
    /// The kind.
    pub kind: String,
    /// Calls made during these operations.
    pub calls: usize,
    /// From the kernel's request to the reply.
    pub times: Distribution,
}

/// One operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileOperation {
    /// Request number assigned by the kernel.
    pub id: u64,
    /// Its kind.
    pub kind: String,
    /// Error number; 0 on success.
    pub error: u64,
    /// Nanoseconds from the kernel's request to the reply.
    #[serde(rename = "took_ns")]
    pub took: i64,
    /// Stations passed, earliest first.
    pub stations: Vec<Station>,
}

/// A point on the path of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Station {
    /// Nanoseconds since the kernel's request.
    #[serde(rename = "at_ns")]
    pub at: i64,
    /// Name of the process.
    pub process: String,
    /// Name of the event.
    pub event: &'static str,
    /// Content of the record, in words.
    pub detail: String,
}

impl FileOperations {
    /// Builds the report.
    #[must_use]
    pub fn of(merged: &MergedTraces) -> Self {
        let mut search = Search::of(merged);
        let (mut operations, mut incomplete) = (Vec::new(), 0);
        let mut kinds: BTreeMap<String, (usize, Vec<i64>)> = BTreeMap::new();
        for begin in merged.all(Event::FsOperation) {
            let Some(operation) = search.operation(begin) else {
                incomplete += 1;
                continue;
            };
            let calls = operation.stations.iter().filter(|one| one.event == Event::FsCall.name());
            let kind = kinds.entry(operation.kind.clone()).or_default();
            kind.0 += calls.count();
            kind.1.push(operation.took);
            operations.push(operation);
        }
        operations.sort_by_key(|operation| std::cmp::Reverse(operation.took));
        let count = |(kind, (calls, times)): (String, (usize, Vec<i64>))| OperationCount {
            kind,
            calls,
            times: times.into_iter().collect(),
        };
        let mut kinds: Vec<_> = kinds.into_iter().map(count).collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.times.count()));
        Self { kinds, operations, incomplete }
    }
}

/// Finds the records that belong to one operation.
struct Search<'a> {
    merged: &'a MergedTraces,
    /// Records of the file service, the earliest first.
    records: Vec<&'a TimedRecord>,
    /// Requests and RPCs already assigned to a call.
    taken: HashSet<(usize, u64)>,
    begun: HashSet<usize>,
}

impl<'a> Search<'a> {
    fn of(merged: &'a MergedTraces) -> Self {
        let is_station = |entry: &&TimedRecord| {
            entry.record.event().is_some_and(|event| event.name().starts_with("fs_"))
        };
        let records = merged.records.iter().filter(is_station).collect();
        Self { merged, records, taken: HashSet::new(), begun: HashSet::new() }
    }

    /// Returns the records of an event from `from` to `until`.
    fn between(
        &self,
        event: Event,
        from: i64,
        until: i64,
    ) -> impl Iterator<Item = &'a TimedRecord> + use<'a> {
        let first = self.records.partition_point(|entry| entry.at < from);
        let records: Vec<_> =
            self.records[first..].iter().take_while(|entry| entry.at <= until).copied().collect();
        records.into_iter().filter(move |entry| entry.record.event() == Some(event))
    }

    /// Returns the first record of the same thread and number, not before `begin`.
    fn end(&self, event: Event, begin: &TimedRecord) -> Option<&'a TimedRecord> {
        self.between(event, begin.at, i64::MAX)
            .find(|entry| entry.thread == begin.thread && entry.record.b == begin.record.b)
    }

    fn operation(&mut self, begin: &TimedRecord) -> Option<FileOperation> {
        let reply = self.end(Event::FsReply, begin)?;
        let mut found = vec![self.station(begin), self.station(reply)];
        let calls = self.between(Event::FsCall, begin.at, reply.at);
        for call in calls.filter(|call| call.thread == begin.thread) {
            self.add_call(call, &mut found);
        }
        found.sort_by_key(|station| station.at);
        found.iter_mut().for_each(|station| station.at -= begin.at);
        Some(FileOperation {
            id: begin.record.b,
            kind: self.merged.value_name(begin, "fs_operation", begin.record.a.into()),
            error: reply.record.a.into(),
            took: reply.at - begin.at,
            stations: found,
        })
    }

    fn add_call(&mut self, call: &TimedRecord, found: &mut Vec<Station>) {
        found.push(self.station(call));
        let response = self.end(Event::FsResponse, call);
        found.extend(response.map(|response| self.station(response)));
        let until = response.map_or(i64::MAX, |response| response.at);
        self.add_rpc(call, found);
        let own = self.merged.threads[call.thread].process;
        let mut requests = self.between(Event::FsRequest, call.at, until);
        let request = requests.find(|request| {
            self.merged.threads[request.thread].process != own
                && request.record.a == call.record.a
                && !self.taken.contains(&(request.thread, request.record.b))
        });
        let Some(request) = request else { return };
        self.taken.insert((request.thread, request.record.b));
        found.push(self.station(request));
        let Some(respond) = self.end(Event::FsRespond, request) else { return };
        found.push(self.station(respond));
        let commits = self.between(Event::FsCommit, request.at, respond.at);
        let commits = commits.filter(|commit| commit.thread == request.thread);
        found.extend(commits.map(|commit| self.station(commit)));
    }

    /// Adds the stages of the call's RPC.
    fn add_rpc(&mut self, call: &TimedRecord, found: &mut Vec<Station>) {
        if !self.merged.traces_all() {
            return;
        }
        let begins = |rpc: &crate::merge::TracedRpc| {
            rpc.records.iter().any(|record| {
                record.event == Event::Call && record.thread == call.thread && record.at >= call.at
            })
        };
        let mut rpcs = self.merged.rpcs.iter().enumerate();
        let rpc = rpcs.find(|(number, rpc)| !self.begun.contains(number) && begins(rpc));
        let Some((number, rpc)) = rpc else { return };
        self.begun.insert(number);
        let stages = rpc.records.iter().filter(|record| record.event.scope() == EventScope::Stage);
        found.extend(stages.map(|record| Station {
            at: record.at,
            process: self.merged.process_name(self.merged.threads[record.thread].process),
            event: record.event.name(),
            detail: format!("RPC {}", rpc.id),
        }));
    }

    fn station(&self, entry: &TimedRecord) -> Station {
        let detail = |(field, value): (&apus_trace::event::Field, u64)| match field.unit {
            Unit::Name(list) => self.merged.value_name(entry, list, value),
            Unit::Ticks => {
                format!("{} {:.1} us", field.name, self.merged.operation_time(entry) as f64 / 1e3)
            }
            _ => format!("{} {value}", field.name),
        };
        let details: Vec<String> = entry.record.fields().map(detail).collect();
        Station {
            at: entry.at,
            process: self.merged.process_name(self.merged.threads[entry.thread].process),
            event: entry.record.event().map_or("", Event::name),
            detail: details.join(", "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::scenario::Scenario;

    #[test]
    fn an_operation_is_followed_to_the_server_and_back() {
        let (mut scenario, mount, server) = Scenario::pair();
        scenario.record_thread(100, mount, Event::FsOperation, (16, 8));
        scenario.record_thread(200, mount, Event::FsCall, (7, 3));
        // Of another client.
        scenario.record_thread(250, server, Event::FsRequest, (6, 40));
        scenario.record_thread(300, server, Event::FsRequest, (7, 41));
        scenario.record_thread(500, server, Event::FsCommit, (1, 150));
        scenario.record_thread(600, server, Event::FsRespond, (0, 41));
        scenario.record_thread(700, mount, Event::FsResponse, (0, 3));
        scenario.record_thread(800, mount, Event::FsReply, (5, 8));
        // An operation without a reply in the trace.
        scenario.record_thread(900, mount, Event::FsOperation, (12, 10));
        let report = FileOperations::of(&scenario.merged());
        assert_eq!(report.incomplete, 1);
        let [operation] = &report.operations[..] else { panic!("{report:?}") };
        assert_eq!((operation.id, operation.error, operation.took), (8, 5, 700));
        let stations: Vec<_> =
            operation.stations.iter().map(|station| (station.at, station.event)).collect();
        let expected = [
            (0, "fs_operation"),
            (100, "fs_call"),
            (200, "fs_request"),
            (400, "fs_commit"),
            (500, "fs_respond"),
            (600, "fs_response"),
            (700, "fs_reply"),
        ];
        assert_eq!(stations, expected);
        assert_eq!((report.kinds[0].calls, report.kinds[0].times.count()), (1, 1));
    }
}
