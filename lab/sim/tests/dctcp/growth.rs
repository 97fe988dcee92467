//! Growth and reduction of the window without losses.

use apus_sim::dctcp::{Config, MSS};
use apus_workload::time::MILLISECOND;

use super::wire::{DELAY, Fate, LEFT, RIGHT, Wire};

/// Returns the segments sent in each round trip. A round ends when its first segment is
/// acknowledged.
fn rounds(wire: &Wire) -> Vec<usize> {
    let mut rounds = Vec::new();
    let mut begin = None;
    for record in wire.data() {
        // The link needs about a microsecond for a segment, and a round trip takes more than 40.
        if begin.is_none_or(|begin| record.at > begin + 2 * DELAY) {
            begin = Some(record.at);
            rounds.push(0);
        }
        *rounds.last_mut().unwrap() += 1;
    }
    rounds
}

/// RFC 5681 section 3.1, RFC 6928: 10 segments, then twice as many in each round trip, until the
/// link is full.
#[test]
fn slow_start_doubles_each_round_trip() {
    let mut wire = Wire::losing(Config::default(), &[]);
    wire.submit(LEFT, 70 * MSS);
    wire.run();
    let rounds = rounds(&wire);
    assert_eq!(rounds[..2], [10, 20], "{rounds:?}");
    assert_eq!(wire.info(LEFT).threshold, None);
    assert!(wire.info(LEFT).window >= 60);
}

/// One flow alone fills its link: the window grows beyond the needs of the round trip, but not
/// forever.
#[test]
fn a_window_grows_as_long_as_it_limits() {
    let mut wire = Wire::losing(Config::default(), &[]);
    let number = wire.submit(LEFT, 2_000 * MSS);
    wire.run();
    let took = wire.delivered(number).unwrap();
    let ideal = 2_000 * 1_230 + DELAY;
    assert!(took < ideal + 4 * DELAY, "{took} against {ideal}");
    let window = wire.info(LEFT).window;
    assert!((34..=140).contains(&window), "{window}: a round trip has room for 34");
}

/// Short messages with pauses do not probe the path.
#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut wire = Wire::losing(Config::default(), &[]);
    for _ in 0..100 {
        wire.submit(LEFT, 3 * MSS);
        let next = wire.now + MILLISECOND;
        wire.run_until(next);
    }
    assert_eq!(wire.info(LEFT).window, 10);
}

/// RFC 5681 section 4.1: after silence of a retransmission timeout the window is the initial one.
#[test]
fn an_idle_connection_restarts_with_the_initial_window() {
    for slow_start_after_idle in [true, false] {
        let config = Config { slow_start_after_idle, ..Config::default() };
        let mut wire = Wire::losing(config, &[]);
        wire.submit(LEFT, 70 * MSS);
        wire.run_until(100 * MILLISECOND);
        let before = wire.data().count();
        wire.submit(LEFT, 70 * MSS);
        let first_ack = wire.now + 2 * DELAY;
        wire.run_until(first_ack);
        let burst = wire.data().count() - before;
        // Until the first ACK the link could carry more than thirty.
        assert!(if slow_start_after_idle { burst == 10 } else { burst > 30 }, "{burst}");
    }
}

/// The DCTCP paper, section 3.1: alpha converges to the fraction of marked segments, and each
/// window of data with marks reduces the window by alpha / 2.
#[test]
fn alpha_follows_the_marks() {
    for every in [8, 12] {
        let mut count = 0;
        let mut wire = Wire::new(Config::default(), move |packet, _| {
            count += u32::from(packet.payload > 0);
            let marked = packet.payload > 0 && count % every == 0;
            if marked { Fate::Marked } else { Fate::Arrives }
        });
        wire.submit(LEFT, 10_000 * MSS);
        wire.run_until(5 * MILLISECOND);
        let mut sum = 0;
        for _ in 0..50 {
            let next = wire.now + MILLISECOND / 2;
            wire.run_until(next);
            sum += wire.info(LEFT).alpha;
        }
        // Windows of few segments have at most one mark; windows with a mark are a little shorter.
        let (alpha, fraction) = (sum / 50, 1_024 / every);
        assert!(
            (fraction * 95 / 100..fraction * 125 / 100).contains(&alpha),
            "{alpha}: {fraction}"
        );
        let counters = wire.info(LEFT).counters;
        let marks = counters.segments / u64::from(every);
        assert!(counters.reductions.abs_diff(marks) < 5, "{} for {marks}", counters.reductions);
        assert_eq!(counters.retransmissions, 0);
    }
}

/// RFC 8257 section 3.2: the segments of each ACK were all marked or all not marked.
#[test]
fn the_echo_is_exact() {
    let pattern = |number: u64| number * 7 % 11 < 4 || number.is_multiple_of(23);
    let mut wire = Wire::new(Config::default(), move |packet, segment| {
        let marked = packet.payload > 0 && pattern(segment.start / u64::from(MSS));
        if marked { Fate::Marked } else { Fate::Arrives }
    });
    wire.submit(LEFT, 1_000 * MSS);
    wire.run();
    let mut told = 0;
    for record in wire.sent.iter().filter(|record| record.from == RIGHT) {
        let upto = record.segment.ack.upto / u64::from(MSS);
        assert!((told..upto).all(|number| pattern(number) == record.segment.ack.echo), "{upto}");
        told = upto;
    }
    assert_eq!(told, 1_000);
}

/// Delayed ACKs: half as many as segments (RFC 1122 section 4.2.3.2), except at the start.
#[test]
fn every_second_segment_is_acknowledged() {
    let mut wire = Wire::losing(Config::default(), &[]);
    wire.submit(LEFT, 1_000 * MSS);
    wire.run();
    let acks = wire.sent.iter().filter(|record| record.from == RIGHT).count();
    assert!((500..=510).contains(&acks), "{acks}");
}

/// Data in both directions carries the ACKs.
#[test]
fn data_carries_acks() {
    let mut wire = Wire::losing(Config::default(), &[]);
    wire.submit(LEFT, 2_000 * MSS);
    wire.submit(RIGHT, 2_000 * MSS);
    wire.run();
    let acks = wire.sent.iter().filter(|record| record.segment.len == 0).count();
    assert!(acks < 100, "{acks}");
}
