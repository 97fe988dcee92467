//! Random overload: one stall or burst, and no other disturbance.
//!
//! Clients call one server at a share of the busiest host's capacity. The time after the stall or
//! burst suffices for the spare capacity to work off the backlog.

use std::collections::BTreeMap;

use apus_proto::Config;
use rand::distr::Distribution;

use super::processors::wire_bytes;
use super::random::SeededRng;
use crate::call::{PlannedCall, ServerAction};
use crate::ends::Division;
use crate::scenario::{Overload, Processors, Scenario, Sharing};
use apus_sim::fabric::Settings;
use apus_sim::fault::{self, Outages};
use apus_sim::message::HostId;
use apus_sim::preset;
use apus_sim::processor::{Costs, Processor, Stall};
use apus_sim::topology::{Shape, Topology};
use apus_workload::Workload;
use apus_workload::time::{MILLISECOND, Nanos, Rate, SECOND};

/// Smallest socket buffer in bytes. Chosen by us: an eighth of the size that an endpoint requests.
/// With smaller buffers on processors this slow, repairs of real drops can take longer than the
/// bound.
const LEAST_SOCKET: u64 = 500_000;
/// Lowest and highest load, in percent of the busiest host's capacity with one packet per datagram.
const LOADS: [u32; 2] = [30, 60];
/// Bursts that hosts gather, so that packets share datagrams as between current endpoints.
const BURSTS: u32 = 32;
/// Longest payload of a datagram: packets of 1500 bytes on Ethernet.
const PACKET_LIMIT: u32 = 1_472;
/// Time for the longest message at the processors' rate. Longer messages would make the load of a
/// short run a matter of chance.
const LONGEST: Nanos = 10 * MILLISECOND;
/// Full-size packets that a processor carries in a run, if it is always busy.
const PACKETS: u64 = 100_000;
/// Most calls of a run.
const CALLS: usize = 30_000;
/// Duration of the usual load before the overload, and of the calls after the recovery.
const CALM: Nanos = 150 * MILLISECOND;
/// The server.
const SERVER: HostId = 0;

/// Cause of the overload.
#[derive(Clone, Copy, Debug)]
enum Disturbance {
    /// A host's processor stops.
    Stall(HostId),
    /// Clients make this many times as many calls.
    Burst(u64),
}

/// Generates the scenario of a seed.
pub(super) fn generate(rng: &mut SeededRng, seed: u64) -> Scenario {
    let clients = rng.within(1..=3);
    let topology = Topology {
        shape: Shape { racks: 1, hosts_per_rack: clients + 1, spines: 0 },
        host_rate: Rate::from_mbps(100_000).expect("a constant"),
        ..preset::sigcomm18()
    };
    let load = f64::from(rng.within(LOADS[0]..=LOADS[1])) / 100.0;
    let echoes = rng.percent(70);
    let (disturbance, length) = disturbance(rng, clients, load);
    let after = CALM + 3 * queued_time(disturbance, length, load) / 2 + CALM;
    let until = CALM + length;
    let end = until + after;
    let most = PACKETS * u64::from(wire_bytes(PACKET_LIMIT)) * 8_000 / end;
    let rate = Rate::from_mbps(rng.within(most / 2..=most)).expect("slower than a link");
    let costs = Costs::at_rate(rate, wire_bytes(PACKET_LIMIT));
    let socket_buffer = rng.scale(LEAST_SOCKET, Processor::SOCKET_BUFFER);
    let longest = rate.bytes(LONGEST).min(1_000_000) as u32;
    let workload = Workload::published(rng.within(2..=4)).truncated(longest);
    let stalls = match disturbance {
        Disturbance::Stall(host) => vec![(host, Stall { from: CALM, until })],
        Disturbance::Burst(_) => Vec::new(),
    };
    let loaded = if clients == 1 && !echoes { 1 } else { SERVER };
    // Sending a packet takes a processor twice as long as receiving it. If responses are short, the
    // unsent requests of a stalled client cost the client more time than the server.
    let busiest = match disturbance {
        Disturbance::Stall(client) if client != SERVER && !echoes => client,
        _ => loaded,
    };
    let mut scenario = Scenario {
        seed,
        config: Config::default(),
        fabric: Settings { sample_every: SECOND, ..Settings::new(topology, seed) },
        division: Division::Whole,
        processes_publish: false,
        restarts: Vec::new(),
        kernel_hosts: Vec::new(),
        packet_limit: PACKET_LIMIT,
        has_link_rate: true,
        consumes_late: false,
        calls: Vec::new(),
        sizes: format!("{workload}, {} Mbit/s, load {load}, {disturbance:?}", rate.mbps()),
        faults: fault::Settings::default(),
        outages: Outages::default(),
        sharing: Some(Sharing {
            bursts: BURSTS,
            receive_buffer: socket_buffer,
            older_hosts: Vec::new(),
        }),
        processors: Some(Processors { processor: Processor { costs, socket_buffer }, stalls }),
        overload: Some(Overload { from: CALM, until, busiest }),
        attack: None,
        baits: Vec::new(),
        sealed: None,
        lost: BTreeMap::new(),
        heal_at: end,
    };
    let mut draw = || {
        let request = workload.sizes().sample(rng.rng()).max(8);
        let response = if echoes { request } else { 8 };
        call(1 + rng.within(0..clients), 0, request, response)
    };
    let calls: Vec<PlannedCall> = std::iter::repeat_with(&mut draw).take(CALLS).collect();
    let each = calls.iter().map(|call| scenario.processing_time(call, loaded)).sum::<Nanos>();
    let gap = each as f64 / CALLS as f64 / load;
    let mut at = 0;
    for call in calls {
        let speed = match disturbance {
            Disturbance::Burst(times) if (CALM..until).contains(&at) => times as f64,
            _ => 1.0,
        };
        // Exponential gaps: a Poisson process.
        let chance: f64 = rng.within(f64::EPSILON..1.0);
        at += (-chance.ln() * gap / speed) as Nanos;
        if at >= end {
            break;
        }
        scenario.calls.push(PlannedCall { at, ..call });
    }
    scenario
}

/// Generates a stall of a host, or a burst, and its length.
fn disturbance(rng: &mut SeededRng, clients: u32, load: f64) -> (Disturbance, Nanos) {
    if rng.percent(60) {
        let host = if rng.percent(80) { SERVER } else { rng.within(0..=clients) };
        return (Disturbance::Stall(host), rng.within(50..=500) * MILLISECOND);
    }
    // At least twice the capacity of the host.
    let times = (2.0 / load).ceil() as u64 + rng.within(0..=5);
    (Disturbance::Burst(times), rng.within(20..=100) * MILLISECOND)
}

/// Returns the time that the spare capacity needs to work off the backlog.
fn queued_time(disturbance: Disturbance, length: Nanos, load: f64) -> Nanos {
    let excess = match disturbance {
        Disturbance::Stall(_) => load,
        Disturbance::Burst(times) => times as f64 * load - 1.0,
    };
    (length as f64 * excess / (1.0 - load)) as Nanos
}

/// Plans a call to the server.
const fn call(from: HostId, at: Nanos, request: u32, response: u32) -> PlannedCall {
    PlannedCall {
        from,
        to: SERVER,
        at,
        request,
        response,
        service: 0,
        answer: ServerAction::Reply,
        cancel: None,
        deadline: None,
        idempotent: false,
        repeats: None,
    }
}
