//! The two sides of the demo: server and open-loop client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use apus::PollMode;
use apus_workload::{Arrivals, Stream, rng};
use rand::distr::Distribution;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::options;
use crate::slowdown::{Scale, Slowdowns, Summary};
use apus_contenders::load::{Idle, OpenLoop, Request, closed_loop, open_loop, unloaded};
use apus_contenders::transport::{Client, Node, NodeOptions, Transport};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};

/// Most outstanding requests under load; further requests wait, and their latency includes the wait. Source:
/// `--client-max` of the kernel module's `cp_node`, 200.
///
/// Capacity is measured with as many, because a contender works a backlog off at the rate that it completes when it is
/// crowded. Measured with fewer (16: 30 % more for one connection per request), 80 % could exceed that rate once a
/// backlog exists, and the contender would never recover.
pub(super) const LIMIT: u32 = 200;

/// The details of an agent's task.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Details {
    pub(super) contender: String,
    pub(super) side: Side,
}

/// The side, and its instructions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Side {
    Server { poll: PollMode },
    Client(ClientSide),
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
pub(super) struct Messages {
    pub(super) workload: String,
    pub(super) truncate: u32,
    pub(super) seed: u64,
}

/// The measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// The best time of each size. Result: pairs of a size and nanoseconds.
    Unloaded { duration: Duration },
    /// Requests completed per second. Result: their number.
    Capacity { outstanding: u32, warm: Duration, measure: Duration },
    /// Slowdown under load. Result: [`LoadResult`].
    Load { rate: f64, warm: Duration, measure: Duration, limit: u32, scale: Scale },
}

/// The result of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct LoadResult {
    pub(super) summary: Summary,
    /// Share of the requests that were due that were completed before the load ended.
    pub(super) kept_up: f64,
    /// Requests that were never completed.
    pub(super) errors: u64,
}

/// Time for which a client waits for replies after the last request was due. Chosen by us: far longer than a queue
/// of [`Phase::Load`]'s limit takes.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Does one side's work.
pub(super) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let malformed = |what: String| Error::Peer(format!("a malformed task: {what}"));
    let details: Details = serde_json::from_value(task.details.clone())
        .map_err(|error| malformed(error.to_string()))?;
    let contenders = super::contenders();
    let contender = contenders.iter().find(|each| each.name() == details.contender);
    let contender = contender.ok_or_else(|| malformed(details.contender.clone()))?;
    let client = match details.side {
        Side::Server { poll } => return serve(&**contender, poll, control).map(|()| json!(null)),
        Side::Client(client) => client,
    };
    // The generator polls continuously and never sleeps.
    let node = contender.open(&NodeOptions::on_loopback(PollMode::Spin, false))?;
    let connect = |outstanding: u32| node.connect(&[client.server], outstanding as usize);
    match &client.phase {
        Phase::Unloaded { duration } => client.unloaded(&mut *connect(1)?, *duration),
        Phase::Capacity { outstanding, warm, measure } => {
            client.capacity(&mut *connect(*outstanding)?, *outstanding, (*warm, *measure))
        }
        Phase::Load { limit, .. } => client.load(&mut *connect(*limit)?),
    }
}

/// Opens a server, reports its address, and serves until it has to stop.
fn serve(contender: &dyn Transport, poll: PollMode, control: &mut Control) -> Result<(), Error> {
    let node: Arc<dyn Node> = contender.open(&NodeOptions::on_loopback(poll, true))?.into();
    let to_wake = Arc::clone(&node);
    control.stop().wake_with(move || to_wake.shutdown());
    control.ready(node.address())?;
    node.serve(0, control.stop())
}

impl ClientSide {
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

    fn capacity(
        &self,
        client: &mut dyn Client,
        outstanding: u32,
        (warm, measure): (Duration, Duration),
    ) -> Result<Value, Error> {
        let times = (clock::as_nanoseconds(warm), clock::as_nanoseconds(measure));
        Ok(json!(closed_loop(client, outstanding, self.sizes()?, times, self.idle())?))
    }

    fn load(&self, client: &mut dyn Client) -> Result<Value, Error> {
        let Phase::Load { rate, warm, measure, limit, scale } = &self.phase else {
            unreachable!("called for this phase only")
        };
        let warm = clock::as_nanoseconds(*warm);
        let load = OpenLoop {
            warm,
            ends: warm + clock::as_nanoseconds(*measure),
            grace: clock::as_nanoseconds(GRACE),
            limit: *limit,
            idle: self.idle(),
        };
        let arrivals = Arrivals::at_rate(*rate, rng(self.messages.seed, Stream::Arrivals));
        let requests = self.sizes()?.zip(arrivals).map(|(size, due)| Request {
            size,
            peer: 0,
            due: clock::as_nanoseconds(due),
        });
        let mut slowdowns = Slowdowns::new(scale.clone());
        let began = clock::now();
        let tally = open_loop(
            client,
            load,
            requests,
            || clock::now() - began,
            |request, latency| {
                slowdowns.record(request.size, latency);
            },
        )?;
        Ok(json!(LoadResult {
            summary: slowdowns.summary(),
            kept_up: tally.in_time as f64 / tally.due.max(1) as f64,
            errors: tally.due - tally.completed,
        }))
    }
}
