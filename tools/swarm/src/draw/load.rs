//! Who calls whom, and when?

use apus_proto::Config;
use apus_wire::DATA_HEADER_LEN;

use super::dice::Dice;
use super::sizes::Sizes;
use crate::call::{Answer, Call};
use apus_sim::fabric::Settings;
use apus_sim::message::HostId;
use apus_workload::time::{MILLISECOND, Nanos, SECOND};

/// DATA packets of a run, roughly: 50,000 to 130,000, so that with grants, repetitions and what else there is
/// to say a run has 100,000 packets on average.
const PACKETS: [u64; 2] = [20_000, 130_000];

/// Calls that a run may have: short ones cost more than their packets.
const MOST_CALLS: usize = 30_000;

/// Who calls whom.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Uniform,
    /// Everybody calls one.
    ToOne(HostId),
    /// One calls everybody.
    FromOne(HostId),
    /// Two call each other.
    Pair,
}

/// What is drawn once for all calls of a run. Shares in per cent.
struct Habits {
    pattern: Pattern,
    /// How many calls come at the same time.
    burst: u64,
    gap: Nanos,
    longest_service: Nanos,
    abandoned: u32,
    cancelled: u32,
    deadlines: u32,
    idempotent: u32,
    /// Calls between two long silences.
    act: usize,
    silence: Nanos,
}

/// All calls of a run, in order of time.
pub(super) fn draw(
    dice: &mut Dice,
    fabric: &Settings,
    config: &Config,
    sizes: &Sizes,
    packet_limit: u32,
) -> Vec<Call> {
    let hosts = fabric.topology.shape.hosts();
    let budget = dice.within(PACKETS[0]..=PACKETS[1]);
    let lengths = lengths(dice, sizes, packet_limit, budget);
    let bytes: u64 = lengths.iter().map(|(a, b)| u64::from(a + b)).sum();
    let mean = (bytes / lengths.len() as u64 + 200) / u64::from(hosts).min(8);
    let load = dice.within(10..=150);
    let gap = fabric.topology.host_rate.time(mean) * 100 / load;
    let habits = habits(dice, hosts, config, gap, lengths.len());
    let mut at = 0;
    let mut calls = Vec::new();
    let mut left_in_burst = 0;
    for (number, (request, response)) in lengths.into_iter().enumerate() {
        if number % habits.act == habits.act - 1 {
            at += dice.within(0..=habits.silence);
        }
        if left_in_burst == 0 {
            left_in_burst = dice.within(1..=habits.burst);
            at += dice.within(0..=2 * habits.gap * left_in_burst);
        }
        left_in_burst -= 1;
        calls.push(call(dice, &habits, hosts, (request, response), at));
    }
    calls
}

fn lengths(dice: &mut Dice, sizes: &Sizes, packet_limit: u32, budget: u64) -> Vec<(u32, u32)> {
    let payload = packet_limit - DATA_HEADER_LEN as u32;
    let mut packets = 0;
    let mut lengths = Vec::new();
    while packets < budget && lengths.len() < MOST_CALLS {
        let (request, response) = sizes.call(dice);
        // A packet more for what is not data.
        packets += u64::from(request.div_ceil(payload) + response.div_ceil(payload)) + 1;
        lengths.push((request, response));
    }
    lengths
}

fn habits(dice: &mut Dice, hosts: u32, config: &Config, gap: Nanos, calls: usize) -> Habits {
    let mut percent =
        |often: u32, most: u32| if dice.percent(often) { dice.within(0..=most) } else { 0 };
    let (abandoned, cancelled, deadlines, idempotent) =
        (percent(20, 10), percent(25, 15), percent(25, 40), percent(30, 60));
    let acts = if dice.percent(15) { dice.within(2..=4) } else { 1 };
    Habits {
        pattern: match dice.within(0..8) {
            0..5 => Pattern::Uniform,
            5 => Pattern::ToOne(dice.within(0..hosts)),
            6 => Pattern::FromOne(dice.within(0..hosts)),
            _ => Pattern::Pair,
        },
        burst: if dice.percent(60) { 1 } else { dice.scale(2, 200) },
        gap,
        longest_service: if dice.percent(50) { 0 } else { dice.scale(1_000, 10 * MILLISECOND) },
        abandoned,
        cancelled,
        deadlines,
        idempotent,
        act: (calls / acts).max(1),
        // Long enough, now and then, for peers to be forgotten.
        silence: if acts == 1 { 0 } else { (2 * config.peer_idle_secs_max()).min(60) * SECOND },
    }
}

fn call(
    dice: &mut Dice,
    habits: &Habits,
    hosts: u32,
    (request, response): (u32, u32),
    at: Nanos,
) -> Call {
    let (from, to) = ends(dice, habits.pattern, hosts);
    let answer = if dice.percent(habits.abandoned) { Answer::Abandon } else { Answer::Reply };
    Call {
        from,
        to,
        at,
        request,
        response,
        service: if habits.longest_service == 0 {
            0
        } else {
            dice.scale(0, habits.longest_service)
        },
        answer,
        cancel: dice.percent(habits.cancelled).then(|| dice.scale(0, 5 * MILLISECOND)),
        deadline: dice.percent(habits.deadlines).then(|| dice.scale(1_000, 200 * MILLISECOND)),
        idempotent: dice.percent(habits.idempotent),
    }
}

/// Two different hosts.
fn ends(dice: &mut Dice, pattern: Pattern, hosts: u32) -> (HostId, HostId) {
    let one = dice.within(0..hosts);
    let other = (one + dice.within(1..hosts)) % hosts;
    match pattern {
        Pattern::Uniform => (one, other),
        Pattern::ToOne(to) if one == to => (other, to),
        Pattern::ToOne(to) => (one, to),
        Pattern::FromOne(from) if other == from => (from, one),
        Pattern::FromOne(from) => (from, other),
        Pattern::Pair => (one % 2, 1 - one % 2),
    }
}
