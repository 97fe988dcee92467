//! Long flows, compared with the paper's analysis (section 3.3 and 3.4).
//!
//! N flows share a link of capacity C over a round-trip time RTT without queueing; packets are
//! marked when K or more are queued. All quantities are in packets. The windows then grow to W* =
//! (C RTT + K) / N, and
//!
//! - the queue is never longer than K + N: all windows grow by one more before marks take effect
//!   (10),
//! - it oscillates by A = 1/2 sqrt(2 N (C RTT + K)) (8),
//! - alpha is about sqrt(2 / W*) (6),
//! - the link never idles if K > C RTT / 7 (13).
//!
//! Linux does not grow the window in the round trip of a reduction; its periods are one round trip
//! longer, and its alpha is about a quarter smaller than in the analysis.

use apus_sim::dctcp::{Config, DctcpHost, FULL_FRAME, marking_bound};
use apus_sim::fabric::{Buffers, Settings};
use apus_sim::{Delays, Fabric, Message, Network, Topology};
use apus_workload::Rate;
use apus_workload::time::{MICROSECOND, MILLISECOND};

use super::star::{Plan, Star, fairness};

/// Flows that have converged to their shares.
fn settled(plan: Plan) -> Star {
    let mut star = plan.build();
    star.all_send(160_000_000 / plan.senders);
    star.run(30 * MILLISECOND);
    star
}

/// Measurements of a steady state.
struct Seen {
    lowest: f64,
    highest: f64,
    alpha: f64,
}

/// Samples queue and alpha many times in a round trip.
fn watch(star: &mut Star) -> Seen {
    let mut seen = Seen { lowest: f64::MAX, highest: 0.0, alpha: 0.0 };
    let looks = 2_000;
    for _ in 0..looks {
        let port = star.run(10 * MICROSECOND);
        seen.lowest = seen.lowest.min(port.mean);
        seen.highest = seen.highest.max(port.max);
        let senders = 1..=star.plan.senders;
        let sum: u32 = senders.clone().map(|from| star.info(from).alpha).sum();
        seen.alpha += f64::from(sum) / f64::from(star.plan.senders) / 1_024.0;
    }
    seen.alpha /= f64::from(looks);
    seen
}

/// Section 4.1 and figure 13: full throughput, and a queue of about K instead of the whole buffer.
#[test]
fn two_flows_fill_the_link_with_a_short_queue() {
    let mut star = settled(Plan::default());
    let shares = star.shares(30 * MILLISECOND);
    assert!(fairness(&shares) > 0.98, "{shares:?}");
    let marks = star.run(30 * MILLISECOND);
    assert!(marks.busy > 0.99, "{marks:?}");
    assert!((45.0..65.0).contains(&marks.mean), "{marks:?}: about K = 65");
    assert!(marks.max <= 65.0 + 2.0 + 3.0, "{marks:?}: K + N, and a little for chance");
    assert_eq!(marks.dropped, 0);
    let none = settled(Plan { mark_at: None, room: 700, ..Plan::default() }).run(30 * MILLISECOND);
    assert!(none.busy > 0.99, "{none:?}");
    assert!(none.mean > 5.0 * marks.mean, "{none:?}: TCP fills what there is");
}

/// Section 3.3 and figure 12.
#[test]
fn the_queue_oscillates_as_the_analysis_says() {
    for senders in [2, 10] {
        let (n, k) = (f64::from(senders), 40.0);
        let plan = Plan { senders, mark_at: Some(40), ..Plan::default() };
        let mut star = settled(plan);
        let seen = watch(&mut star);
        let amplitude = (2.0 * n * (plan.pipe() + k)).sqrt() / 2.0;
        let swing = seen.highest - seen.lowest;
        assert!(seen.highest <= k + 1.6 * n + 1.0, "{senders}: {}", seen.highest);
        assert!(seen.highest >= k, "{senders}: {}", seen.highest);
        assert!((0.7..2.0).contains(&(swing / amplitude)), "{senders}: {swing} for {amplitude}");
        let alpha = (2.0 * n / (plan.pipe() + k)).sqrt();
        assert!((0.6..1.1).contains(&(seen.alpha / alpha)), "{senders}: {} {alpha}", seen.alpha);
        assert!(star.run(10 * MILLISECOND).busy > 0.99);
    }
}

/// With very many flows the windows are a few segments and the analysis is coarse, but the queue is
/// bounded.
#[test]
fn forty_flows_are_still_bounded() {
    let mut star = settled(Plan { senders: 40, mark_at: Some(40), ..Plan::default() });
    let port = star.run(20 * MILLISECOND);
    assert!(port.busy > 0.99, "{port:?}");
    assert!(port.max < 1.2 * 80.0, "{port:?}: K + N is 80");
    assert_eq!(port.dropped, 0);
    assert!(fairness(&star.shares(20 * MILLISECOND)) > 0.9);
}

/// Returns the share of a link of 10 Gbit/s behind one of 20 Gbit/s that a single flow uses.
fn used(mark_at: u64, round_trip: u64) -> f64 {
    let rate = |mbps| Rate::from_mbps(mbps).unwrap();
    let (host_rate, fabric_rate) = (rate(20_000), rate(10_000));
    let links = 2 * host_rate.time(FULL_FRAME) + 2 * fabric_rate.time(FULL_FRAME);
    let way = (round_trip - links) / 2;
    let (host_out, host_in) = (way / 2, way / 2);
    let delays = Delays { switch: 0, host_out, host_in, propagation: 0, per_rack: 0 };
    let shape = "2x1x1".parse().unwrap();
    let topology = Topology { shape, host_rate, fabric_rate, delays };
    // The threshold is given for ports at the hosts' rate.
    let settings = Settings {
        mark_at: Some(2 * mark_at),
        buffers: Buffers::PerPort(1_000 * FULL_FRAME),
        ..Settings::new(topology, 1)
    };
    let mut fabric = Fabric::new(&settings, |id| DctcpHost::new(id, Config::default()));
    fabric.submit(&Message { number: 0, from: 0, to: 1, bytes: 200_000_000, at: 0 });
    fabric.advance(50 * MILLISECOND, &mut |_, _| {});
    let left = |fabric: &Fabric<DctcpHost>| fabric.host(0).connection(1).unwrap().unacknowledged;
    let before = left(&fabric);
    fabric.advance(90 * MILLISECOND, &mut |_, _| {});
    let bytes = (before - left(&fabric)) as f64 * 1_538.0 / 1_448.0;
    bytes / fabric_rate.bytes(40 * MILLISECOND) as f64
}

/// Section 3.4 (13): a single flow is the hardest case.
#[test]
fn a_threshold_below_the_bound_costs_throughput() {
    let round_trip = 100 * MICROSECOND;
    let bound = marking_bound(Rate::from_mbps(10_000).unwrap(), round_trip);
    let enough = used(bound, round_trip);
    assert!(enough > 0.998, "{enough}");
    let little = used(bound / 4, round_trip);
    assert!(little < 0.99, "{little}");
    let nothing = used(FULL_FRAME, round_trip);
    assert!(nothing < 0.97 && nothing < little, "{nothing}");
}
