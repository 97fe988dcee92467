//! Which events does the file have?

use super::lanes::lanes;
use super::nesting::{Edge, Slice, nest};
use super::schema::{
    CounterDescriptor, DebugAnnotation, ProcessDescriptor, ThreadDescriptor, Trace, TracePacket,
    TrackDescriptor, TrackEvent, Type, Unit,
};
use crate::merge::{Call, Mark, Merged, Stamped};
use crate::report::grants::{self, Grants};
use apus_trace::Side::{self, Client, Server};
use apus_trace::event::{Event, EventScope};
use prost::Message;
use std::collections::{BTreeSet, HashMap};

/// We write all packets: any number but 0.
const SEQUENCE: u32 = 1;

/// A TrackEvent file of all that was recorded.
#[must_use]
pub fn export(merged: &Merged) -> Vec<u8> {
    let mut file = File::default();
    for process in 0..merged.processes.len() {
        file.process(merged, process);
        file.threads(merged, process);
        for side in [Client, Server] {
            file.calls(merged, process, side);
        }
    }
    file.levels(merged);
    file.finish().encode_to_vec()
}

/// What is on a track at a time.
struct Happening {
    at: i64,
    event: TrackEvent,
}

#[derive(Default)]
struct File {
    tracks: Vec<TrackDescriptor>,
    happenings: Vec<Happening>,
    /// The track of each process.
    processes: Vec<u64>,
    /// The numbers of processes and threads that have been given.
    pids: BTreeSet<i32>,
    tids: BTreeSet<i64>,
}

impl File {
    /// Another track, with its number.
    fn track(&mut self, descriptor: TrackDescriptor) -> u64 {
        let uuid = self.tracks.len() as u64 + 1;
        self.tracks.push(TrackDescriptor { uuid: Some(uuid), ..descriptor });
        uuid
    }

    fn process(&mut self, merged: &Merged, process: usize) {
        let pid = i32::try_from(merged.processes[process].head.pid).unwrap_or(i32::MAX);
        let pid = (0..).map(|more| pid.wrapping_add(more)).find(|pid| self.pids.insert(*pid));
        let head = &merged.processes[process].head;
        let name = format!("{}: {} on {}", merged.process_name(process), head.program, head.host);
        let descriptor = ProcessDescriptor { pid, process_name: Some(name) };
        let track = TrackDescriptor { process: Some(descriptor), ..TrackDescriptor::default() };
        let track = self.track(track);
        self.processes.push(track);
    }

    fn threads(&mut self, merged: &Merged, process: usize) {
        let pid = self.tracks[self.processes[process] as usize - 1].process.as_ref();
        let pid = pid.and_then(|process| process.pid);
        for (place, all) in merged.by_thread().into_iter().enumerate() {
            let thread = &merged.threads[place];
            if thread.process != process {
                continue;
            }
            let tid = i64::from(thread.tid);
            let tid = (0..).map(|more| tid + more).find(|tid| self.tids.insert(*tid));
            let descriptor = ThreadDescriptor { pid, tid, thread_name: Some(thread.name.clone()) };
            let track = TrackDescriptor { thread: Some(descriptor), ..TrackDescriptor::default() };
            let track = self.track(track);
            self.slices(track, what_lasts(merged, &all));
            for stamped in all.iter().filter(|stamped| !lasts(stamped)) {
                self.instant(track, stamped.at, moment(merged, stamped));
            }
        }
    }

    /// What lasts, on a track.
    fn slices(&mut self, track: u64, slices: Vec<Slice<TrackEvent>>) {
        for edge in nest(slices) {
            let (at, event, r#type) = match edge {
                Edge::Begin(at, event) => (at, event, Type::SliceBegin),
                Edge::End(at) => (at, TrackEvent::default(), Type::SliceEnd),
            };
            self.happens(track, at, r#type, event);
        }
    }

    fn instant(&mut self, track: u64, at: i64, event: TrackEvent) {
        self.happens(track, at, Type::Instant, event);
    }

    fn happens(&mut self, track: u64, at: i64, r#type: Type, event: TrackEvent) {
        let event = TrackEvent { r#type: Some(r#type as i32), track_uuid: Some(track), ..event };
        self.happenings.push(Happening { at, event });
    }

    /// The RPCs in which a process is at that side, in rows.
    fn calls(&mut self, merged: &Merged, process: usize, side: Side) {
        let is_there = |call: &&Call| call.process(side, &merged.ways) == Some(process);
        let mut calls: Vec<(&Call, i64, i64)> =
            merged.calls.iter().filter(is_there).filter_map(|call| life(call, side)).collect();
        calls.sort_by_key(|(_, from, _)| *from);
        let name = if side == Client { "calls" } else { "served" };
        let mut rows: HashMap<usize, u64> = HashMap::new();
        for (lane, (call, from, until)) in
            lanes(calls.iter().map(|(_, from, until)| (*from, *until))).into_iter().zip(&calls)
        {
            let parent_uuid = Some(self.processes[process]);
            let row = *rows.entry(lane).or_insert_with(|| {
                let name = Some(format!("{name} {}", lane + 1));
                self.track(TrackDescriptor { name, parent_uuid, ..TrackDescriptor::default() })
            });
            let whole = Slice { from: *from, until: *until, what: rpc(merged, call) };
            let mut slices = vec![whole];
            slices.extend(stages(call, side));
            self.slices(row, slices);
            if let Some(left) = call.first(side, Event::ToKernel) {
                let flow_ids = vec![flow(call, side)];
                let event = TrackEvent { flow_ids, ..named("to_kernel", "rpc") };
                self.instant(row, left.at, event);
            }
        }
    }

    /// What is granted, if anything is.
    fn levels(&mut self, merged: &Merged) {
        let grants = Grants::of(merged, grants::LEAST_GAP);
        for process in 0..merged.processes.len() {
            let name = merged.process_name(process);
            let Some(found) = grants.processes.iter().find(|it| it.name == name) else { continue };
            for (name, level) in [
                ("granted, and not come", &found.outstanding),
                ("granted, and not sent", &found.available),
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
                    self.happens(track, at, Type::Counter, event);
                }
            }
        }
    }

    /// Tracks first, then what happens, the earliest first; of one track and time in the order in which it was added.
    fn finish(mut self) -> Trace {
        self.happenings.sort_by_key(|happening| happening.at);
        let zero = self.happenings.first().map_or(0, |happening| happening.at);
        let packet =
            || TracePacket { trusted_packet_sequence_id: Some(SEQUENCE), ..TracePacket::default() };
        let track = |track| TracePacket { track_descriptor: Some(track), ..packet() };
        let event = |Happening { at, event }| TracePacket {
            timestamp: Some(at.abs_diff(zero)),
            track_event: Some(event),
            ..packet()
        };
        let tracks = self.tracks.into_iter().map(track);
        let mut all: Vec<_> = tracks.chain(self.happenings.into_iter().map(event)).collect();
        if let Some(first) = all.first_mut() {
            first.sequence_flags = Some(TracePacket::BEGINNING);
        }
        Trace { packet: all }
    }
}

/// Whether a record says for how long something was going on.
fn lasts(stamped: &Stamped) -> bool {
    let lasting = [Event::Look, Event::Send, Event::Pass, Event::Sleep, Event::Wake];
    stamped.record.event().is_some_and(|event| lasting.contains(&event))
}

/// What a thread did for some time.
fn what_lasts(merged: &Merged, all: &[Stamped]) -> Vec<Slice<TrackEvent>> {
    let (mut slices, mut asleep) = (Vec::new(), None);
    for stamped in all {
        match stamped.record.event() {
            Some(Event::Look | Event::Send | Event::Pass) => {
                let from = stamped.at - merged.took(stamped);
                slices.push(Slice { from, until: stamped.at, what: moment(merged, stamped) });
            }
            Some(Event::Sleep) => asleep = Some(stamped),
            Some(Event::Wake) => slices.extend(asleep.take().map(|from| Slice {
                from: from.at,
                until: stamped.at,
                what: moment(merged, from),
            })),
            _ => {}
        }
    }
    slices
}

/// An event of that name and category.
fn named(name: &str, category: &str) -> TrackEvent {
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

/// What a record says.
fn moment(merged: &Merged, stamped: &Stamped) -> TrackEvent {
    let head = &merged.process_of(stamped.thread).head;
    let (name, category) = match stamped.record.event() {
        Some(event) => (event.name(), category(event.scope())),
        None => {
            (head.events.get(&stamped.record.kind).map_or("unknown", String::as_str), "unknown")
        }
    };
    let mut event = named(name, category);
    if let Some(rpc) = stamped.record.rpc() {
        event.debug_annotations.push(number("rpc", rpc.id()));
        let peer = head.peer(rpc.peer()).map(|peer| text("peer", peer.address.to_string()));
        event.debug_annotations.extend(peer);
    }
    for (field, value) in stamped.record.fields() {
        event.debug_annotations.push(match field.unit {
            apus_trace::event::Unit::Name(list) => {
                text(field.name, merged.value_name(stamped, list, value))
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

/// An RPC, and from when until when it was known at one side.
fn life(call: &Call, side: Side) -> Option<(&Call, i64, i64)> {
    // Acknowledgements that come much later are not its life.
    let known = |mark: &&Mark| mark.event.scope() == EventScope::Stage;
    let mut marks = call.at(side).filter(known);
    let first = marks.next()?;
    Some((call, first.at, marks.next_back().unwrap_or(first).at))
}

fn rpc(merged: &Merged, call: &Call) -> TrackEvent {
    let bytes = |side| call.length(side).map_or_else(|| "?".to_owned(), |bytes| bytes.to_string());
    let [request, response] = [Client, Server].map(bytes);
    let mut event = named(&format!("RPC {request} B, {response} B"), "rpc");
    let peer = merged.ways[call.way].addresses;
    event.debug_annotations = vec![
        number("rpc", call.id),
        text("between", format!("{} and {}", peer.endpoint, peer.address)),
    ];
    event
}

/// The arrow of the message that `sender` sends. Ids of different clients do not meet but by chance, nor do their low
/// bits mean anything else.
fn flow(call: &Call, sender: Side) -> u64 {
    let way = (call.way as u64).rotate_left(40) ^ (call.client as u64).rotate_left(56);
    (call.id ^ way) | u64::from(sender == Server)
}

/// What is done between the points of a side, each named after the event that ends it; but what is away is away.
fn stages(call: &Call, side: Side) -> Vec<Slice<TrackEvent>> {
    let known = |mark: &&Mark| mark.event.scope() == EventScope::Stage;
    let marks: Vec<&Mark> = call.at(side).filter(known).collect();
    let mut slices = Vec::new();
    for pair in marks.windows(2) {
        let (from, until) = (pair[0], pair[1]);
        let name = match (from.event, until.event) {
            (Event::ToKernel | Event::LocalSent, _) if side == Client => "away",
            (Event::RequestReturned, Event::Reply) => "service",
            (_, event) => event.name(),
        };
        let mut what = named(name, "rpc");
        if from.event == Event::FromKernel {
            what.terminating_flow_ids = vec![flow(call, side.other())];
        }
        slices.push(Slice { from: from.at, until: until.at, what });
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::scenario::{HostClock, Scenario, burst};

    fn decoded(scenario: &Scenario) -> Trace {
        Trace::decode(&export(&scenario.merged())[..]).unwrap()
    }

    /// An RPC, passes, a sleep, and grants.
    fn scenario() -> Scenario {
        let (mut scenario, client, server) = Scenario::pair_with([
            HostClock::default(),
            HostClock { ahead: 9_000_000_000, ppm: 0.0, up: 5_000_000_000 },
        ]);
        let end = scenario.exchange(10_000, [client, server], 2, [100, 50], [1_000; 15]);
        scenario.note(14_000, server, Event::Look, (3, 500));
        scenario.note(15_500, server, Event::Pass, (3, 2_500));
        scenario.note(16_000, server, Event::Sleep, (0, 0));
        scenario.note(end, server, Event::Wake, (0, 0));
        scenario.mark(30_000, server, 4, Event::GrantSent, (0, 5_000));
        scenario.mark(31_000, client, 4, Event::GrantReceived, (0, 5_000));
        scenario.mark(32_000, client, 4, Event::DataSent, burst(0, 5_000));
        scenario.mark(33_000, server, 4, Event::DataReceived, burst(0, 5_000));
        scenario.mark(34_000, client, 4, Event::Dropped, (1, 0));
        scenario
    }

    fn events(trace: &Trace) -> impl Iterator<Item = (u64, &TrackEvent)> {
        trace.packet.iter().filter_map(|it| Some((it.timestamp?, it.track_event.as_ref()?)))
    }

    fn tracks(trace: &Trace) -> impl Iterator<Item = &TrackDescriptor> {
        trace.packet.iter().filter_map(|packet| packet.track_descriptor.as_ref())
    }

    fn the_track(trace: &Trace, name: &str) -> u64 {
        let named = |track: &&TrackDescriptor| {
            let thread = track.thread.as_ref().and_then(|it| it.thread_name.as_deref());
            track.name.as_deref() == Some(name) || thread == Some(name)
        };
        tracks(trace).find(named).unwrap().uuid.unwrap()
    }

    #[test]
    fn every_event_is_on_a_track_that_was_described_before() {
        let trace = decoded(&scenario());
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
    fn slices_nest_on_every_track_and_time_goes_on() {
        let trace = decoded(&scenario());
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
    fn arrows_lead_from_where_a_message_left_to_where_it_came() {
        let trace = decoded(&scenario());
        let (calls, served) = (the_track(&trace, "calls 1"), the_track(&trace, "served 1"));
        let mut begins: HashMap<u64, (u64, u64)> = HashMap::new();
        let mut arrows = Vec::new();
        for (at, event) in events(&trace) {
            for id in &event.flow_ids {
                assert_eq!(begins.insert(*id, (event.track_uuid.unwrap(), at)), None);
            }
            for id in &event.terminating_flow_ids {
                let (from, left) = begins[id];
                arrows.push((from, event.track_uuid.unwrap(), at - left));
            }
        }
        // Of 1000 ns each, as both ways are the same.
        assert_eq!(arrows, [(calls, served, 1_000), (served, calls, 1_000)]);
    }

    #[test]
    fn a_thread_shows_what_lasts_and_what_happens() {
        let trace = decoded(&scenario());
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
        let client = the_track(&trace, "calls 1");
        let stages = on(client, Type::SliceBegin);
        assert_eq!(stages[..4], ["RPC 100 B, 50 B", "queued", "to_kernel", "away"]);
    }

    #[test]
    fn what_is_rare_says_why_and_for_which_rpc() {
        let trace = decoded(&scenario());
        let dropped = events(&trace).find(|(_, event)| event.name.as_deref() == Some("dropped"));
        let (_, dropped) = dropped.unwrap();
        assert_eq!(dropped.categories, ["anomaly"]);
        let said = |name: &str| {
            dropped.debug_annotations.iter().find(|it| it.name.as_deref() == Some(name)).unwrap()
        };
        assert_eq!(said("rpc").uint_value, Some(4));
        assert_eq!(said("reason").string_value.as_deref(), Some("no room"));
    }

    #[test]
    fn grants_are_counters() {
        let trace = decoded(&scenario());
        let track = the_track(&trace, "granted, and not come");
        let values: Vec<i64> = events(&trace)
            .filter(|(_, event)| event.track_uuid == Some(track))
            .map(|(_, event)| event.counter_value.unwrap())
            .collect();
        assert_eq!(values.iter().max(), Some(&5_000));
        assert_eq!((values.first(), values.last()), (Some(&0), Some(&0)));
    }

    #[test]
    fn processes_of_the_same_number_are_told_apart() {
        let mut traces = Vec::new();
        for (name, up) in [("a", 0), ("b", 3_000_000_000)] {
            let mut scenario = Scenario::default();
            let clock = HostClock { up, ..HostClock::default() };
            let process = scenario.process(name, clock, ["10.0.0.1:1", "10.0.0.2:2"]);
            let thread = scenario.thread(process, "main");
            scenario.note(0, thread, Event::Look, (1, 0));
            traces.push((name.to_owned(), scenario.trace(0)));
        }
        let trace = Trace::decode(&export(&Merged::of(traces).unwrap())[..]).unwrap();
        let pids: BTreeSet<_> =
            tracks(&trace).filter_map(|track| track.process.as_ref()?.pid).collect();
        let tids: BTreeSet<_> =
            tracks(&trace).filter_map(|track| track.thread.as_ref()?.tid).collect();
        assert_eq!((pids.len(), tids.len()), (2, 2));
    }
}
