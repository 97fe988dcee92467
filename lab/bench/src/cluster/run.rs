//! A run: all nodes of a cluster, from a common start to the last reply.
//!
//! Every run has fresh hosts, processes and connections. Leftover state from one run would affect
//! the next one (docs/reference/papers.md, *Figures since 2022* and *Double handoff*).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::kill::{self, KillEffect, KillPlan};
use super::node::{self, NodeResult, Phase, Setup, Work};
use super::options::{ClusterOptions, Mix};
use super::site::{Site, Venue};
use super::switch::{Switch, SwitchLoad};
use crate::contenders::transport;
use crate::slowdown::{Scale, Slowdowns, Summary};
use apus_report::stats::Latencies;
use apus_testbed::clock;
use apus_testbed::error::Error;
use apus_testbed::machine::CpuTicks;
use apus_testbed::process::Task;

/// The job of a node: here, or in a program of another project ([`external_agent`](super::external_agent)).
pub const JOB: &str = "cluster";

/// Minimum time to wait for replies after the last request was due. Chosen by us: the backlog of a
/// transport that does not keep up is an error soon enough.
const GRACE: Duration = Duration::from_secs(3);

/// Minimum grace period, as the number of maximum-length messages that a link can carry in it: on a
/// slow link several of them may go to the same node.
const GRACE_MESSAGES: f64 = 24.0;

/// Time from the start order to the start. All nodes are already connected to each other.
const LEAD: Duration = Duration::from_millis(300);

/// Time per connection. Chosen by us: two cores open 20,000 per second.
const CONNECTING: Duration = Duration::from_micros(100);

/// The result of one run of concurrent transports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct RunResult {
    /// Number of the run, from 0.
    pub(super) number: usize,
    /// One part per transport.
    pub(super) parts: Vec<PartResult>,
    /// Share of idle core time on the busiest host; `None` if unknown.
    pub(super) idle: Option<f64>,
    /// The load of the switch, if it is part of a fabric and was observed.
    pub(super) switch: Option<SwitchLoad>,
}

/// The result of one transport, over all nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PartResult {
    pub(super) summary: Summary,
    /// Share of the requests that were due that were completed before the load ended.
    pub(super) kept_up: f64,
    /// Payload bits per second that all nodes received together: requests and replies.
    pub(super) throughput: f64,
    /// Number of requests never completed; `why` is the first error.
    pub(super) errors: u64,
    pub(super) why: Option<String>,
    /// Seconds of processor time for each 10⁹ bytes of payload that were received.
    pub(super) cpu_per_gb: f64,
    /// Delays between due time and start of requests, in nanoseconds.
    pub(super) late: Latencies,
    /// Counters of the transport at all nodes, warm-up included.
    pub(super) counters: BTreeMap<String, u64>,
    /// The settings of the transport, the same at all nodes.
    pub(super) settings: String,
    /// The intended setting that it lacked there, and why.
    pub(super) caveat: Option<String>,
    /// Effect of the kill of a process on the others, if a process was killed.
    pub(super) kill: Option<KillEffect>,
}

/// Messages that nodes send.
#[derive(Clone, Debug)]
pub(super) struct Offered {
    /// Each size and its share.
    pub(super) shares: Vec<(u32, f64)>,
    /// Requests per second and node, over all concurrent transports.
    pub(super) rate: f64,
}

/// Returns the best time of each size, one request at a time.
pub(super) fn unloaded(
    venue: &Venue,
    options: &ClusterOptions,
    mbps: u64,
    transport: &str,
    shares: &[(u32, f64)],
    duration: Duration,
) -> Result<BTreeMap<u32, u64>, Error> {
    let site = Site::open(venue, options, mbps, transport)?;
    let mut crew = site.start(vec![task(options, mbps, transport); 2])?;
    let addresses = crew.addresses()?;
    let work = |phase, peer: SocketAddr| Work {
        peers: vec![peer],
        shares: shares.to_vec(),
        seed: options.repetition.seed,
        phase,
    };
    let works =
        [work(Phase::Unloaded { duration }, addresses[1]), work(Phase::Serve, addresses[0])];
    crew.prepare(&works, LEAD)?;
    crew.begin(&[(); 2], LEAD)?;
    // Not every size is tried, and slow sizes at most twice.
    let bytes: f64 = shares.iter().map(|&(size, _)| f64::from(size)).sum();
    let longest = Duration::from_secs_f64(2.0 * 2.0 * bytes * 8.0 / (mbps as f64 * 1e6));
    let best: Vec<Option<Vec<(u32, u64)>>> = crew.results(duration + LEAD + longest).all()?;
    Ok(best.into_iter().flatten().flatten().collect())
}

/// One run of a mix under load.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loaded<'a> {
    pub(super) options: &'a ClusterOptions,
    /// Rate of the links in Mbit/s.
    pub(super) mbps: u64,
    pub(super) mix: &'a Mix,
    /// Selects the random messages.
    pub(super) number: usize,
    pub(super) offered: &'a Offered,
    pub(super) scale: &'a Scale,
    /// That count.
    pub(super) seconds: f64,
    /// Whether a process of each transport is killed halfway.
    pub(super) kills: bool,
}

impl Loaded<'_> {
    /// Does it, with fresh hosts and agents.
    pub(super) fn run(&self, venue: &Venue) -> Result<RunResult, Error> {
        let Self { options, mbps, mix, .. } = *self;
        let first = mix.parts().next().unwrap_or_default();
        let site = Site::open(venue, options, mbps, first)?;
        let nodes = site.nodes();
        let agents = nodes * options.processes;
        let tasks = mix.parts().flat_map(|name| vec![task(options, mbps, name); agents]);
        let mut crew = site.start(tasks.collect())?;
        let addresses = crew.addresses()?;
        let measure = Duration::from_secs_f64(self.seconds);
        let warm = (measure / 10).max(WARM);
        let works = self.works(&addresses, nodes, warm, measure, !venue.is_here());
        let halfway = measure / 2 + warm;
        crew.prepare(&works, CONNECTING * self.connections(nodes)?)?;
        let at = crew.begin(&vec![(); works.len()], LEAD)?;

        crew.sleep(until(at + clock::as_nanoseconds(warm)))?;
        let before = CpuTicks::now();
        let mut switch = Switch::watch(&site)?;
        // On a starved machine the first reading may take longer than a short run and miss most of
        // the packets.
        let is_observed = clock::now() < at + clock::as_nanoseconds(warm + measure / 2);
        let mut late = 0;
        if self.kills {
            let halfway = at + clock::as_nanoseconds(halfway);
            switch.sample_until(halfway, &site, &mut crew)?;
            crew.kill(kill::VICTIM)?;
            late = clock::now().saturating_sub(halfway);
        }
        let ends = at + clock::as_nanoseconds(warm + measure);
        switch.sample_until(ends, &site, &mut crew)?;
        let here = before.zip(CpuTicks::now()).and_then(|(before, after)| before.idle_until(after));
        let switch = switch.finish(&site)?.filter(|_| is_observed);
        let results = crew.results(grace(mbps, &self.offered.shares));
        if let Some(failure) = results.failure {
            return Err(failure);
        }
        let nodes: Vec<Option<NodeResult>> = results.each;
        let elsewhere = || nodes.iter().flatten().map(|node| node.idle).reduce(least).flatten();
        let idle = if venue.is_here() { here } else { elsewhere() };
        let parts = nodes.chunks(agents).map(|agents| {
            let found: Vec<&NodeResult> = agents.iter().flatten().collect();
            part(&found, measure)
        });
        let mut parts: Vec<PartResult> = parts.collect();
        if self.kills {
            let around: Vec<_> =
                nodes.iter().flatten().filter_map(|node| node.around_kill.clone()).collect();
            let own = node::due(&works[kill::VICTIM], self.rate_of_a_process(), warm..halfway)?;
            parts[0].kill = Some(KillEffect::of(&around, own, late));
        }
        Ok(RunResult { number: self.number, parts, idle, switch })
    }

    /// Returns the instructions for each agent, in the order of the tasks: of each transport, the
    /// first port of each node, then the second.
    fn works(
        &self,
        addresses: &[SocketAddr],
        nodes: usize,
        warm: Duration,
        measure: Duration,
        watch_cores: bool,
    ) -> Vec<Work> {
        let Self { options, number, offered, .. } = *self;
        let kill = |peers: &[SocketAddr]| KillPlan {
            at: clock::as_nanoseconds(measure / 2 + warm),
            peer: peers.iter().position(|peer| *peer == addresses[kill::VICTIM]),
        };
        let phase = |peers: &[SocketAddr]| Phase::Load {
            rate: self.rate_of_a_process(),
            warm,
            measure,
            grace: grace(self.mbps, &offered.shares),
            client_max: options.client_max_of_a_process(),
            scale: self.scale.clone(),
            watch_cores,
            kill: self.kills.then(|| kill(peers)),
        };
        let agents = nodes * options.processes;
        let work = |who| {
            let peers = peers(addresses, nodes, agents, who);
            Work {
                phase: phase(&peers),
                peers,
                shares: offered.shares.clone(),
                // Every transport carries the same messages; every process of a node and every run
                // draws different ones.
                seed: options
                    .repetition
                    .seed
                    .wrapping_add((number * 1_000 * options.processes + who % agents) as u64),
            }
        };
        (0..addresses.len()).map(work).collect()
    }

    /// Returns the requests per second of each process of one transport.
    fn rate_of_a_process(&self) -> f64 {
        self.offered.rate / (self.mix.parts().len() * self.options.processes) as f64
    }

    /// Total number of connections that clients open before the load starts.
    fn connections(&self, nodes: usize) -> Result<u32, Error> {
        let ClusterOptions { processes, .. } = *self.options;
        let outstanding = self.options.client_max_of_a_process() as usize;
        let of = |name| match self.options.external(name) {
            // Assume a connection for each request: the transport may encrypt, and a handshake
            // takes longer than opening a connection.
            Some(_) => Ok(outstanding),
            None => transport::parse(name).map(|t| t.connections(outstanding)),
        };
        let each = self.mix.parts().map(of).sum::<Result<usize, Error>>()?;
        Ok(u32::try_from(each * nodes * processes * (nodes - 1) * processes).unwrap_or(u32::MAX))
    }
}

/// Returns the smaller value; `None` if either is unknown.
fn least(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    one.zip(other).map(|(one, other)| one.min(other))
}

/// Minimum warm-up. Chosen by us: round trip times, windows and cutoffs have settled by then.
const WARM: Duration = Duration::from_millis(500);

/// Returns how long replies are waited for.
fn grace(mbps: u64, shares: &[(u32, f64)]) -> Duration {
    let longest = shares.last().map_or(0, |&(size, _)| size);
    let time = f64::from(longest) * 8.0 / (mbps as f64 * 1e6);
    GRACE.max(Duration::from_secs_f64(time * GRACE_MESSAGES))
}

/// Returns all processes of the other nodes that run the same transport.
fn peers(addresses: &[SocketAddr], nodes: usize, agents: usize, who: usize) -> Vec<SocketAddr> {
    let first = who / agents * agents;
    let same = first..first + agents;
    same.filter(|&other| other % nodes != who % nodes).map(|other| addresses[other]).collect()
}

/// Combines the results of all nodes of one transport that have a result.
fn part(nodes: &[&NodeResult], measure: Duration) -> PartResult {
    let mut slowdowns: Slowdowns = nodes[0].slowdowns.clone();
    nodes[1..].iter().for_each(|node| slowdowns.merge(&node.slowdowns));
    let sum = |count: fn(&NodeResult) -> u64| nodes.iter().map(|node| count(node)).sum::<u64>();
    // Each request is received by a server, and its echo by the client.
    let bytes = 2.0 * slowdowns.bytes();
    let mut late = Latencies::new();
    nodes.iter().for_each(|node| late.merge(&node.late));
    let mut counters = BTreeMap::new();
    for (name, count) in nodes.iter().flat_map(|node| &node.counters) {
        *counters.entry(name.clone()).or_default() += count;
    }
    PartResult {
        summary: slowdowns.summary(),
        kept_up: sum(|node| node.in_time) as f64 / sum(|node| node.due).max(1) as f64,
        throughput: bytes * 8.0 / measure.as_secs_f64(),
        errors: sum(|node| node.errors),
        why: nodes.iter().find_map(|node| node.why.clone()),
        cpu_per_gb: sum(|node| node.cpu) as f64 / bytes.max(1.0),
        late,
        counters,
        settings: nodes[0].settings.clone(),
        caveat: nodes[0].caveat.clone(),
        kill: None,
    }
}

fn task(options: &ClusterOptions, mbps: u64, transport: &str) -> Task {
    let setup = Setup {
        transport: transport.to_owned(),
        poll: options.repetition.poll,
        receivers: options.receivers,
        link_mbps: u32::try_from(mbps).expect("a rate that the options allow"),
        mtu: options.fabric.mtu as usize,
        parameters: options.parameters.clone(),
        // A concurrent experiment uses a separate group.
        host_group: (options.processes > 1).then(|| format!("cluster-{}", std::process::id())),
        keys: options.keys.clone(),
        // The external programs compare replies, so the cost must be the same for all.
        compare: !options.external.is_empty(),
    };
    let (name, job) = (transport.to_owned(), JOB.to_owned());
    Task { name, core: None, bind: None, job, details: json!(setup) }
}

/// Returns the time until an instant of this host's clock.
fn until(at: u64) -> Duration {
    Duration::from_nanos(at.saturating_sub(clock::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_all_processes_of_the_other_nodes_with_the_same_transport() {
        // Three nodes with two processes each, two transports.
        let addresses: Vec<SocketAddr> = (0..12)
            .map(|agent| SocketAddr::from(([10, 0, 0, 1 + agent % 3], 100 + u16::from(agent))))
            .collect();
        let ports = |who| {
            let peers = peers(&addresses, 3, 6, who);
            peers.iter().map(|peer| peer.port() - 100).collect::<Vec<_>>()
        };
        assert_eq!(ports(0), [1, 2, 4, 5]);
        assert_eq!(ports(4), [0, 2, 3, 5]);
        assert_eq!(ports(8), [6, 7, 9, 10], "another transport");
    }
}
