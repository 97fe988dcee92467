//! A node: the agent of one process of a host, both server and client.
//!
//! A node opens its transport, reports its address, receives the addresses of the others and
//! connects to them. Once all are connected, they start at a common instant.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use apus::PollMode;
use apus_workload::{Arrivals, SizeDistribution, Stream, rng};
use rand::distr::{Distribution, Uniform};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kill::{AroundKill, KillPlan};
use crate::contenders::keys::ThrowAwayKeys;
use crate::contenders::load::{Idle, OpenLoop, Request, open_loop, unloaded};
use crate::contenders::transport::{
    self, Client, Node, NodeOptions, Transport, Work as Application,
};
use crate::slowdown::{Scale, Slowdowns};
use apus_report::stats::Latencies;
use apus_testbed::clock;
use apus_testbed::error::{Doing, Error};
use apus_testbed::machine::CpuTicks;
use apus_testbed::machine::PmQosRequest;
use apus_testbed::process::{Begin, Control, Task};

/// The instructions for a node before it opens its transport.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    /// The transport, by its name.
    pub(super) transport: String,
    /// Poll mode of its threads.
    pub(super) poll: PollMode,
    /// Threads that serve.
    pub(super) receivers: usize,
    /// Rate of the link in Mbit/s.
    pub(super) link_mbps: u32,
    /// Maximum IP packet size.
    pub(super) mtu: usize,
    /// Parameters of the transport.
    pub(super) parameters: Vec<(String, u64)>,
    /// The group of the host's nodes, if it has several.
    pub(super) host_group: Option<String>,
    /// Keys of a transport that encrypts.
    pub(super) keys: Option<ThrowAwayKeys>,
    /// Whether contents of replies are compared.
    pub(super) compare: bool,
}

/// The instructions for a node when all are open.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Work {
    /// The other nodes.
    pub(super) peers: Vec<SocketAddr>,
    /// Each size of a message, and the share of the messages that have it.
    pub(super) shares: Vec<(u32, f64)>,
    /// Seed.
    pub(super) seed: u64,
    /// The measurement.
    pub(super) phase: Phase,
}

/// The measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// The node serves until it must stop, and makes no calls.
    Serve,
    /// The best time of each size to the first peer. Result: pairs of a size and nanoseconds.
    Unloaded {
        /// Duration.
        duration: Duration,
    },
    /// Slowdown under load. Result: [`NodeResult`].
    Load {
        /// Requests per second.
        rate: f64,
        /// Warm-up; requests due in it do not count.
        warm: Duration,
        /// Length of the counting window.
        measure: Duration,
        /// Maximum wait for replies afterwards.
        grace: Duration,
        /// Maximum outstanding requests.
        client_max: u32,
        /// The base of slowdowns.
        scale: Scale,
        /// Whether to report the idle share of this host's cores. If several nodes share them, the
        /// coordinator reports it.
        watch_cores: bool,
        /// The kill of another node, if one is planned.
        kill: Option<KillPlan>,
    },
}

/// The result of a load at one node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct NodeResult {
    /// Slowdowns of the requests that it sent.
    pub(super) slowdowns: Slowdowns,
    /// Requests that were due and count.
    pub(super) due: u64,
    /// Requests completed before the load ended.
    pub(super) in_time: u64,
    /// Requests never completed.
    pub(super) errors: u64,
    /// Delays between due time and start of requests, in nanoseconds.
    pub(super) late: Latencies,
    /// The first error.
    pub(super) why: Option<String>,
    /// Nanoseconds of processor time that the node used while requests counted.
    pub(super) cpu: u64,
    /// Share of idle time of this host's cores; `None` if it was not requested.
    pub(super) idle: Option<f64>,
    /// Counters of the transport, from the start to the end.
    pub(super) counters: BTreeMap<String, u64>,
    /// The settings that the transport has in the node's namespace.
    pub(super) settings: String,
    /// The intended setting that it lacks there, and why.
    pub(super) caveat: Option<String>,
    /// Results before and after the kill of another node, if a kill was planned.
    pub(super) around_kill: Option<AroundKill>,
}

/// Timer slack of sleeping threads in nanoseconds. The default of 50 µs would delay requests; this
/// value only costs wake-ups that could have been coalesced.
const TIMER_SLACK: NonZeroU64 = NonZeroU64::new(1000).expect("it is not zero");

/// Runs a node over a given transport, or over the transport named in the task.
pub(super) fn agent(
    task: &Task,
    control: &mut Control,
    given: Option<&dyn Transport>,
) -> Result<Value, Error> {
    let malformed = |error| Error::Peer(format!("a malformed task: {error}"));
    let setup: Setup = serde_json::from_value(task.details.clone()).map_err(malformed)?;
    let at = task.bind.ok_or_else(|| Error::Peer("a node without an address".to_owned()))?;
    rustix::thread::set_current_timer_slack(Some(TIMER_SLACK))
        .doing(|| "set the timer slack".to_owned())?;
    // Without the privilege, cores may enter sleep states.
    let _awake = PmQosRequest::open();
    let opening = NodeOptions {
        at,
        poll: setup.poll,
        serve: true,
        receivers: setup.receivers,
        link_mbps: setup.link_mbps,
        mtu: setup.mtu,
        work: Application::NONE,
        parameters: setup.parameters,
        host_group: setup.host_group,
        keys: setup.keys,
        compare: setup.compare,
    };
    let named;
    let transport = match given {
        Some(transport) => transport,
        None => {
            named = transport::parse(&setup.transport)?;
            &*named
        }
    };
    let node: Arc<dyn Node> = transport.open(&opening)?.into();
    let to_wake = Arc::clone(&node);
    let stop = control.stop().clone();
    stop.wake_with(move || to_wake.shutdown());
    thread::scope(|scope| {
        let serve = |receiver| {
            let (node, stop) = (&node, &stop);
            scope.spawn(move || node.serve(receiver, stop))
        };
        let receivers: Vec<_> = (0..setup.receivers).map(serve).collect();
        // The others may need this node for longer than it needs them.
        let done =
            work(transport, &*node, setup.poll, control).and_then(|result| control.report(result));
        if done.is_err() {
            // Receivers only end on a stop request.
            stop.ask();
        }
        let panicked = |_| Err(Error::Peer("a receiver panicked".to_owned()));
        let join = |receiver: ScopedJoinHandle<'_, _>| receiver.join().unwrap_or_else(panicked);
        let served = receivers.into_iter().try_for_each(join);
        done.and(served).map(|()| json!(null))
    })
}

/// Returns the client's part.
fn work(
    transport: &dyn Transport,
    node: &dyn Node,
    poll: PollMode,
    control: &mut Control,
) -> Result<Value, Error> {
    control.ready(node.address())?;
    let work: Work = control.prepare()?;
    let idle = if poll == PollMode::Spin { Idle::Spin } else { Idle::Wait };
    match &work.phase {
        Phase::Serve => {
            start(control)?;
            Ok(json!(null))
        }
        Phase::Unloaded { duration } => {
            let client = &mut *node.connect(&work.peers[..1], 1)?;
            let sizes: Vec<u32> = work.shares.iter().map(|&(size, _)| size).collect();
            clock::sleep_until(start(control)?);
            let best = unloaded(client, &sizes, clock::as_nanoseconds(*duration), idle)?;
            Ok(json!(best))
        }
        Phase::Load { client_max, .. } => {
            let client = &mut *node.connect(&work.peers, *client_max as usize)?;
            let before = node.counters();
            let at = start(control)?;
            let mut result = load(client, &work, at, idle)?;
            (result.settings, result.caveat) = (transport.settings(), transport.caveat());
            result.counters = node.counters();
            for (name, count) in before {
                result.counters.entry(name).and_modify(|after| *after -= count);
            }
            Ok(json!(result))
        }
    }
}

/// Reports that this node has connected, and returns the common start.
fn start(control: &mut Control) -> Result<u64, Error> {
    control.prepared()?;
    let Begin { details: (), at } = control.begin()?;
    Ok(at)
}

fn load(client: &mut dyn Client, work: &Work, at: u64, idle: Idle) -> Result<NodeResult, Error> {
    let Phase::Load { rate, warm, measure, grace, client_max, scale, watch_cores, kill } =
        &work.phase
    else {
        unreachable!("called for this phase only")
    };
    let late = clock::now().saturating_sub(at);
    if late > 0 {
        let late = Duration::from_nanos(late).as_millis();
        return Err(Error::Peer(format!("heard of the start {late} ms after it")));
    }
    let warm = clock::as_nanoseconds(*warm);
    let ends = warm + clock::as_nanoseconds(*measure);
    let (grace, limit) = (clock::as_nanoseconds(*grace), *client_max);
    let aside = kill.and_then(|kill| kill.peer);
    let load = OpenLoop { warm, ends, grace, limit, idle, aside };
    let watch_cores = *watch_cores;
    let ticks = move || watch_cores.then(CpuTicks::now).flatten();
    let spent = thread::spawn(move || {
        clock::sleep_until(at + warm);
        let (cpu, before) = (clock::cpu_time(), ticks());
        clock::sleep_until(at + ends);
        let idle = before.zip(ticks()).and_then(|(before, after)| before.idle_until(after));
        (clock::cpu_time() - cpu, idle)
    });
    let mut slowdowns = Slowdowns::new(scale.clone());
    let mut around_kill = kill.map(|kill| AroundKill::new(kill, scale));
    let due = |request: &Request| kill.is_none_or(|kill| kill.is_due(*request));
    clock::sleep_until(at);
    let tally = open_loop(
        client,
        load,
        requests(work, *rate)?.filter(due),
        || clock::now() - at,
        |request, latency| {
            slowdowns.record(request.size, latency);
            if let Some(around_kill) = &mut around_kill {
                around_kill.record(request, latency);
            }
        },
    )?;
    if let Some(around_kill) = &mut around_kill {
        around_kill.to_killed = tally.aside;
    }
    let (cpu, idle) = spent.join().expect("it only sleeps");
    Ok(NodeResult {
        slowdowns,
        due: tally.due,
        in_time: tally.in_time,
        errors: tally.due - tally.completed,
        why: tally.problem(),
        late: tally.late,
        cpu,
        idle,
        counters: BTreeMap::new(),
        settings: String::new(),
        caveat: None,
        around_kill,
    })
}

/// Returns the number of a node's requests due in this period after the start.
pub(super) fn due(work: &Work, rate: f64, time: Range<Duration>) -> Result<u64, Error> {
    let time = clock::as_nanoseconds(time.start)..clock::as_nanoseconds(time.end);
    let before = requests(work, rate)?.take_while(|request| request.due < time.end);
    Ok(before.filter(|request| request.due >= time.start).count() as u64)
}

/// Returns the requests in due order: Poisson arrivals, each to a random peer.
fn requests(work: &Work, rate: f64) -> Result<impl Iterator<Item = Request> + use<>, Error> {
    let seed = work.seed;
    let sizes = SizeDistribution::from_shares(&work.shares).sample_iter(rng(seed, Stream::Sizes));
    let arrivals = Arrivals::at_rate(rate, rng(seed, Stream::Arrivals));
    let peers = Uniform::new(0, work.peers.len())
        .map_err(|_| Error::Peer("a node without peers".to_owned()))?
        .sample_iter(rng(seed, Stream::Destinations));
    let drawn = sizes.zip(arrivals).zip(peers);
    Ok(drawn.map(|((size, due), peer)| Request { size, peer, due: clock::as_nanoseconds(due) }))
}
