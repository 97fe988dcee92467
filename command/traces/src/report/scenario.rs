//! Synthetic traces with known results, for tests.
//!
//! A [`Scenario`] is defined in true time, in nanoseconds. Each host records it with its own clock,
//! whose offset and rate the test chooses.

use crate::merge::MergedTraces;
use apus_trace::clock::{Calibration, ClockReading, ClockSource};
use apus_trace::event::{DataFields, Event};
use apus_trace::{Head, Peer, PeerIndex, Record, Rpc, Side, Thread, Trace};
use std::collections::BTreeMap;

/// A date in 2023, in nanoseconds since 1970.
const WALL: i64 = 1_700_000_000_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// Events in several processes.
#[derive(Clone, Default)]
pub(crate) struct Scenario {
    processes: Vec<ScenarioProcess>,
}

#[derive(Clone)]
struct ScenarioProcess {
    clock: HostClock,
    trace: Trace,
}

/// Clock of a host.
#[derive(Clone, Copy, Default)]
pub(crate) struct HostClock {
    /// Offset of its wall clock in nanoseconds.
    pub(crate) ahead: i64,
    /// Rate error in ppm; positive if the clock is fast.
    pub(crate) ppm: f64,
    /// Uptime of the host at true time 0, in nanoseconds beyond two seconds.
    pub(crate) up: i64,
}

impl HostClock {
    fn point(self, at: i64) -> ClockReading {
        let monotonic = 2 * SECOND + self.up + at + (at as f64 * self.ppm * 1e-6) as i64;
        let realtime = (WALL + self.ahead + monotonic - self.up) as u64;
        ClockReading { ticks: monotonic as u64, monotonic: monotonic as u64, realtime }
    }
}

/// Index of the process, and of the thread within it.
pub(crate) type ThreadId = (usize, usize);

impl Scenario {
    /// Creates a client and a server with one thread each, on one host.
    pub(crate) fn pair() -> (Self, ThreadId, ThreadId) {
        Self::pair_with([HostClock::default(); 2])
    }

    /// Creates a client and a server with one thread each, on hosts with these clocks.
    pub(crate) fn pair_with(clocks: [HostClock; 2]) -> (Self, ThreadId, ThreadId) {
        let mut scenario = Self::default();
        let client = scenario.process("client", clocks[0], ["10.0.0.1:999", "10.0.0.2:4000"]);
        let server = scenario.process("server", clocks[1], ["0.0.0.0:4000", "10.0.0.1:999"]);
        let threads = [client, server].map(|process| scenario.thread(process, "main"));
        (scenario, threads[0], threads[1])
    }

    /// Adds a process with one peer.
    pub(crate) fn process(&mut self, program: &str, clock: HostClock, peer: [&str; 2]) -> usize {
        let [endpoint, address] = peer.map(|text| text.parse().unwrap());
        let names = |events: &[Event]| {
            events.iter().map(|event| (*event as u16, event.name().to_owned())).collect()
        };
        let lists: [(&str, &[&str]); 2] =
            [("drop_reason", &["unknown rpc", "no room"]), ("sleep", &["network", "waiter"])];
        let list = |(name, values): (&str, &[&str])| {
            (name.to_owned(), values.iter().map(|value| (*value).to_owned()).collect())
        };
        let head = Head {
            host: format!("host of {program}"),
            program: program.to_owned(),
            pid: 100 + self.processes.len() as u32,
            clock: Calibration {
                source: ClockSource::Monotonic,
                start: clock.point(-SECOND),
                end: clock.point(20 * SECOND),
            },
            period: 1,
            frozen: None,
            peers: vec![Peer { endpoint, address }],
            events: names(Event::ALL),
            values: BTreeMap::from(lists.map(list)),
        };
        self.processes.push(ScenarioProcess { clock, trace: Trace { head, threads: Vec::new() } });
        self.processes.len() - 1
    }

    /// Adds a thread.
    pub(crate) fn thread(&mut self, process: usize, name: &str) -> ThreadId {
        let threads = &mut self.processes[process].trace.threads;
        let tid = 1_000 + threads.len() as u32;
        let (name, records) = (name.to_owned(), Vec::new());
        threads.push(Thread { name, tid, cpu: 0, overwritten: 0, records });
        (process, threads.len() - 1)
    }

    /// Records a thread event.
    pub(crate) fn record_thread(
        &mut self,
        at: i64,
        (process, thread): ThreadId,
        event: Event,
        numbers: (u32, u64),
    ) {
        let ScenarioProcess { clock, trace } = &mut self.processes[process];
        let ticks = clock.point(at).ticks;
        let record = Record::of_thread(ticks, event, numbers.0, numbers.1);
        trace.threads[thread].records.push(record);
    }

    /// Records an event of an RPC between the client (process 0) and the server.
    pub(crate) fn record_rpc(
        &mut self,
        at: i64,
        (process, thread): ThreadId,
        id: u64,
        event: Event,
        numbers: (u32, u64),
    ) {
        let ScenarioProcess { clock, trace } = &mut self.processes[process];
        let side = if process == 0 { Side::Client } else { Side::Server };
        let rpc = Rpc::new(id, side, PeerIndex(1));
        let ticks = clock.point(at).ticks;
        let record = Record::of_rpc(ticks, rpc, event, numbers.0, numbers.1);
        trace.threads[thread].records.push(record);
    }

    /// Records an RPC of two short messages whose 15 stages have these durations. Returns its end.
    pub(crate) fn exchange(
        &mut self,
        at: i64,
        [client, server]: [ThreadId; 2],
        id: u64,
        lengths: [u64; 2],
        times: [i64; 15],
    ) -> i64 {
        use Event::{
            Call, FromKernel, HandedOff, Parsed, Queued, Reply, RequestReturned, Returned,
            ToKernel, Woken,
        };
        let [request, response] = lengths;
        let told = (0, 7);
        let points = [
            (client, Queued, (0, request)),
            (client, ToKernel, (1, 0)),
            (server, FromKernel, (1, 0)),
            (server, Parsed, (0, request)),
            (server, HandedOff, told),
            (server, Woken, told),
            (server, RequestReturned, (0, request)),
            (server, Reply, (0, response)),
            (server, Queued, (0, response)),
            (server, ToKernel, (1, 0)),
            (client, FromKernel, (1, 0)),
            (client, Parsed, (0, response)),
            (client, HandedOff, told),
            (client, Woken, told),
            (client, Returned, (0, response)),
        ];
        self.record_rpc(at, client, id, Call, (0, request));
        let mut now = at;
        for ((thread, event, numbers), took) in points.into_iter().zip(times) {
            now += took;
            self.record_rpc(now, thread, id, event, numbers);
        }
        now
    }

    /// Returns the trace of a process, as stored in its file.
    pub(crate) fn trace(&self, process: usize) -> Trace {
        let mut trace = self.processes[process].trace.clone();
        for thread in &mut trace.threads {
            thread.records.sort_by_key(|record| record.ticks);
        }
        trace
    }

    /// Returns the merged traces.
    pub(crate) fn merged(&self) -> MergedTraces {
        let processes = 0..self.processes.len();
        let traces = processes.map(|process| (format!("{process}.tt"), self.trace(process)));
        MergedTraces::of(traces.collect()).unwrap()
    }
}

/// Returns the numbers of a burst of one packet.
pub(crate) const fn burst(offset: u32, length: u32) -> (u32, u64) {
    DataFields { length, offset, packets: 1, priority: 0, retransmitted: false }.to_numbers()
}

/// Returns the numbers of a retransmitted burst of one packet.
pub(crate) const fn again(offset: u32, length: u32) -> (u32, u64) {
    DataFields { length, offset, packets: 1, priority: 0, retransmitted: true }.to_numbers()
}
