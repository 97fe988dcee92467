//! Random attack: a hostile host among honest hosts, and no other disturbance.
//!
//! Without the attack all calls succeed: no packet is lost, and the load leaves room on every link.
//! A call that fails nevertheless fails because of the attack. In a fifth of the runs packets are
//! lost, duplicated and reordered in addition; these runs are not compared with a run without the
//! attack, but all other promises are checked. In other runs some messages always lose their first
//! packet, so that calls need RESENDs; these runs are compared.

use std::collections::BTreeMap;

use apus_proto::Config;

use super::random::SeededRng;
use crate::attack::{Attack, Position};
use crate::call::{PlannedCall, ServerAction};
use crate::ends::Division;
use crate::observation::CallId;
use crate::scenario::{FRAMING, Scenario, Sharing};
use apus_sim::fabric::Settings;
use apus_sim::fault::{self, Outages};
use apus_sim::message::HostId;
use apus_sim::preset;
use apus_sim::topology::{Shape, Topology};
use apus_wire::{DATA_HEADER_LEN, Role};
use apus_workload::Workload;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos, Rate, SECOND};
use rand::distr::Distribution;

/// Longest payload of a datagram: packets of 1500 bytes on Ethernet.
const PACKET_LIMIT: u32 = 1_472;
/// Approximate number of DATA packets: fewer than in other runs, because there are two runs.
const PACKETS: u64 = 15_000;
/// Most calls of a run.
const CALLS: usize = 6_000;
/// Length of the longest message in bytes.
const LONGEST: u32 = 100_000;
/// Long messages of a run, and their lengths in bytes.
const LONG_MESSAGES: usize = 12;
const LONG: [u64; 2] = [150_000, 1_000_000];
/// Most calls to the hostile host.
const BAITS: usize = 40;
/// The purpose of the random numbers for these.
const STREAM: u64 = 104;
/// Lowest and highest load of the honest hosts' links in percent.
const LOADS: [u64; 2] = [2, 40];
/// Lowest and highest share of its link that the hostile host uses, in thousandths.
const SHARES: [u64; 2] = [10, 150];
/// Highest share of calls that lose a packet, in thousandths.
const LOST_PER_MILLE: u64 = 50;
/// Limits of memory that honest hosts do not reach.
const MAX_MESSAGE: u64 = 4_000_000;
const MAX_BYTES: u64 = 32_000_000;
const MAX_PEERS: u64 = 256;

/// Generates the scenario of a seed.
pub(super) fn generate(rng: &mut SeededRng, seed: u64) -> Scenario {
    let hosts = rng.within(3..=8);
    let mbps = rng.one_of(&[1_000, 1_000, 10_000]);
    let host_rate = Rate::from_mbps(mbps).expect("one of the rates above");
    let topology = Topology {
        shape: Shape { racks: 1, hosts_per_rack: hosts + 1, spines: 0 },
        host_rate,
        ..preset::sigcomm18()
    };
    let workload = Workload::published(rng.within(2..=4)).truncated(LONGEST);
    let load = rng.scale(LOADS[0], LOADS[1]);
    let mut calls = calls(rng, hosts, host_rate, &workload, load);
    // Another stream: the other parts of a seed stay as they were.
    let mut others = SeededRng::new(seed, STREAM);
    lengthen(&mut others, host_rate, load, &mut calls);
    let last = calls.last().map_or(0, |call| call.at);
    let attack = Attack {
        position: rng.one_of(&Position::ALL),
        host: hosts,
        target: rng.within(0..hosts),
        per_mille: rng.scale(SHARES[0], SHARES[1]) as u32,
        burst: rng.scale(1, 64) as u32,
        from: if rng.percent(50) { 0 } else { rng.within(0..=last / 2) },
        until: last + MILLISECOND,
        is_silent: false,
    };
    let baits = match attack.position {
        Position::Client => baits(&mut others, &attack),
        _ => Vec::new(),
    };
    let faults = if rng.percent(20) { faults(rng) } else { fault::Settings::default() };
    let sharing = rng.percent(70).then(|| Sharing {
        bursts: rng.scale(2, 64) as u32,
        receive_buffer: rng.scale(500_000, 8_000_000),
        older_hosts: Vec::new(),
    });
    let config = informed(&config(rng), seed);
    // Whether selected packets are lost: not where a replayed BUSY may postpone a RESEND.
    let is_exact = faults == fault::Settings::default() && attack.position != Position::OnLink;
    let lost = if is_exact && rng.percent(50) { lost(rng, calls.len()) } else { BTreeMap::new() };
    Scenario {
        seed,
        config,
        fabric: Settings { sample_every: SECOND, ..Settings::new(topology, seed) },
        division: Division::Whole,
        processes_publish: false,
        restarts: Vec::new(),
        kernel_hosts: Vec::new(),
        packet_limit: PACKET_LIMIT,
        has_link_rate: true,
        consumes_late: false,
        sizes: format!("{workload}, load {load} %"),
        calls,
        faults,
        outages: Outages::default(),
        sharing,
        processors: None,
        overload: None,
        attack: Some(attack),
        baits,
        sealed: None,
        lost,
        heal_at: last + MILLISECOND,
    }
}

/// Makes some messages of each scenario long: they need GRANTs, requests at servers and responses at
/// clients.
fn lengthen(rng: &mut SeededRng, rate: Rate, load: u64, calls: &mut [PlannedCall]) {
    if calls.is_empty() {
        return;
    }
    // The time for the additional bytes passes before the next call.
    let mut later = 0;
    let every = (calls.len() / LONG_MESSAGES).max(1);
    let first = rng.within(0..every);
    for (number, call) in calls.iter_mut().enumerate() {
        call.at += later;
        if number % every != first {
            continue;
        }
        let length = rng.scale(LONG[0], LONG[1]) as u32;
        *(if rng.percent(50) { &mut call.request } else { &mut call.response }) = length;
        later += rate.time(length.into()) * 100 / (load * 4);
    }
}

/// Draws calls to the hostile host.
fn baits(rng: &mut SeededRng, attack: &Attack) -> Vec<(Nanos, HostId)> {
    let count = rng.within(0..=BAITS);
    let bait = |_| (rng.within(attack.from..attack.until), rng.within(0..attack.host));
    let mut baits: Vec<_> = (0..count).map(bait).collect();
    baits.sort_unstable();
    baits
}

/// Generates timers that expire in a run of milliseconds, and limits that an attacker can reach.
fn config(rng: &mut SeededRng) -> Config {
    let resend = rng.scale(1_000, 10_000);
    Config::builder()
        .resend_usecs(resend)
        .resend_interval_usecs(rng.scale(1_000, 5_000))
        .timeout_usecs(rng.scale(50_000, 500_000))
        .need_ack_usecs(rng.scale(500, 10_000))
        .need_ack_limit(rng.scale(1, 10))
        .max_message(MAX_MESSAGE)
        .max_receive_bytes_per_peer(MAX_BYTES / 2)
        .max_receive_bytes(MAX_BYTES)
        .max_receive_bytes_per_host(if rng.percent(50) { MAX_BYTES / 2 } else { MAX_BYTES })
        .max_server_rpcs(1_024)
        .max_server_rpcs_per_host(512)
        .max_peers(MAX_PEERS)
        .max_peers_per_host(MAX_PEERS / 2)
        .peer_idle_secs_min(rng.within(0..=1))
        .peer_idle_secs_max(rng.within(1..=5))
        .build()
        .expect("the limits fit together")
}

/// Enables sender-informed grants for every second seed.
fn informed(config: &Config, seed: u64) -> Config {
    let bytes = if seed % 2 == 1 { 20_000 + seed % 16 * 10_000 } else { 0 };
    config.to_builder().informed_incoming(bytes).build().expect("inside the range")
}

/// Generates faults that the honest hosts recover from easily.
fn faults(rng: &mut SeededRng) -> fault::Settings {
    fault::Settings {
        loss: rng.scale(1, 300) as u32,
        duplication: rng.scale(1, 1_000) as u32,
        reordering: rng.scale(1, 1_000) as u32,
        reordered_by: rng.scale(MICROSECOND, MILLISECOND),
        ..fault::Settings::default()
    }
}

/// Draws messages whose first packet is lost.
fn lost(rng: &mut SeededRng, calls: usize) -> BTreeMap<CallId, Role> {
    let per_mille = rng.scale(1, LOST_PER_MILLE);
    let draw = |call| {
        let is_lost = rng.within(0..1_000) < per_mille;
        is_lost.then(|| (call, rng.one_of(&[Role::Client, Role::Server])))
    };
    (0..calls as CallId).filter_map(draw).collect()
}

/// Generates calls at exponential intervals, between any two honest hosts.
fn calls(
    rng: &mut SeededRng,
    hosts: u32,
    rate: Rate,
    workload: &Workload,
    load: u64,
) -> Vec<PlannedCall> {
    let payload = PACKET_LIMIT - DATA_HEADER_LEN as u32;
    let echoes = rng.percent(60);
    let (mut packets, mut bytes, mut calls) = (0, 0, Vec::new());
    while packets < PACKETS && calls.len() < CALLS {
        let request = workload.sizes().sample(rng.rng()).max(1);
        let response = if echoes { request } else { 8 };
        let count = u64::from(request.div_ceil(payload) + response.div_ceil(payload));
        packets += count;
        bytes += u64::from(request + response) + count * (DATA_HEADER_LEN as u64 + FRAMING);
        calls.push(PlannedCall { request, response, ..QUIET });
    }
    let gap = (rate.time(bytes / u64::from(hosts)) * 100 / load) as f64 / calls.len() as f64;
    let end = gap * calls.len() as f64;
    // Some hosts make their first calls in the middle of an attack. The first two exist from the
    // start.
    let starts: Vec<u64> = (0..hosts)
        .map(|host| if host < 2 || rng.percent(50) { 0 } else { rng.within(0..=end as u64 / 2) })
        .collect();
    let mut at = 0;
    for call in &mut calls {
        // A Poisson process.
        let chance: f64 = rng.within(f64::EPSILON..1.0);
        at += (-chance.ln() * gap) as u64;
        let clients: Vec<u32> = (0..hosts).filter(|host| starts[*host as usize] <= at).collect();
        let from = rng.one_of(&clients);
        (call.at, call.from, call.to) = (at, from, (from + rng.within(1..hosts)) % hosts);
    }
    calls
}

/// A call that is answered at once.
const QUIET: PlannedCall = PlannedCall {
    from: 0,
    to: 0,
    at: 0,
    request: 0,
    response: 0,
    service: 0,
    answer: ServerAction::Reply,
    cancel: None,
    deadline: None,
    idempotent: false,
    repeats: None,
};
