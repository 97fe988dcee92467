//! Retransmission of exactly the lost segments, as soon as a loss can be detected.

use apus_sim::dctcp::{Config, MSS};
use apus_workload::time::MILLISECOND;

use super::wire::{DELAY, Fate, LEFT, RIGHT, Wire};

/// Approximate round-trip time on an idle wire.
const ROUND_TRIP: u64 = 2 * DELAY + 1_500;

/// Returns the completion time of a message of this number of full segments.
fn send(wire: &mut Wire, segments: u32) -> u64 {
    let begin = wire.now;
    let number = wire.submit(LEFT, segments * MSS);
    wire.run();
    wire.delivered(number).expect("it arrives in the end") - begin
}

#[test]
fn a_lost_segment_costs_a_round_trip_and_no_timeout() {
    let clean = send(&mut Wire::losing(Config::default(), &[]), 100);
    let mut wire = Wire::losing(Config::default(), &[40]);
    let lossy = send(&mut wire, 100);
    assert!(lossy < clean + 3 * ROUND_TRIP, "{lossy} against {clean}");
    let counters = wire.info(LEFT).counters;
    assert_eq!((counters.recoveries, counters.retransmissions), (1, 1), "{counters:?}");
    assert_eq!((counters.timeouts, counters.probes, counters.segments), (0, 0, 101));
}

/// Fast retransmit: the third segment beyond the gap suffices (RFC 5681 section 3.2).
#[test]
fn three_segments_beyond_a_gap_prove_a_loss() {
    for (beyond, probes) in [(3, 0), (4, 0), (9, 0)] {
        let mut wire = Wire::losing(Config::default(), &[0]);
        send(&mut wire, 1 + beyond);
        let counters = wire.info(LEFT).counters;
        assert_eq!((counters.recoveries, counters.retransmissions), (1, 1), "{beyond}");
        assert_eq!((counters.probes, counters.timeouts), (probes, 0), "{beyond}: {counters:?}");
    }
}

/// Fewer segments may have been reordered: the reordering timer waits for them, without a timeout.
#[test]
fn one_segment_beyond_a_gap_proves_a_loss_after_a_while() {
    let mut wire = Wire::losing(Config::default(), &[1]);
    send(&mut wire, 30);
    let mut wire = Wire::losing(Config::default(), &[28]);
    let took = send(&mut wire, 30);
    let counters = wire.info(LEFT).counters;
    assert_eq!((counters.recoveries, counters.retransmissions), (1, 1), "{counters:?}");
    assert_eq!(counters.timeouts, 0);
    assert!(took < 3 * MILLISECOND, "{took}");
}

/// RFC 8985 section 7: the probe repairs the last segment, or reveals other missing segments.
#[test]
fn a_lost_tail_costs_a_probe_and_no_timeout() {
    for (lost, repaired) in [(&[29][..], 0), (&[27, 28, 29], 2)] {
        let which: &'static [usize] = lost.to_vec().leak();
        let mut wire = Wire::losing(Config::default(), which);
        let took = send(&mut wire, 30);
        let counters = wire.info(LEFT).counters;
        assert_eq!((counters.probes, counters.timeouts), (1, 0), "{counters:?}");
        assert_eq!(counters.retransmissions, repaired);
        assert!(took < 5 * MILLISECOND, "{took}");
    }
}

/// The only segment in flight, so no later segment reveals its loss; the second message also loses
/// its probe.
#[test]
fn a_lone_segment_is_repaired_by_the_timer() {
    let mut wire = Wire::losing(Config::default(), &[0]);
    let took = send(&mut wire, 1);
    assert!((9 * MILLISECOND..12 * MILLISECOND).contains(&took), "{took}");
    let mut wire = Wire::losing(Config::default(), &[0, 1]);
    let took = send(&mut wire, 1);
    assert!((19 * MILLISECOND..33 * MILLISECOND).contains(&took), "{took}");
    assert_eq!(wire.info(LEFT).counters.timeouts, 1);
}

/// RFC 6298 section 5.5: each timeout is twice as long.
#[test]
fn timeouts_double() {
    let mut wire =
        Wire::new(
            Config::default(),
            |packet, _| {
                if packet.from == LEFT { Fate::Lost } else { Fate::Arrives }
            },
        );
    wire.submit(LEFT, 1_000);
    wire.run_until(700 * MILLISECOND);
    let times: Vec<u64> = wire.data().map(|record| record.at / MILLISECOND).collect();
    // The first segment, the probe at the time of the first timeout, then the timeouts.
    assert_eq!(times, [0, 10, 20, 40, 80, 160, 320, 640]);
}

/// RACK detects the loss of a retransmission by segments that were sent after it (RFC 8985 section
/// 3.1).
#[test]
fn a_lost_retransmission_costs_no_timeout() {
    let mut copies = 0;
    let mut wire = Wire::new(Config::default(), move |packet, segment| {
        let hit = packet.from == LEFT && segment.start == 200 * u64::from(MSS);
        copies += u32::from(hit);
        if hit && copies <= 3 { Fate::Lost } else { Fate::Arrives }
    });
    let took = send(&mut wire, 2_000);
    let counters = wire.info(LEFT).counters;
    assert_eq!((counters.timeouts, counters.retransmissions), (0, 3), "{counters:?}");
    assert!(took < 10 * MILLISECOND, "{took}");
}

#[test]
fn after_a_timeout_everything_is_sent_again_in_slow_start() {
    let until = 2 * MILLISECOND;
    let mut sent = 0;
    let mut wire = Wire::new(Config::default(), move |packet, _| {
        sent += u32::from(packet.from == LEFT && packet.payload > 0);
        // Everything after the first window is lost, with its probe.
        let dead = packet.from == LEFT && (11..=21).contains(&sent);
        if dead { Fate::Lost } else { Fate::Arrives }
    });
    let took = send(&mut wire, 20);
    assert!(took > until);
    let counters = wire.info(LEFT).counters;
    assert_eq!(counters.timeouts, 1, "{counters:?}");
    assert_eq!(counters.duplicates, 0, "nothing is sent twice that had arrived");
    let window = wire.info(LEFT).window;
    assert!((8..=13).contains(&window), "{window}: ten segments in slow start from one");
}

/// ACKs are cumulative, so the loss of some does not affect the data.
#[test]
fn lost_acks_do_no_harm() {
    let mut count = 0;
    let mut wire = Wire::new(Config::default(), move |packet, _| {
        count += u32::from(packet.from == RIGHT);
        if packet.from == RIGHT && count % 3 != 0 { Fate::Lost } else { Fate::Arrives }
    });
    send(&mut wire, 500);
    let counters = wire.info(LEFT).counters;
    assert_eq!((counters.retransmissions, counters.recoveries), (0, 0), "{counters:?}");
}

/// Overtaken by one or two segments: no retransmission (RFC 5681's threshold, RACK's window).
#[test]
fn slight_reordering_does_not_count_as_loss() {
    let mut count = 0;
    let mut wire = Wire::new(Config::default(), move |packet, _| {
        count += u32::from(packet.payload > 0);
        let late = packet.payload > 0 && count % 50 == 20;
        if late { Fate::Late(2_400) } else { Fate::Arrives }
    });
    send(&mut wire, 500);
    let counters = wire.info(LEFT).counters;
    assert_eq!((counters.retransmissions, counters.recoveries), (0, 0), "{counters:?}");
}

/// Overtaken by many segments: it is retransmitted, the duplicate is reported, and the window is
/// restored; from then on the sender waits longer (RFC 8985 section 6.2 step 4; Linux,
/// `tcp_try_undo_dsack`).
#[test]
fn a_false_loss_is_undone() {
    let mut count = 0;
    let mut wire = Wire::new(Config::default(), move |packet, _| {
        count += u32::from(packet.payload > 0);
        let late = packet.payload > 0 && [60, 260, 300].contains(&count);
        if late { Fate::Late(9_000) } else { Fate::Arrives }
    });
    send(&mut wire, 500);
    let counters = wire.info(LEFT).counters;
    assert_eq!((counters.recoveries, counters.undone), (1, 1), "{counters:?}");
    assert_eq!((counters.retransmissions, counters.duplicates), (1, 1));
}

/// RFC 8985 section 7.4: a loss repaired by a probe is congestion that is not reported in any other
/// way.
#[test]
fn a_loss_that_a_probe_repairs_reduces_the_window() {
    let mut wire = Wire::losing(Config::default(), &[29]);
    send(&mut wire, 30);
    let before = wire.info(LEFT);
    assert_eq!(before.threshold, None);
    send(&mut wire, 3);
    let after = wire.info(LEFT);
    assert!(after.threshold.is_some(), "{after:?}");
    assert_eq!(after.counters.reductions, 1);
}
