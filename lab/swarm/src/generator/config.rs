//! Random protocol parameters.

use apus_proto::{Config, ConfigBuilder, Profile};

use super::random::SeededRng;
use crate::call::PlannedCall;
use crate::scenario::max_unscheduled;
use apus_sim::fabric::Settings;
use apus_workload::time::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// Length of the longest message of any run, in bytes.
pub(super) const MAX_MESSAGE: u64 = 1_000_000;

/// Generates the parameters of all transports; `required` is the profile, or `None` to draw it.
pub(super) fn generate(
    rng: &mut SeededRng,
    fabric: &Settings,
    required: Option<Profile>,
) -> Config {
    let drawn = if rng.percent(6) { Profile::Kernel } else { Profile::Udp };
    let profile = required.unwrap_or(drawn);
    let mut builder = Config::builder().profile(profile);
    builder = timers(rng, builder);
    if rng.percent(80) {
        builder = unscheduled(rng, builder);
        builder = grants(rng, builder);
        builder = sending(rng, builder, fabric);
        builder = priorities(rng, builder);
    }
    if rng.percent(40) {
        builder = limits(rng, builder, fabric);
    }
    builder = retention(rng, builder);
    if rng.percent(50) {
        builder = builder.informed_incoming(rng.scale(1_000, 300_000));
    }
    if rng.percent(50) {
        builder = builder.incast_unsched_bytes(rng.scale(100, 300_000));
    }
    if rng.percent(50) {
        builder = builder.marked_incoming(rng.scale(1, 100_000));
    }
    if rng.percent(50) {
        builder = builder.spray_ports(rng.scale(1, 64));
    }
    builder.build().expect("the ranges here are inside those of the table")
}

/// Generates timers shorter than the defaults, so that all of them expire in a run of milliseconds.
fn timers(rng: &mut SeededRng, builder: ConfigBuilder) -> ConfigBuilder {
    let resend = rng.scale(500, 10_000);
    builder
        .resend_usecs(resend)
        .resend_interval_usecs(rng.scale(500, 10_000))
        .timeout_usecs(rng.scale(resend.max(10_000), 1_000_000))
        .need_ack_usecs(rng.scale(100, 10_000))
        .need_ack_limit(rng.scale(1, 20))
}

/// Total length of a RESEND and its response on the link, in bytes.
const RESEND_BYTES: u64 = 200;

/// Maximum resend interval. Calls that would need a longer one are removed.
const MAX_RESEND_INTERVAL: Nanos = 200 * MILLISECOND;

/// Raises resend intervals for these calls, and removes calls that would need more than the
/// maximum. A quarter of a server's link must carry the retransmissions if all calls wait for that
/// server. With shorter intervals, retransmissions, which are sent first, can displace all other
/// packets (lab ADR 5): RESENDs in any case, and the unscheduled bytes of requests that a server
/// has no memory for.
pub(super) fn with_longer_intervals(
    config: &Config,
    fabric: &Settings,
    calls: &mut Vec<PlannedCall>,
) -> Config {
    let requests: u64 = calls.iter().map(|call| u64::from(call.request)).sum();
    let is_short_of_memory = config.max_receive_bytes() < requests;
    let mut repeated = 0;
    let mut time_limit = 0;
    let affordable = calls.iter().take_while(|call| {
        let unscheduled = u64::from(call.request).min(max_unscheduled(config));
        repeated += RESEND_BYTES + if is_short_of_memory { unscheduled } else { 0 };
        let needed = 4 * fabric.topology.host_rate.time(repeated);
        let affords = needed <= MAX_RESEND_INTERVAL;
        time_limit = if affords { needed } else { time_limit };
        affords
    });
    let affordable = affordable.count();
    calls.truncate(affordable);
    let least = time_limit.div_ceil(MICROSECOND);
    let resend = config.resend_usecs().max(least);
    config
        .to_builder()
        .resend_usecs(resend)
        .resend_interval_usecs(config.resend_interval_usecs().max(least))
        .timeout_usecs(config.timeout_usecs().max(4 * resend))
        .build()
        .expect("longer times are inside the ranges, too")
}

/// Time for sealed endpoints to agree upon keys again, once packets arrive: an endpoint accepts
/// once a second that its peer has lost its keys, and starts no handshake for a second after a
/// failed one (SEAL-13, SEAL-10).
const SEALED_TIMEOUT: Nanos = 5 * SECOND;

/// Raises the timeout of silent peers to the time that sealed endpoints may need.
pub(super) fn with_time_for_handshakes(config: &Config) -> Config {
    let timeout = config.timeout_usecs().max(SEALED_TIMEOUT / MICROSECOND);
    config.to_builder().timeout_usecs(timeout).build().expect("a longer time is inside the range")
}

/// Raises the number of peers so that each end has room for all others: with fewer, hosts can wait
/// in a circle for each other's room forever.
pub(super) fn with_peers(config: &Config, ends: u32) -> Config {
    let peers = config.max_peers().max(u64::from(ends) - 1);
    config
        .to_builder()
        .max_peers(peers)
        .build()
        .expect("fabrics have fewer hosts than peers are allowed")
}

fn unscheduled(rng: &mut SeededRng, builder: ConfigBuilder) -> ConfigBuilder {
    let least = rng.scale(1, 60_000);
    builder
        .unsched_bytes(rng.scale(1, 100_000))
        .unsched_bytes_min(least)
        .unsched_bytes_max(rng.scale(least, 200_000))
}

fn grants(rng: &mut SeededRng, builder: ConfigBuilder) -> ConfigBuilder {
    let incoming = if rng.percent(50) { 0 } else { rng.scale(3_000, 500_000) };
    let window = if rng.percent(70) { 0 } else { rng.scale(1_000, 100_000) };
    builder
        .max_incoming(incoming)
        .max_overcommit(rng.scale(1, 16))
        .window(window)
        .grant_increment(rng.scale(1, 50_000))
        .grant_fifo_fraction(if rng.percent(50) { 50 } else { rng.within(0..=500) })
        .fifo_grant_increment(rng.scale(1_500, 100_000))
}

fn sending(rng: &mut SeededRng, builder: ConfigBuilder, fabric: &Settings) -> ConfigBuilder {
    let rate = fabric.topology.host_rate.mbps();
    builder
        .link_mbps(if rng.percent(80) { 0 } else { rng.one_of(&[rate, rate / 2, rate * 2]) })
        .max_nic_est_backlog_usecs(rng.scale(1, 200))
        .pacer_fifo_fraction(if rng.percent(50) { 50 } else { rng.within(0..=500) })
        .defer_min_bytes(rng.scale(0, 20_000))
        .max_link_usage(rng.within(50..=100))
        .burst_bytes(rng.scale(1_500, 64_000))
}

fn priorities(rng: &mut SeededRng, builder: ConfigBuilder) -> ConfigBuilder {
    let mut cutoffs = [0; 8];
    let scheduled = rng.within(0..8);
    let mut longest = u64::from(u32::MAX);
    for level in &mut cutoffs[scheduled..] {
        longest = rng.scale(1, longest.min(1_000_000));
        *level = longest as u32;
    }
    builder
        .num_priorities(rng.within(1..=8))
        .unsched_cutoffs(cutoffs)
        .cutoffs_interval_usecs(if rng.percent(50) { 0 } else { rng.scale(1_000, 1_000_000) })
        .cutoffs_min_messages(rng.scale(100, 2_000))
}

/// Generates limits low enough to be reached.
fn limits(rng: &mut SeededRng, builder: ConfigBuilder, fabric: &Settings) -> ConfigBuilder {
    let longest = rng.scale(20_000, MAX_MESSAGE);
    let send = rng.scale(longest, 4 * MAX_MESSAGE);
    let receive = rng.scale(longest, 4 * MAX_MESSAGE);
    let hosts = u64::from(fabric.topology.shape.hosts());
    let builder = builder
        .max_message(longest)
        .max_send_bytes_per_peer(send)
        .max_send_bytes(rng.scale(send, 8 * MAX_MESSAGE))
        .max_receive_bytes_per_peer(receive)
        .max_receive_bytes(rng.scale(receive, 8 * MAX_MESSAGE))
        .max_client_rpcs(rng.scale(1, 4_096))
        .max_server_rpcs(rng.scale(4, 4_096));
    // With fewer, hosts can wait in a circle for each other's room forever.
    if rng.percent(20) { builder.max_peers((hosts - 1).max(1)) } else { builder }
}

fn retention(rng: &mut SeededRng, builder: ConfigBuilder) -> ConfigBuilder {
    let builder = builder.reap_limit(rng.scale(1, 64)).max_dormant_sessions(rng.scale(0, 100_000));
    if rng.percent(60) {
        return builder.peer_idle_secs_min(0).peer_idle_secs_max(rng.within(1..=10));
    }
    builder
}
