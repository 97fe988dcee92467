//! The processes: server, honest client, attacker.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use apus::PollMode;
use apus_workload::{Arrivals, Stream, rng};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::attack::SHORT;
use super::attacker::AttackerSide;
use apus_bench::contenders::keys::ThrowAwayKeys;
use apus_bench::contenders::load::{Idle, OpenLoop, Request, closed_loop, open_loop};
use apus_bench::contenders::transport::{Apus, Node, NodeOptions, Start, Transport};
use apus_report::stats::{Latencies, Percentiles};
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Task};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "lab hostile";

/// The task of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HostileTask {
    /// `None` if packets are not sealed.
    pub(super) keys: Option<ThrowAwayKeys>,
    pub(super) side: Side,
}

/// A side, and its instructions.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Side {
    /// Result: [`Served`].
    Server { poll: PollMode },
    /// Result: as for its [`Phase`].
    Client {
        server: SocketAddr,
        /// Whether it has its own core.
        alone_on_core: bool,
        /// A hostile server that it calls as well.
        lure: Option<SocketAddr>,
        phase: Phase,
    },
    /// Result: [`Attacked`](super::attacker::Attacked).
    Attacker(AttackerSide),
}

/// A measurement by the honest client.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Measures the completed calls per second. Result: their number.
    Capacity { warm: Duration, measure: Duration },
    /// Offers a load of `rate` calls per second, of `size` bytes each way. Result: [`Calls`].
    Load { rate: f64, size: u32, warm: Duration, measure: Duration, seed: u64 },
}

/// The calls of an honest client.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Calls {
    pub(super) due: u64,
    pub(super) answered: u64,
    /// Refused or failed by the transport.
    pub(super) failed: u64,
    /// Nanoseconds from the due time of a call to its reply, for answered calls.
    pub(super) latency: Percentiles,
    /// Why the first failed call failed.
    pub(super) why: Option<String>,
}

/// The result of a server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Served {
    /// Nanoseconds of processor time.
    pub(super) cpu: u64,
    /// Counters of its endpoint.
    pub(super) counters: BTreeMap<String, u64>,
}

/// Outstanding calls while capacity is measured, and at most under a load. Chosen by us: enough
/// that the server never waits.
const OUTSTANDING: u32 = 64;
const LIMIT: u32 = 32_768;

/// Calls to a hostile server. Chosen by us: as many messages as are granted at a time.
const LURED: usize = 8;

/// Time to wait for replies after the last call was due. Chosen by us: many times the duration of a
/// call whose packets were lost.
const GRACE: Duration = Duration::from_secs(2);

/// Runs one side.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    let details: HostileTask = serde_json::from_value(task.details.clone())
        .map_err(|error| Error::Peer(format!("a malformed task: {error}")))?;
    let transport = if details.keys.is_some() { Apus::Sealed } else { Apus::Clear };
    let options = |poll, serve| NodeOptions {
        keys: details.keys.clone(),
        ..NodeOptions::on_loopback(poll, serve)
    };
    match details.side {
        Side::Server { poll } => {
            serve(&transport, &options(poll, true), control).map(|it| json!(it))
        }
        Side::Client { server, alone_on_core, lure, phase } => {
            let idle = if alone_on_core { Idle::Spin } else { Idle::Yield };
            let node = transport.open(&options(PollMode::Spin, false))?;
            // The hostile server answers the one-byte request that `connect` waits for.
            let mut lured = lure.map(|hostile| node.connect(&[hostile], LURED)).transpose()?;
            if let Some(lured) = &mut lured {
                // Their responses begin, and never end.
                let start = |id| Start { id, peer: 0, size: SHORT };
                lured.start_all(&(0..LURED as u32).map(start).collect::<Vec<_>>())?;
            }
            call(&*node, server, idle, phase, control)
        }
        Side::Attacker(side) => side.attack(control).map(|it| json!(it)),
    }
}

/// Opens a server, reports its address, and serves until it is stopped.
fn serve(
    transport: &dyn Transport,
    options: &NodeOptions,
    control: &mut Control,
) -> Result<Served, Error> {
    let node: Arc<dyn Node> = transport.open(options)?.into();
    let to_wake = Arc::clone(&node);
    control.stop().wake_with(move || to_wake.shutdown());
    let began = clock::cpu_time();
    control.ready(node.address())?;
    node.serve(0, control.stop())?;
    Ok(Served { cpu: clock::cpu_time() - began, counters: node.counters() })
}

/// Connects to the server, reports its address, and calls.
fn call(
    node: &dyn Node,
    server: SocketAddr,
    idle: Idle,
    phase: Phase,
    control: &mut Control,
) -> Result<Value, Error> {
    let nanos = clock::as_nanoseconds;
    match phase {
        Phase::Capacity { warm, measure } => {
            let client = &mut *node.connect(&[server], OUTSTANDING as usize)?;
            control.ready(node.address())?;
            let (sizes, times) = (std::iter::repeat(SHORT), (nanos(warm), nanos(measure)));
            closed_loop(client, OUTSTANDING, sizes, times, idle).map(|rate| json!(rate))
        }
        Phase::Load { rate, size, warm, measure, seed } => {
            let client = &mut *node.connect(&[server], LIMIT as usize)?;
            control.ready(node.address())?;
            let ends = nanos(warm) + nanos(measure);
            let (warm, grace) = (nanos(warm), nanos(GRACE));
            let load = OpenLoop { warm, ends, grace, limit: LIMIT, idle, aside: None };
            let arrivals = Arrivals::at_rate(rate, rng(seed, Stream::Arrivals));
            let request = |due| Request { size, peer: 0, due: nanos(due) };
            let mut latencies = Latencies::new();
            let began = clock::now();
            let counts = open_loop(
                client,
                load,
                arrivals.map(request),
                || clock::now() - began,
                |_, latency| latencies.record(latency),
            )?;
            Ok(json!(Calls {
                due: counts.due,
                answered: counts.completed,
                failed: counts.refused + counts.failed,
                latency: latencies.percentiles(),
                why: counts.why,
            }))
        }
    }
}
