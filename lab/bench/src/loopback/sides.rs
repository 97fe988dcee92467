//! The two sides: a server that echoes, and a client that generates the load.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use apus::PollMode;
use apus_workload::{Arrivals, Stream, rng};
use rand::distr::Distribution;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::disturbance::Burst;
use super::windows::{Window, Windows};
use crate::contenders::baseline::tcp::socket::LOOPBACK_SEND_BUFFER;
use crate::contenders::load::{
    Idle, OpenLoop, Request, closed_loop, closed_loop_by_interval, open_loop, unloaded,
};
use crate::contenders::transport::{Apus, Client, Connections, Node, NodeOptions, Tcp, Transport};
use crate::options;
use crate::slowdown::{Scale, Slowdowns, Summary};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::{Begin, Control, NO_ADDRESS, Task};

/// The job of [`agent`].
pub(crate) const JOB: &str = "loopback";

/// Returns the contenders.
pub(crate) fn contenders() -> Vec<Box<dyn Transport>> {
    let tcp =
        |connections| Tcp { send_buffer: Some(LOOPBACK_SEND_BUFFER), ..Tcp::new(connections) };
    vec![
        Box::new(Apus::Clear),
        Box::new(tcp(Connections::One)),
        Box::new(tcp(Connections::PerRequest)),
    ]
}

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) contender: String,
    pub(super) side: Side,
}

/// The side, and its instructions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Side {
    /// Result: [`Counters`].
    Server {
        poll: PollMode,
        /// Whether the parent pauses it for a while.
        pauses: bool,
    },
    /// Result: [`ClientReport`].
    Client(Box<ClientSide>),
}

/// Counters of a transport at one side by name, warm-up included. Only apus has counters.
pub(crate) type Counters = BTreeMap<String, u64>;

/// The result of a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ClientReport {
    /// The result of the phase.
    pub(super) result: Value,
    pub(super) counters: Counters,
}

/// The instructions for a client.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ClientSide {
    pub(super) server: SocketAddr,
    pub(super) messages: Messages,
    /// Whether the server has another core.
    pub(super) alone_on_core: bool,
    pub(super) phase: Phase,
}

/// The messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Messages {
    pub(crate) workload: String,
    pub(crate) truncate: u32,
    pub(crate) seed: u64,
}

/// The measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// The best time of each size. Result: pairs of a size and nanoseconds.
    Unloaded { duration: Duration },
    /// Requests completed per second. Result: their number.
    Capacity { outstanding: u32, warm: Duration, measure: Duration },
    /// Requests completed in each second. Result: their numbers.
    Hold { outstanding: u32, warm: Duration, seconds: u32 },
    /// Slowdown under load. The client is ready once it has connected, and starts on the parent's
    /// order. Result: [`LoadResult`].
    Load(LoadPhase),
}

/// An open-loop load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LoadPhase {
    /// Requests per second.
    pub(crate) rate: f64,
    /// Time before anything counts.
    pub(crate) warm: Duration,
    /// Time that counts.
    pub(crate) measure: Duration,
    /// Connections of a transport that needs one for each outstanding request; further requests
    /// wait, and their latency includes the wait.
    pub(crate) connections: u32,
    /// A burst, and its start relative to the start of the load.
    pub(crate) burst: Option<(Duration, Burst)>,
    /// Length of the result's windows; without it, the result has no windows.
    pub(crate) window: Option<Duration>,
    /// The base of slowdowns.
    pub(crate) scale: Scale,
}

/// The result of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadResult {
    pub(crate) summary: Summary,
    /// Share of the requests that were due that were completed before the load ended.
    pub(crate) kept_up: f64,
    /// Requests that were never completed.
    pub(crate) errors: u64,
    /// Short messages by due time, relative to the start of the load.
    pub(crate) windows: Vec<Window>,
}

/// Maximum outstanding requests of a transport that needs no connection for each: half of the
/// default limit of an apus endpoint. A server that is further behind has failed.
const MAX_OUTSTANDING: u32 = 32_768;

/// How long a client waits for replies after the last request was due. Chosen by us: a queue that
/// takes longer grows without bound.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Runs one side.
pub(super) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let malformed = |what: String| Error::Peer(format!("a malformed task: {what}"));
    let details: Details = serde_json::from_value(task.details.clone())
        .map_err(|error| malformed(error.to_string()))?;
    let contenders = contenders();
    let contender = contenders.iter().find(|each| each.name() == details.contender);
    let contender = contender.ok_or_else(|| malformed(details.contender.clone()))?;
    match details.side {
        Side::Server { poll, pauses } => {
            if pauses {
                control.end_with_parent()?;
            }
            Ok(json!(serve(&**contender, poll, control)?))
        }
        Side::Client(client) => Ok(json!(client.drive(&**contender, control)?)),
    }
}

/// Opens a server, reports its address, and serves until it must stop.
fn serve(
    contender: &dyn Transport,
    poll: PollMode,
    control: &mut Control,
) -> Result<Counters, Error> {
    let node: Arc<dyn Node> = contender.open(&NodeOptions::on_loopback(poll, true))?.into();
    let to_wake = Arc::clone(&node);
    control.stop().wake_with(move || to_wake.shutdown());
    control.ready(node.address())?;
    node.serve(0, control.stop())?;
    Ok(node.counters())
}

impl ClientSide {
    /// Connects, runs the phase, and reads the counters.
    fn drive(
        &self,
        contender: &dyn Transport,
        control: &mut Control,
    ) -> Result<ClientReport, Error> {
        // The generator polls continuously and never sleeps.
        let node = contender.open(&NodeOptions::on_loopback(PollMode::Spin, false))?;
        let connect = |outstanding: u32| node.connect(&[self.server], outstanding as usize);
        let result = match &self.phase {
            Phase::Unloaded { duration } => self.unloaded(&mut *connect(1)?, *duration)?,
            Phase::Capacity { outstanding, warm, measure } => {
                let client = &mut *connect(*outstanding)?;
                let times = (clock::as_nanoseconds(*warm), clock::as_nanoseconds(*measure));
                json!(closed_loop(client, *outstanding, self.sizes()?, times, self.idle())?)
            }
            Phase::Hold { outstanding, warm, seconds } => {
                let client = &mut *connect(*outstanding)?;
                let warm = clock::as_nanoseconds(*warm);
                let intervals = (*seconds, clock::as_nanoseconds(Duration::from_secs(1)));
                let (sizes, idle) = (self.sizes()?, self.idle());
                json!(closed_loop_by_interval(client, *outstanding, sizes, warm, intervals, idle)?)
            }
            Phase::Load(load) => {
                let bounded = contender.is_bounded_by_connections();
                let limit = if bounded { load.connections } else { MAX_OUTSTANDING };
                let client = &mut *connect(limit)?;
                control.ready(NO_ADDRESS)?;
                let Begin { details: (), at } = control.begin()?;
                json!(self.load(client, load, limit, at)?)
            }
        };
        Ok(ClientReport { result, counters: node.counters() })
    }

    fn idle(&self) -> Idle {
        if self.alone_on_core { Idle::Spin } else { Idle::Yield }
    }

    /// Sizes of the messages, without an end.
    fn sizes(&self) -> Result<impl Iterator<Item = u32> + use<>, Error> {
        let Messages { workload, truncate, seed } = &self.messages;
        let sizes = options::workload(workload, *truncate)?.sizes().clone();
        Ok(sizes.sample_iter(rng(*seed, Stream::Sizes)))
    }

    fn unloaded(&self, client: &mut dyn Client, duration: Duration) -> Result<Value, Error> {
        let Messages { workload, truncate, .. } = &self.messages;
        let workload = options::workload(workload, *truncate)?;
        let sizes: Vec<u32> = workload.sizes().iter().map(|(size, _)| size).collect();
        let duration = clock::as_nanoseconds(duration);
        Ok(json!(unloaded(client, &sizes, duration, self.idle())?))
    }

    /// Returns the requests of a load, without an end.
    fn requests(&self, load: &LoadPhase) -> Result<impl Iterator<Item = Request> + use<>, Error> {
        let arrivals = Arrivals::at_rate(load.rate, rng(self.messages.seed, Stream::Arrivals));
        let burst = load.burst;
        let due = move |nominal| {
            let due = burst.map_or(nominal, |(begin, burst)| burst.due(begin, nominal));
            clock::as_nanoseconds(due)
        };
        let requests = self.sizes()?.zip(arrivals);
        Ok(requests.map(move |(size, nominal)| Request { size, peer: 0, due: due(nominal) }))
    }

    /// Applies the load, starting at the instant `began`, with at most `limit` outstanding
    /// requests.
    fn load(
        &self,
        client: &mut dyn Client,
        load: &LoadPhase,
        limit: u32,
        began: u64,
    ) -> Result<LoadResult, Error> {
        let warm = clock::as_nanoseconds(load.warm);
        let open = OpenLoop {
            warm,
            ends: warm + clock::as_nanoseconds(load.measure),
            grace: clock::as_nanoseconds(GRACE),
            limit,
            idle: self.idle(),
            aside: None,
        };
        let short = load.scale.short;
        let mut slowdowns = Slowdowns::new(load.scale.clone());
        let mut windows = load.window.map(|length| Windows::new(clock::as_nanoseconds(length)));
        let tally = open_loop(
            client,
            open,
            self.requests(load)?,
            || clock::now().saturating_sub(began),
            |request, latency| {
                slowdowns.record(request.size, latency);
                if let Some(windows) = windows.as_mut().filter(|_| request.size <= short) {
                    windows.record(request.due, latency);
                }
            },
        )?;
        let requests = self.requests(load)?.take_while(|request| request.due < open.ends);
        let counted = requests.filter(|request| request.due >= warm && request.size <= short);
        let due = counted.map(|request| request.due);
        Ok(LoadResult {
            summary: slowdowns.summary(),
            kept_up: tally.in_time as f64 / tally.due.max(1) as f64,
            errors: tally.due - tally.completed,
            windows: windows.map(|windows| windows.finish(due, open.ends)).unwrap_or_default(),
        })
    }
}
