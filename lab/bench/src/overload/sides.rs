//! The two sides of the overload experiment: server and open-loop client.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use apus::PollMode;
use apus_workload::{Arrivals, Stream, rng};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::contenders::baseline::tcp::socket::LOOPBACK_SEND_BUFFER;
use crate::contenders::load::{Idle, OpenLoop, Request, closed_loop, open_loop};
use crate::contenders::transport::{
    Apus, Client, Completions, Connections, Node, NodeOptions, Tcp, Transport, Work,
};
use apus_report::stats::{Latencies, Percentiles};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};

/// The job of [`agent`].
pub(crate) const JOB: &str = "overload";

/// Returns the contenders, with a server of `threads` threads. TCP has one connection per thread.
pub(super) fn contenders(threads: usize) -> [Box<dyn Transport>; 2] {
    let connections = if threads == 1 { Connections::One } else { Connections::Pool(threads) };
    let tcp = Tcp { send_buffer: Some(LOOPBACK_SEND_BUFFER), ..Tcp::new(connections) };
    [Box::new(Apus::Clear), Box::new(tcp)]
}

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Details {
    /// Index of the contender.
    pub(super) contender: usize,
    /// Threads of the server.
    pub(super) threads: usize,
    pub(super) side: Side,
}

/// The side, and its instructions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Side {
    /// Result: [`Served`].
    Server {
        poll: PollMode,
        work: Work,
    },
    Client(ClientSide),
}

/// The instructions for a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ClientSide {
    pub(super) server: SocketAddr,
    pub(super) size: u32,
    /// Whether the server has another core.
    pub(super) alone_on_core: bool,
    pub(super) phase: Phase,
}

/// The measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Requests completed per second. Result: their number.
    Capacity { warm: Duration, measure: Duration },
    /// A load of `rate` requests per second. Result: [`LoadResult`].
    Load { rate: f64, warm: Duration, measure: Duration, patience: Duration, seed: u64 },
    /// The latency of the first request after a pause. Result: nanoseconds.
    Idle { pause: Duration, times: usize, poll: PollMode },
}

/// The observations of a server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Served {
    /// Nanoseconds of processor time, and of time, from the first client on.
    pub(super) cpu: u64,
    pub(super) elapsed: u64,
    /// Counters of its transport, warm-up included.
    pub(super) counters: BTreeMap<String, u64>,
}

/// The result of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LoadResult {
    /// Requests that were due.
    pub(super) due: u64,
    /// Requests answered in time.
    pub(super) good: u64,
    /// Requests answered before the client left, in time or late.
    pub(super) answered: u64,
    /// Requests refused.
    pub(super) refused: u64,
    /// Requests abandoned by the transport.
    pub(super) failed: u64,
    /// Latency of answered requests in nanoseconds, from due time to reply.
    pub(super) latency: Percentiles,
    /// The error of the first request that failed.
    pub(super) why: Option<String>,
}

/// Outstanding requests while capacity is measured, per thread of the server. Chosen by us: enough
/// that it never waits.
const OUTSTANDING: u32 = 8;

/// Maximum outstanding requests in an open loop; further requests wait in the client, and their
/// latency includes the wait. Chosen by us: more than can be answered within a client's patience.
const LIMIT: u32 = 32_768;

/// How long an idle client polls for its reply per call.
const POLL_TIME: Duration = Duration::from_secs(1);

/// Runs one side.
pub(super) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let malformed = |what: &str| Error::Peer(format!("a malformed task: {what}"));
    let details: Details = serde_json::from_value(task.details.clone())
        .map_err(|error| malformed(&error.to_string()))?;
    let contenders = contenders(details.threads);
    let contender =
        contenders.get(details.contender).ok_or_else(|| malformed("which contender?"))?;
    match details.side {
        Side::Server { poll, work } => {
            let opening = NodeOptions {
                receivers: details.threads,
                work,
                ..NodeOptions::on_loopback(poll, true)
            };
            Ok(json!(serve(&**contender, &opening, control)?))
        }
        Side::Client(client) => client.drive(&**contender, details.threads as u32),
    }
}

/// Opens a server, reports its address, and serves until it must stop.
fn serve(
    contender: &dyn Transport,
    opening: &NodeOptions,
    control: &mut Control,
) -> Result<Served, Error> {
    let node: Arc<dyn Node> = contender.open(opening)?.into();
    let to_wake = Arc::clone(&node);
    control.stop().wake_with(move || to_wake.shutdown());
    let began = (clock::cpu_time(), clock::now());
    control.ready(node.address())?;
    let (node, stop) = (&node, control.stop());
    thread::scope(|scope| {
        let serve = |receiver| scope.spawn(move || node.serve(receiver, stop));
        let receivers: Vec<_> = (0..opening.receivers).map(serve).collect();
        let panicked = |_| Err(Error::Peer("a receiver panicked".to_owned()));
        receivers.into_iter().try_for_each(|receiver| receiver.join().unwrap_or_else(panicked))
    })?;
    let (cpu, elapsed) = (clock::cpu_time() - began.0, clock::now() - began.1);
    Ok(Served { cpu, elapsed, counters: node.counters() })
}

impl ClientSide {
    fn drive(&self, contender: &dyn Transport, threads: u32) -> Result<Value, Error> {
        let poll = match self.phase {
            Phase::Idle { poll, .. } => poll,
            // The generator polls continuously and never sleeps.
            Phase::Capacity { .. } | Phase::Load { .. } => PollMode::Spin,
        };
        let node = contender.open(&NodeOptions::on_loopback(poll, false))?;
        let connect = |outstanding: u32| node.connect(&[self.server], outstanding as usize);
        match &self.phase {
            Phase::Capacity { warm, measure } => {
                let times = (clock::as_nanoseconds(*warm), clock::as_nanoseconds(*measure));
                let (limit, sizes) = (OUTSTANDING * threads, std::iter::repeat(self.size));
                let client = &mut *connect(limit)?;
                Ok(json!(closed_loop(client, limit, sizes, times, self.idle())?))
            }
            Phase::Load { .. } => Ok(json!(self.load(&mut *connect(LIMIT)?)?)),
            Phase::Idle { pause, times, .. } => {
                let client = &mut *connect(1)?;
                let each = (0..*times).map(|_| self.first_after(client, *pause));
                Ok(json!(each.collect::<Result<Vec<u64>, Error>>()?))
            }
        }
    }

    fn idle(&self) -> Idle {
        if self.alone_on_core { Idle::Spin } else { Idle::Yield }
    }

    fn load(&self, client: &mut dyn Client) -> Result<LoadResult, Error> {
        let Phase::Load { rate, warm, measure, patience, seed } = &self.phase else {
            unreachable!("called for this phase only")
        };
        let (warm, patience) = (clock::as_nanoseconds(*warm), clock::as_nanoseconds(*patience));
        let load = OpenLoop {
            warm,
            ends: warm + clock::as_nanoseconds(*measure),
            grace: patience,
            limit: LIMIT,
            idle: self.idle(),
            aside: None,
        };
        let arrivals = Arrivals::at_rate(*rate, rng(*seed, Stream::Arrivals));
        let request = |due| Request { size: self.size, peer: 0, due: clock::as_nanoseconds(due) };
        let mut latencies = Latencies::new();
        let mut good = 0;
        let began = clock::now();
        let tally = open_loop(
            client,
            load,
            arrivals.map(request),
            || clock::now() - began,
            |_, latency| {
                latencies.record(latency);
                good += u64::from(latency <= patience);
            },
        )?;
        Ok(LoadResult {
            due: tally.due,
            good,
            answered: tally.completed,
            refused: tally.refused,
            failed: tally.failed,
            latency: latencies.percentiles(),
            why: tally.why,
        })
    }

    /// Returns the duration of one request after a pause, in nanoseconds.
    fn first_after(&self, client: &mut dyn Client, pause: Duration) -> Result<u64, Error> {
        thread::sleep(pause);
        let mut ended = Completions::default();
        let began = clock::now();
        client.start(0, 0, self.size)?;
        while ended.is_empty() {
            client.poll(POLL_TIME, &mut ended)?;
        }
        match ended.problem() {
            None => Ok(clock::now() - began),
            Some(why) => Err(Error::Peer(why)),
        }
    }
}
