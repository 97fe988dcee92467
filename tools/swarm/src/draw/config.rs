//! Which parameters has the protocol?

use apus_proto::{Config, ConfigBuilder, Profile};

use super::dice::Dice;
use crate::call::Call;
use crate::scenario::most_unscheduled;
use apus_sim::fabric::Settings;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos};

/// Bytes of the longest message of any run.
pub(super) const LONGEST: u64 = 1_000_000;

/// Parameters of all transports of a run.
pub(super) fn draw(dice: &mut Dice, fabric: &Settings, with_modules: bool) -> Config {
    let profile = if dice.percent(6) || with_modules { Profile::Kernel } else { Profile::Udp };
    let mut builder = Config::builder().profile(profile);
    builder = timers(dice, builder);
    if dice.percent(80) {
        builder = unscheduled(dice, builder);
        builder = grants(dice, builder);
        builder = sending(dice, builder, fabric);
        builder = priorities(dice, builder);
    }
    if dice.percent(40) {
        builder = limits(dice, builder, fabric);
    }
    builder = forgetting(dice, builder);
    builder.build().expect("the ranges here are inside those of the table")
}

/// Shorter ones than the defaults, so that a run of milliseconds sees them all.
fn timers(dice: &mut Dice, builder: ConfigBuilder) -> ConfigBuilder {
    let resend = dice.scale(500, 10_000);
    builder
        .resend_usecs(resend)
        .resend_interval_usecs(dice.scale(500, 10_000))
        .timeout_usecs(dice.scale(resend.max(10_000), 1_000_000))
        .need_ack_usecs(dice.scale(100, 10_000))
        .need_ack_limit(dice.scale(1, 20))
}

/// Bytes of a RESEND on the link, and of what it is answered with.
const QUESTION: u64 = 200;

/// Nobody waits longer than this before a response is asked for; so many calls that this is too little are too many.
const MOST_PATIENCE: Nanos = 200 * MILLISECOND;

/// The same, but patient enough for these calls, of which those are left out that ask for too much patience: if
/// they all wait for one server, and are repeated as often as they may, a quarter of its link carries that.
/// With less patience what is repeated, which goes first, can leave no room for what is new (ADR 16): RESENDs in
/// any case, and the unscheduled bytes of requests that a server has no memory for.
pub(super) fn patient(config: &Config, fabric: &Settings, calls: &mut Vec<Call>) -> Config {
    let requests: u64 = calls.iter().map(|call| u64::from(call.request)).sum();
    let is_short_of_memory = config.max_receive_bytes() < requests;
    let mut repeated = 0;
    let mut patience = 0;
    let affordable = calls.iter().take_while(|call| {
        let unscheduled = u64::from(call.request).min(most_unscheduled(config));
        repeated += QUESTION + if is_short_of_memory { unscheduled } else { 0 };
        let needed = 4 * fabric.topology.host_rate.time(repeated);
        let affords = needed <= MOST_PATIENCE;
        patience = if affords { needed } else { patience };
        affords
    });
    let affordable = affordable.count();
    calls.truncate(affordable);
    let least = patience.div_ceil(MICROSECOND);
    let resend = config.resend_usecs().max(least);
    config
        .to_builder()
        .resend_usecs(resend)
        .resend_interval_usecs(config.resend_interval_usecs().max(least))
        .timeout_usecs(config.timeout_usecs().max(4 * resend))
        .build()
        .expect("longer times are inside the ranges, too")
}

fn unscheduled(dice: &mut Dice, builder: ConfigBuilder) -> ConfigBuilder {
    let least = dice.scale(1, 60_000);
    builder
        .unsched_bytes(dice.scale(1, 100_000))
        .unsched_bytes_min(least)
        .unsched_bytes_max(dice.scale(least, 200_000))
}

fn grants(dice: &mut Dice, builder: ConfigBuilder) -> ConfigBuilder {
    let incoming = if dice.percent(50) { 0 } else { dice.scale(3_000, 500_000) };
    let window = if dice.percent(70) { 0 } else { dice.scale(1_000, 100_000) };
    builder
        .max_incoming(incoming)
        .max_overcommit(dice.scale(1, 16))
        .window(window)
        .grant_increment(dice.scale(1, 50_000))
        .grant_fifo_fraction(if dice.percent(50) { 50 } else { dice.within(0..=500) })
        .fifo_grant_increment(dice.scale(1_500, 100_000))
}

fn sending(dice: &mut Dice, builder: ConfigBuilder, fabric: &Settings) -> ConfigBuilder {
    let rate = fabric.topology.host_rate.mbps();
    builder
        .link_mbps(if dice.percent(80) { 0 } else { dice.one_of(&[rate, rate / 2, rate * 2]) })
        .max_nic_est_backlog_usecs(dice.scale(1, 200))
        .pacer_fifo_fraction(if dice.percent(50) { 50 } else { dice.within(0..=500) })
        .defer_min_bytes(dice.scale(0, 20_000))
        .max_link_usage(dice.within(50..=100))
        .burst_bytes(dice.scale(1_500, 64_000))
}

fn priorities(dice: &mut Dice, builder: ConfigBuilder) -> ConfigBuilder {
    let mut cutoffs = [0; 8];
    let scheduled = dice.within(0..8);
    let mut longest = u64::from(u32::MAX);
    for level in &mut cutoffs[scheduled..] {
        longest = dice.scale(1, longest.min(1_000_000));
        *level = longest as u32;
    }
    builder
        .num_priorities(dice.within(1..=8))
        .unsched_cutoffs(cutoffs)
        .cutoffs_interval_usecs(if dice.percent(50) { 0 } else { dice.scale(1_000, 1_000_000) })
        .cutoffs_min_messages(dice.scale(100, 2_000))
}

/// Limits that are reached.
fn limits(dice: &mut Dice, builder: ConfigBuilder, fabric: &Settings) -> ConfigBuilder {
    let longest = dice.scale(20_000, LONGEST);
    let send = dice.scale(longest, 4 * LONGEST);
    let receive = dice.scale(longest, 4 * LONGEST);
    let hosts = u64::from(fabric.topology.shape.hosts());
    let builder = builder
        .max_message(longest)
        .max_send_bytes_per_peer(send)
        .max_send_bytes(dice.scale(send, 8 * LONGEST))
        .max_receive_bytes_per_peer(receive)
        .max_receive_bytes(dice.scale(receive, 8 * LONGEST))
        .max_client_rpcs(dice.scale(1, 4_096))
        .max_server_rpcs(dice.scale(4, 4_096))
        .max_unconfirmed_rpcs(dice.scale(1, 1_024))
        .max_unconfirmed_bytes(dice.scale(10_000, LONGEST));
    // With fewer, hosts can wait for each other's room in a circle for ever.
    if dice.percent(20) { builder.max_peers((hosts - 1).max(1)) } else { builder }
}

fn forgetting(dice: &mut Dice, builder: ConfigBuilder) -> ConfigBuilder {
    let builder =
        builder.reap_limit(dice.scale(1, 64)).max_dormant_sessions(dice.scale(0, 100_000));
    if dice.percent(60) {
        return builder.peer_idle_secs_min(0).peer_idle_secs_max(dice.within(1..=10));
    }
    builder
}
