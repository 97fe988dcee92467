//! Random calls.

use apus_proto::Config;
use apus_wire::DATA_HEADER_LEN;

use super::random::SeededRng;
use super::sizes::Sizes;
use crate::call::{PlannedCall, ServerAction};
use apus_sim::fabric::Settings;
use apus_sim::message::HostId;
use apus_workload::time::{MILLISECOND, Nanos, SECOND};

/// Approximate number of DATA packets in a run. With grants, retransmissions and other control
/// packets a run has 100,000 packets on average.
const PACKETS: [u64; 2] = [20_000, 130_000];

/// Maximum number of calls in a run: short calls cost more than their packets.
const MAX_CALLS: usize = 30_000;

/// Communication pattern.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Uniform,
    /// All hosts call one.
    ToOne(HostId),
    /// One host calls all others.
    FromOne(HostId),
    /// Two hosts call each other.
    Pair,
}

/// Parameters common to all calls of a run. Shares are in percent.
struct LoadProfile {
    pattern: Pattern,
    /// Maximum number of simultaneous calls.
    burst: u64,
    gap: Nanos,
    longest_service: Nanos,
    abandoned: u32,
    cancelled: u32,
    deadlines: u32,
    idempotent: u32,
    /// Calls between two long pauses.
    act: usize,
    silence: Nanos,
}

/// Generates all calls of a run, in chronological order.
pub(super) fn generate(
    rng: &mut SeededRng,
    fabric: &Settings,
    config: &Config,
    sizes: &Sizes,
    packet_limit: u32,
) -> Vec<PlannedCall> {
    let hosts = fabric.topology.shape.hosts();
    let budget = rng.within(PACKETS[0]..=PACKETS[1]);
    let lengths = lengths(rng, sizes, packet_limit, budget);
    let bytes: u64 = lengths.iter().map(|(a, b)| u64::from(a + b)).sum();
    let mean = (bytes / lengths.len() as u64 + 200) / u64::from(hosts).min(8);
    let load = rng.within(10..=150);
    let gap = fabric.topology.host_rate.time(mean) * 100 / load;
    let profile = profile(rng, hosts, config, gap, lengths.len());
    let mut at = 0;
    let mut calls = Vec::new();
    let mut left_in_burst = 0;
    for (number, (request, response)) in lengths.into_iter().enumerate() {
        if number % profile.act == profile.act - 1 {
            at += rng.within(0..=profile.silence);
        }
        if left_in_burst == 0 {
            left_in_burst = rng.within(1..=profile.burst);
            at += rng.within(0..=2 * profile.gap * left_in_burst);
        }
        left_in_burst -= 1;
        calls.push(call(rng, &profile, hosts, (request, response), at));
    }
    calls
}

fn lengths(rng: &mut SeededRng, sizes: &Sizes, packet_limit: u32, budget: u64) -> Vec<(u32, u32)> {
    let payload = packet_limit - DATA_HEADER_LEN as u32;
    let mut packets = 0;
    let mut lengths = Vec::new();
    while packets < budget && lengths.len() < MAX_CALLS {
        let (request, response) = sizes.call(rng);
        // One packet more for control packets.
        packets += u64::from(request.div_ceil(payload) + response.div_ceil(payload)) + 1;
        lengths.push((request, response));
    }
    lengths
}

fn profile(
    rng: &mut SeededRng,
    hosts: u32,
    config: &Config,
    gap: Nanos,
    calls: usize,
) -> LoadProfile {
    let mut percent =
        |often: u32, most: u32| if rng.percent(often) { rng.within(0..=most) } else { 0 };
    let (abandoned, cancelled, deadlines, idempotent) =
        (percent(20, 10), percent(25, 15), percent(25, 40), percent(30, 60));
    let acts = if rng.percent(15) { rng.within(2..=4) } else { 1 };
    LoadProfile {
        pattern: match rng.within(0..8) {
            0..5 => Pattern::Uniform,
            5 => Pattern::ToOne(rng.within(0..hosts)),
            6 => Pattern::FromOne(rng.within(0..hosts)),
            _ => Pattern::Pair,
        },
        burst: if rng.percent(60) { 1 } else { rng.scale(2, 200) },
        gap,
        longest_service: if rng.percent(50) { 0 } else { rng.scale(1_000, 10 * MILLISECOND) },
        abandoned,
        cancelled,
        deadlines,
        idempotent,
        act: (calls / acts).max(1),
        // Sometimes long enough that peers are dropped.
        silence: if acts == 1 { 0 } else { (2 * config.peer_idle_secs_max()).min(60) * SECOND },
    }
}

fn call(
    rng: &mut SeededRng,
    profile: &LoadProfile,
    hosts: u32,
    (request, response): (u32, u32),
    at: Nanos,
) -> PlannedCall {
    let (from, to) = ends(rng, profile.pattern, hosts);
    let answer =
        if rng.percent(profile.abandoned) { ServerAction::Abandon } else { ServerAction::Reply };
    PlannedCall {
        from,
        to,
        at,
        request,
        response,
        service: if profile.longest_service == 0 {
            0
        } else {
            rng.scale(0, profile.longest_service)
        },
        answer,
        cancel: rng.percent(profile.cancelled).then(|| rng.scale(0, 5 * MILLISECOND)),
        deadline: rng.percent(profile.deadlines).then(|| rng.scale(1_000, 200 * MILLISECOND)),
        idempotent: rng.percent(profile.idempotent),
        repeats: None,
    }
}

/// Returns two different hosts.
fn ends(rng: &mut SeededRng, pattern: Pattern, hosts: u32) -> (HostId, HostId) {
    let one = rng.within(0..hosts);
    let other = (one + rng.within(1..hosts)) % hosts;
    match pattern {
        Pattern::Uniform => (one, other),
        Pattern::ToOne(to) if one == to => (other, to),
        Pattern::ToOne(to) => (one, to),
        Pattern::FromOne(from) if other == from => (from, one),
        Pattern::FromOne(from) => (from, other),
        Pattern::Pair => (one % 2, 1 - one % 2),
    }
}
