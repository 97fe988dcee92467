//! Which traces have known answers?
//!
//! A [`Scenario`] is written down in true time, in nanoseconds; each host sees it by a clock of its own, which is ahead
//! and runs too fast as the test likes.

use crate::merge::Merged;
use apus_trace::clock::{Calibration, ClockReading, ClockSource};
use apus_trace::event::{DataFields, Event};
use apus_trace::{Head, Peer, PeerIndex, Record, Rpc, Side, Thread, Trace};
use std::collections::BTreeMap;

/// 2023, in nanoseconds since 1970.
const WALL: i64 = 1_700_000_000_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// What happened, in several processes.
#[derive(Clone, Default)]
pub(crate) struct Scenario {
    processes: Vec<Known>,
}

#[derive(Clone)]
struct Known {
    clock: HostClock,
    trace: Trace,
}

/// The clock of a host.
#[derive(Clone, Copy, Default)]
pub(crate) struct HostClock {
    /// How far its wall clock is ahead, in nanoseconds.
    pub(crate) ahead: i64,
    /// How much too fast it is, in millionths.
    pub(crate) ppm: f64,
    /// How long the host has been up at true time 0, in nanoseconds beyond two seconds.
    pub(crate) up: i64,
}

impl HostClock {
    fn point(self, at: i64) -> ClockReading {
        let monotonic = 2 * SECOND + self.up + at + (at as f64 * self.ppm * 1e-6) as i64;
        let realtime = (WALL + self.ahead + monotonic - self.up) as u64;
        ClockReading { ticks: monotonic as u64, monotonic: monotonic as u64, realtime }
    }
}

/// A thread: its process, and its place there.
pub(crate) type ThreadId = (usize, usize);

impl Scenario {
    /// A client and a server with one thread each, on one host.
    pub(crate) fn pair() -> (Self, ThreadId, ThreadId) {
        Self::pair_with([HostClock::default(); 2])
    }

    /// The same on hosts with these clocks.
    pub(crate) fn pair_with(clocks: [HostClock; 2]) -> (Self, ThreadId, ThreadId) {
        let mut scenario = Self::default();
        let client = scenario.process("client", clocks[0], ["10.0.0.1:999", "10.0.0.2:4000"]);
        let server = scenario.process("server", clocks[1], ["0.0.0.0:4000", "10.0.0.1:999"]);
        let threads = [client, server].map(|process| scenario.thread(process, "main"));
        (scenario, threads[0], threads[1])
    }

    /// Another process, with one peer.
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
        self.processes.push(Known { clock, trace: Trace { head, threads: Vec::new() } });
        self.processes.len() - 1
    }

    /// Another thread.
    pub(crate) fn thread(&mut self, process: usize, name: &str) -> ThreadId {
        let threads = &mut self.processes[process].trace.threads;
        let tid = 1_000 + threads.len() as u32;
        let (name, records) = (name.to_owned(), Vec::new());
        threads.push(Thread { name, tid, cpu: 0, overwritten: 0, records });
        (process, threads.len() - 1)
    }

    /// A thread does something at that time.
    pub(crate) fn note(
        &mut self,
        at: i64,
        (process, thread): ThreadId,
        event: Event,
        numbers: (u32, u64),
    ) {
        let Known { clock, trace } = &mut self.processes[process];
        let ticks = clock.point(at).ticks;
        let record = Record::of_thread(ticks, event, numbers.0, numbers.1);
        trace.threads[thread].records.push(record);
    }

    /// Something happens to an RPC of the client (process 0) with the server at that time.
    pub(crate) fn mark(
        &mut self,
        at: i64,
        (process, thread): ThreadId,
        id: u64,
        event: Event,
        numbers: (u32, u64),
    ) {
        let Known { clock, trace } = &mut self.processes[process];
        let side = if process == 0 { Side::Client } else { Side::Server };
        let rpc = Rpc::new(id, side, PeerIndex(1));
        let ticks = clock.point(at).ticks;
        let record = Record::of_rpc(ticks, rpc, event, numbers.0, numbers.1);
        trace.threads[thread].records.push(record);
    }

    /// An RPC of two short messages; each of the 15 stages takes so long. Returns when it is over.
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
        self.mark(at, client, id, Call, (0, request));
        let mut now = at;
        for ((thread, event, numbers), took) in points.into_iter().zip(times) {
            now += took;
            self.mark(now, thread, id, event, numbers);
        }
        now
    }

    /// The trace of a process, as its file would have it.
    pub(crate) fn trace(&self, process: usize) -> Trace {
        let mut trace = self.processes[process].trace.clone();
        for thread in &mut trace.threads {
            thread.records.sort_by_key(|record| record.ticks);
        }
        trace
    }

    /// What all of it says together.
    pub(crate) fn merged(&self) -> Merged {
        let processes = 0..self.processes.len();
        let traces = processes.map(|process| (format!("{process}.tt"), self.trace(process)));
        Merged::of(traces.collect()).unwrap()
    }
}

/// The numbers of a burst that is one packet.
pub(crate) const fn burst(offset: u32, length: u32) -> (u32, u64) {
    DataFields { length, offset, packets: 1, priority: 0, retransmitted: false }.to_numbers()
}

/// The same, sent again.
pub(crate) const fn again(offset: u32, length: u32) -> (u32, u64) {
    DataFields { length, offset, packets: 1, priority: 0, retransmitted: true }.to_numbers()
}
