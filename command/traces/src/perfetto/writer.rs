//! Writer: converts merged traces to Perfetto events.

use super::nesting::{Edge, Slice, nest};
use super::rows::assign_rows;
use super::schema::{
    CounterDescriptor, DebugAnnotation, ProcessDescriptor, ThreadDescriptor, Trace, TracePacket,
    TrackDescriptor, TrackEvent, Type, Unit,
};
use crate::merge::{MergedTraces, RpcRecord, TimedRecord, TracedRpc};
use crate::report::grants::{self, Grants};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{Event, EventScope};
use prost::Message;
use std::collections::{BTreeSet, HashMap};

/// Id of the only writer of the file: any number but 0.
const SEQUENCE: u32 = 1;

/// Encodes all records as a TrackEvent file.
#[must_use]
pub fn export(merged: &MergedTraces) -> Vec<u8> {
    let mut file = File::default();
    for process in 0..merged.processes.len() {
        file.process(merged, process);
        file.threads(merged, process);
        for side in [Client, Server] {
            file.rpcs(merged, process, side);
        }
    }
    file.levels(merged);
    file.finish().encode_to_vec()
}

/// An event and its time.
struct TimedEvent {
    at: i64,
    event: TrackEvent,
}

#[derive(Default)]
struct File {
    tracks: Vec<TrackDescriptor>,
    events: Vec<TimedEvent>,
    /// The track of each process.
    processes: Vec<u64>,
    /// Process and thread ids in use.
    pids: BTreeSet<i32>,
    tids: BTreeSet<i64>,
}

impl File {
    /// Adds a track and returns its id.
    fn track(&mut self, descriptor: TrackDescriptor) -> u64 {
        let uuid = self.tracks.len() as u64 + 1;
        self.tracks.push(TrackDescriptor { uuid: Some(uuid), ..descriptor });
        uuid
    }

    fn process(&mut self, merged: &MergedTraces, process: usize) {
        let pid = i32::try_from(merged.processes[process].head.pid).unwrap_or(i32::MAX);
        let pid = (0..).map(|step| pid.wrapping_add(step)).find(|pid| self.pids.insert(*pid));
        let head = &merged.processes[process].head;
        let name = format!("{}: {} on {}", merged.process_name(process), head.program, head.host);
        let descriptor = ProcessDescriptor { pid, process_name: Some(name) };
        let track = TrackDescriptor { process: Some(descriptor), ..TrackDescriptor::default() };
        let track = self.track(track);
        self.processes.push(track);
    }

    fn threads(&mut self, merged: &MergedTraces, process: usize) {
        let pid = self.tracks[self.processes[process] as usize - 1].process.as_ref();
        let pid = pid.and_then(|process| process.pid);
        for (place, all) in merged.by_thread().into_iter().enumerate() {
            let thread = &merged.threads[place];
            if thread.process != process {
                continue;
            }
            let tid = i64::from(thread.tid);
            let tid = (0..).map(|step| tid + step).find(|tid| self.tids.insert(*tid));
            let descriptor = ThreadDescriptor { pid, tid, thread_name: Some(thread.name.clone()) };
            let track = TrackDescriptor { thread: Some(descriptor), ..TrackDescriptor::default() };
            let track = self.track(track);
            self.slices(track, operations(merged, &all));
            for entry in all.iter().filter(|entry| !is_operation(entry)) {
                self.instant(track, entry.at, record_event(merged, entry));
            }
        }
    }

    /// Adds slices to a track.
    fn slices(&mut self, track: u64, slices: Vec<Slice<TrackEvent>>) {
        for edge in nest(slices) {
            let (at, event, r#type) = match edge {
                Edge::Begin(at, event) => (at, event, Type::SliceBegin),
                Edge::End(at) => (at, TrackEvent::default(), Type::SliceEnd),
            };
            self.push(track, at, r#type, event);
        }
    }

    fn instant(&mut self, track: u64, at: i64, event: TrackEvent) {
        self.push(track, at, Type::Instant, event);
    }

    fn push(&mut self, track: u64, at: i64, r#type: Type, event: TrackEvent) {
        let event = TrackEvent { r#type: Some(r#type as i32), track_uuid: Some(track), ..event };
        self.events.push(TimedEvent { at, event });
    }

    /// Adds the RPCs of a process at one side, in rows.
    fn rpcs(&mut self, merged: &MergedTraces, process: usize, side: Side) {
        let is_there = |rpc: &&TracedRpc| rpc.process(side, &merged.associations) == Some(process);
        let mut rpcs: Vec<(&TracedRpc, i64, i64)> =
            merged.rpcs.iter().filter(is_there).filter_map(|rpc| stage_span(rpc, side)).collect();
        rpcs.sort_by_key(|(_, from, _)| *from);
        let name = if side == Client { "calls" } else { "served" };
        let mut rows: HashMap<usize, u64> = HashMap::new();
        for (row_index, (rpc, from, until)) in
            assign_rows(rpcs.iter().map(|(_, from, until)| (*from, *until))).into_iter().zip(&rpcs)
        {
            let parent_uuid = Some(self.processes[process]);
            let row = *rows.entry(row_index).or_insert_with(|| {
                let name = Some(format!("{name} {}", row_index + 1));
                self.track(TrackDescriptor { name, parent_uuid, ..TrackDescriptor::default() })
            });
            let whole = Slice { from: *from, until: *until, what: rpc_event(merged, rpc) };
            let mut slices = vec![whole];
            slices.extend(stages(rpc, side));
            self.slices(row, slices);
            if let Some(departure) = rpc.first(side, Event::ToKernel) {
                let flow_ids = vec![flow_id(rpc, side)];
                let event = TrackEvent { flow_ids, ..new_event("to_kernel", "rpc") };
                self.instant(row, departure.at, event);
            }
        }
    }

    /// Adds counters of granted bytes, if there were grants.
    fn levels(&mut self, merged: &MergedTraces) {
        let grants = Grants::of(merged, grants::MIN_GAP);
        for process in 0..merged.processes.len() {
            let name = merged.process_name(process);
            let Some(found) = grants.processes.iter().find(|it| it.name == name) else { continue };
            for (name, level) in [
                ("granted, not received", &found.outstanding),
                ("granted, not sent", &found.available),
            ] {
                if level.curve.is_empty() {
                    continue;
                }
                let counter = CounterDescriptor { unit: Some(Unit::SizeBytes as i32) };
                let track = self.track(TrackDescriptor {
                    name: Some(name.to_owned()),
                    parent_uuid: Some(self.processes[process]),
                    counter: Some(counter),
                    ..TrackDescriptor::default()
                });
                for &(at, bytes) in &level.curve {
                    let counter_value = Some(bytes as i64);
                    let event = TrackEvent { counter_value, ..TrackEvent::default() };
                    self.push(track, at, Type::Counter, event);
                }
            }
        }
    }

    /// Orders the packets: tracks first, then events by time. Events of equal time keep their
    /// order.
    fn finish(mut self) -> Trace {
        self.events.sort_by_key(|event| event.at);
        let zero = self.events.first().map_or(0, |event| event.at);
        let packet =
            || TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..TracePacket::default() };
        let track = |track| TracePacket { track_descriptor: Some(track), ..packet() };
        let event = |TimedEvent { at, event }| TracePacket {
            timestamp: Some(at.abs_diff(zero)),
            track_event: Some(event),
            ..packet()
        };
        let tracks = self.tracks.into_iter().map(track);
        let mut all: Vec<_> = tracks.chain(self.events.into_iter().map(event)).collect();
        if let Some(first) = all.first_mut() {
            first.sequence_flags = Some(TracePacket::BEGINNING);
        }
        Trace { packet: all }
    }
}

/// Returns whether a record describes an operation with a duration.
fn is_operation(entry: &TimedRecord) -> bool {
    let lasting = [Event::Look, Event::Send, Event::Pass, Event::Sleep, Event::Wake];
    entry.record.event().is_some_and(|event| lasting.contains(&event))
}

/// Returns the operations of a thread.
fn operations(merged: &MergedTraces, all: &[TimedRecord]) -> Vec<Slice<TrackEvent>> {
    let (mut slices, mut asleep) = (Vec::new(), None);
    for entry in all {
        match entry.record.event() {
            Some(Event::Look | Event::Send | Event::Pass) => {
                let from = entry.at - merged.operation_time(entry);
                slices.push(Slice { from, until: entry.at, what: record_event(merged, entry) });
            }
            Some(Event::Sleep) => asleep = Some(entry),
            Some(Event::Wake) => slices.extend(asleep.take().map(|from| Slice {
                from: from.at,
                until: entry.at,
                what: record_event(merged, from),
            })),
            _ => {}
        }
    }
    slices
}

/// Creates an event with a name and a category.
fn new_event(name: &str, category: &str) -> TrackEvent {
    TrackEvent {
        name: Some(name.to_owned()),
        categories: vec![category.to_owned()],
        ..TrackEvent::default()
    }
}

fn number(name: &str, value: u64) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        uint_value: Some(value),
        ..DebugAnnotation::default()
    }
}

fn text(name: &str, value: String) -> DebugAnnotation {
    DebugAnnotation {
        name: Some(name.to_owned()),
        string_value: Some(value),
        ..DebugAnnotation::default()
    }
}

/// Converts a record to an event.
fn record_event(merged: &MergedTraces, entry: &TimedRecord) -> TrackEvent {
    let head = &merged.process_of(entry.thread).head;
    let (name, category) = match entry.record.event() {
        Some(event) => (event.name(), category(event.scope())),
        None => (head.events.get(&entry.record.kind).map_or("unknown", String::as_str), "unknown"),
    };
    let mut event = new_event(name, category);
    if let Some(rpc) = entry.record.rpc() {
        event.debug_annotations.push(number("rpc", rpc.id()));
        let peer = head.peer(rpc.peer()).map(|peer| text("peer", peer.address.to_string()));
        event.debug_annotations.extend(peer);
    }
    for (field, value) in entry.record.fields() {
        event.debug_annotations.push(match field.unit {
            apus_trace::event::Unit::Name(list) => {
                text(field.name, merged.value_name(entry, list, value))
            }
            apus_trace::event::Unit::Ticks => number("took_ns", head.clock.nanos(value)),
            _ => number(field.name, value),
        });
    }
    event
}

const fn category(scope: EventScope) -> &'static str {
    match scope {
        EventScope::Stage => "rpc",
        EventScope::Packet => "packet",
        EventScope::Anomaly => "anomaly",
        EventScope::Thread => "thread",
    }
}

/// Returns an RPC with its first and last stage event at one side.
fn stage_span(rpc: &TracedRpc, side: Side) -> Option<(&TracedRpc, i64, i64)> {
    // Acknowledgements that arrive much later do not count.
    let known = |record: &&RpcRecord| record.event.scope() == EventScope::Stage;
    let mut records = rpc.at(side).filter(known);
    let first = records.next()?;
    Some((rpc, first.at, records.next_back().unwrap_or(first).at))
}

fn rpc_event(merged: &MergedTraces, rpc: &TracedRpc) -> TrackEvent {
    let bytes = |side| rpc.length(side).map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
    let [request, response] = [Client, Server].map(bytes);
    let mut event = new_event(&format!("RPC {request} B, {response} B"), "rpc");
    let peer = merged.associations[rpc.association].addresses;
    event.debug_annotations = vec![
        number("rpc", rpc.id),
        text("between", format!("{} and {}", peer.endpoint, peer.address)),
    ];
    event
}

/// Returns the arrow id of the message sent by `sender`. Ids of different clients collide only by
/// chance, and their low bits are free.
fn flow_id(rpc: &TracedRpc, sender: Side) -> u64 {
    let association =
        (rpc.association as u64).rotate_left(40) ^ (rpc.client as u64).rotate_left(56);
    (rpc.id ^ association) | u64::from(sender == Server)
}

/// Returns the stages of one side, each named after the event at its end. The client's wait for the
/// response is `away`.
fn stages(rpc: &TracedRpc, side: Side) -> Vec<Slice<TrackEvent>> {
    let known = |record: &&RpcRecord| record.event.scope() == EventScope::Stage;
    let records: Vec<&RpcRecord> = rpc.at(side).filter(known).collect();
    let mut slices = Vec::new();
    for pair in records.windows(2) {
        let (from, until) = (pair[0], pair[1]);
        let name = match (from.event, until.event) {
            (Event::ToKernel | Event::LocalSent, _) if side == Client => "away",
            (Event::RequestReturned, Event::Reply) => "service",
            (_, event) => event.name(),
        };
        let mut what = new_event(name, "rpc");
        if from.event == Event::FromKernel {
            what.terminating_flow_ids = vec![flow_id(rpc, side.other())];
        }
        slices.push(Slice { from: from.at, until: until.at, what });
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::scenario::{HostClock, Scenario, burst};

    fn export_and_decode(scenario: &Scenario) -> Trace {
        Trace::decode(&export(&scenario.merged())[..]).unwrap()
    }

    /// Creates an RPC, passes, a sleep, and grants.
    fn scenario() -> Scenario {
        let (mut scenario, client, server) = Scenario::pair_with([
            HostClock::default(),
            HostClock { ahead: 9_000_000_000, ppm: 0.0, up: 5_000_000_000 },
        ]);
        let end = scenario.exchange(10_000, [client, server], 2, [100, 50], [1_000; 15]);
        scenario.record_thread(14_000, server, Event::Look, (3, 500));
        scenario.record_thread(15_500, server, Event::Pass, (3, 2_500));
        scenario.record_thread(16_000, server, Event::Sleep, (0, 0));
        scenario.record_thread(end, server, Event::Wake, (0, 0));
        scenario.record_rpc(30_000, server, 4, Event::GrantSent, (0, 5_000));
        scenario.record_rpc(31_000, client, 4, Event::GrantReceived, (0, 5_000));
        scenario.record_rpc(32_000, client, 4, Event::DataSent, burst(0, 5_000));
        scenario.record_rpc(33_000, server, 4, Event::DataReceived, burst(0, 5_000));
        scenario.record_rpc(34_000, client, 4, Event::Dropped, (1, 0));
        scenario
    }

    fn events(trace: &Trace) -> impl Iterator<Item = (u64, &TrackEvent)> {
        trace.packet.iter().filter_map(|it| Some((it.timestamp?, it.track_event.as_ref()?)))
    }

    fn tracks(trace: &Trace) -> impl Iterator<Item = &TrackDescriptor> {
        trace.packet.iter().filter_map(|packet| packet.track_descriptor.as_ref())
    }

    fn track_uuid(trace: &Trace, name: &str) -> u64 {
        let named = |track: &&TrackDescriptor| {
            let thread = track.thread.as_ref().and_then(|it| it.thread_name.as_deref());
            track.name.as_deref() == Some(name) || thread == Some(name)
        };
        tracks(trace).find(named).unwrap().uuid.unwrap()
    }

    #[test]
    fn every_event_is_on_a_track_that_was_described_before() {
        let trace = export_and_decode(&scenario());
        let mut known = BTreeSet::new();
        for packet in &trace.packet {
            assert_eq!(packet.trusted_packet_sequence_id, Some(SEQUENCE));
            if let Some(track) = &packet.track_descriptor {
                assert!(track.parent_uuid.is_none_or(|parent| known.contains(&parent)));
                assert!(known.insert(track.uuid.unwrap()), "numbers are given once");
            }
            if let Some(event) = &packet.track_event {
                assert!(known.contains(&event.track_uuid.unwrap()));
                assert_ne!(event.r#type(), Type::Unspecified);
            }
        }
        assert_eq!(trace.packet[0].sequence_flags, Some(TracePacket::BEGINNING));
        assert_eq!(tracks(&trace).filter(|track| track.process.is_some()).count(), 2);
        assert_eq!(tracks(&trace).filter(|track| track.thread.is_some()).count(), 2);
    }

    #[test]
    fn slices_nest_on_every_track_and_time_never_decreases() {
        let trace = export_and_decode(&scenario());
        let (mut depths, mut last) = (HashMap::<u64, i32>::new(), 0);
        for (at, event) in events(&trace) {
            assert!(at >= last);
            last = at;
            let depth = depths.entry(event.track_uuid.unwrap()).or_default();
            *depth += match event.r#type() {
                Type::SliceBegin => 1,
                Type::SliceEnd => -1,
                _ => 0,
            };
            assert!(*depth >= 0);
        }
        assert!(depths.values().all(|depth| *depth == 0), "{depths:?}");
    }

    #[test]
    fn arrows_lead_from_departure_to_arrival() {
        let trace = export_and_decode(&scenario());
        let (rpcs, served) = (track_uuid(&trace, "calls 1"), track_uuid(&trace, "served 1"));
        let mut begins: HashMap<u64, (u64, u64)> = HashMap::new();
        let mut arrows = Vec::new();
        for (at, event) in events(&trace) {
            for id in &event.flow_ids {
                assert_eq!(begins.insert(*id, (event.track_uuid.unwrap(), at)), None);
            }
            for id in &event.terminating_flow_ids {
                let (from, departure) = begins[id];
                arrows.push((from, event.track_uuid.unwrap(), at - departure));
            }
        }
        // 1000 ns each, since both directions are equal.
        assert_eq!(arrows, [(rpcs, served, 1_000), (served, rpcs, 1_000)]);
    }

    #[test]
    fn a_thread_has_slices_and_instants() {
        let trace = export_and_decode(&scenario());
        let on = |track, kind| {
            let names = events(&trace)
                .filter(move |(_, it)| it.track_uuid == Some(track) && it.r#type() == kind)
                .filter_map(|(_, it)| it.name.clone());
            names.collect::<Vec<_>>()
        };
        let server = tracks(&trace).filter(|track| track.thread.is_some()).nth(1).unwrap();
        let server = server.uuid.unwrap();
        assert_eq!(on(server, Type::SliceBegin), ["pass", "look", "sleep"]);
        assert!(on(server, Type::Instant).contains(&"request_returned".to_owned()));
        let client = track_uuid(&trace, "calls 1");
        let stages = on(client, Type::SliceBegin);
        assert_eq!(stages[..4], ["RPC 100 B, 50 B", "queued", "to_kernel", "away"]);
    }

    #[test]
    fn anomalies_have_reason_and_rpc() {
        let trace = export_and_decode(&scenario());
        let dropped = events(&trace).find(|(_, event)| event.name.as_deref() == Some("dropped"));
        let (_, dropped) = dropped.unwrap();
        assert_eq!(dropped.categories, ["anomaly"]);
        let annotation = |name: &str| {
            dropped.debug_annotations.iter().find(|it| it.name.as_deref() == Some(name)).unwrap()
        };
        assert_eq!(annotation("rpc").uint_value, Some(4));
        assert_eq!(annotation("reason").string_value.as_deref(), Some("no room"));
    }

    #[test]
    fn grants_are_counters() {
        let trace = export_and_decode(&scenario());
        let track = track_uuid(&trace, "granted, not received");
        let values: Vec<i64> = events(&trace)
            .filter(|(_, event)| event.track_uuid == Some(track))
            .map(|(_, event)| event.counter_value.unwrap())
            .collect();
        assert_eq!(values.iter().max(), Some(&5_000));
        assert_eq!((values.first(), values.last()), (Some(&0), Some(&0)));
    }

    #[test]
    fn processes_with_equal_ids_are_distinct() {
        let mut traces = Vec::new();
        for (name, up) in [("a", 0), ("b", 3_000_000_000)] {
            let mut scenario = Scenario::default();
            let clock = HostClock { up, ..HostClock::default() };
            let process = scenario.process(name, clock, ["10.0.0.1:1", "10.0.0.2:2"]);
            let thread = scenario.thread(process, "main");
            scenario.record_thread(0, thread, Event::Look, (1, 0));
            traces.push((name.to_owned(), scenario.trace(0)));
        }
        let trace = Trace::decode(&export(&MergedTraces::of(traces).unwrap())[..]).unwrap();
        let pids: BTreeSet<_> =
            tracks(&trace).filter_map(|track| track.process.as_ref()?.pid).collect();
        let tids: BTreeSet<_> =
            tracks(&trace).filter_map(|track| track.thread.as_ref()?.tid).collect();
        assert_eq!((pids.len(), tids.len()), (2, 2));
    }
}
