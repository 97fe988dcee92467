//! Clock offset: estimates the difference of two clocks from the packets between their hosts.
//!
//! A packet from A to B that departs at `a` and arrives at `b`, each on its own host's clock,
//! bounds the offset: B's clock is ahead by at most `b - a`, since no packet arrives before it
//! departs. A packet in the other direction is a lower bound. Over time, the bounds are two clouds
//! of points with a corridor between them. The offset is a line within it, with a slope since one
//! clock is faster. The estimate is the middle of the widest straight corridor, which maximizes the
//! sum of the smallest delays in both directions (convex hulls, as in Zhang, Liu, Xia: "Clock
//! synchronization algorithms for network measurements", INFOCOM 2002). Packets cannot show how the
//! width divides between the two directions. Half of it, which is half the sum of the smallest
//! delays, is therefore the uncertainty.

/// Bound from a packet: time on the reference clock, and apparent offset of the other clock, both
/// in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OffsetBound {
    pub(super) at: f64,
    pub(super) ahead: f64,
}

/// Offset of a clock from the reference: `offset` at the reference's time 0, plus `rate` per
/// nanosecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OffsetLine {
    /// Nanoseconds.
    pub(super) offset: f64,
    /// Nanoseconds per nanosecond: 0.00005 is 50 ppm.
    pub(super) rate: f64,
    /// Half the width of the corridor in nanoseconds. Negative if there is no corridor: some packet
    /// appears to arrive before it departs.
    pub(super) uncertainty: f64,
}

/// Largest rate considered. Computer clocks that differ by more are broken, and with few packets
/// steeper lines would fit too.
const MAX_RATE: f64 = 1e-3;

/// Tolerance for noise, in nanoseconds or as a share: if the level corridor is narrower than the
/// widest corridor by at most this, the estimate has no slope.
const NOISE: (f64, f64) = (20.0, 0.01);

/// Returns the middle of the widest corridor above `lower` and below `upper`; `None` if one of them
/// is empty.
pub(super) fn estimate_offset(lower: &[OffsetBound], upper: &[OffsetBound]) -> Option<OffsetLine> {
    // The lower hull of the upper bounds; the upper hull of the lower bounds, as the lower hull of
    // their mirror image.
    let mirrored: Vec<OffsetBound> =
        lower.iter().map(|bound| OffsetBound { ahead: -bound.ahead, ..*bound }).collect();
    let (above, below) = (lower_hull(upper), lower_hull(&mirrored));
    if above.is_empty() || below.is_empty() {
        return None;
    }
    let clock_offset = |rate: f64| {
        let ceiling = minimum(&above, |bound| bound.ahead - rate * bound.at);
        let floor = -minimum(&below, |bound| bound.ahead + rate * bound.at);
        (floor, ceiling)
    };
    let width = |rate: f64| {
        let (floor, ceiling) = clock_offset(rate);
        ceiling - floor
    };
    let widest = widest(width);
    let enough = width(widest) - NOISE.0.max(width(widest) * NOISE.1);
    let rate = nearest_to_level(widest, |rate| width(rate) >= enough);
    let (floor, ceiling) = clock_offset(rate);
    Some(OffsetLine {
        offset: f64::midpoint(floor, ceiling),
        rate,
        uncertainty: (ceiling - floor) / 2.0,
    })
}

fn minimum(bounds: &[OffsetBound], value: impl Fn(&OffsetBound) -> f64) -> f64 {
    bounds.iter().map(value).fold(f64::INFINITY, f64::min)
}

/// Returns the rate that maximizes the width of the corridor. The width is concave in the rate: a
/// minimum of lines minus a maximum of lines.
fn widest(width: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-MAX_RATE, MAX_RATE);
    // Each round narrows the interval to two thirds; the result is exact to far less than a
    // picosecond per day.
    for _ in 0..100 {
        let (left, right) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
        if width(left) < width(right) {
            low = left;
        } else {
            high = right;
        }
    }
    f64::midpoint(low, high)
}

/// Returns the rate between 0 and `good` that is nearest to 0 and still good.
fn nearest_to_level(good: f64, is_good: impl Fn(f64) -> bool) -> f64 {
    if is_good(0.0) {
        return 0.0;
    }
    let (mut bad, mut good) = (0.0, good);
    for _ in 0..60 {
        let middle = f64::midpoint(bad, good);
        *(if is_good(middle) { &mut good } else { &mut bad }) = middle;
    }
    good
}

/// Returns the lower convex hull, from left to right (Andrew's monotone chain).
fn lower_hull(bounds: &[OffsetBound]) -> Vec<OffsetBound> {
    let mut sorted: Vec<OffsetBound> = bounds
        .iter()
        .filter(|bound| bound.at.is_finite() && bound.ahead.is_finite())
        .copied()
        .collect();
    sorted.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.ahead.total_cmp(&b.ahead)));
    let mut hull: Vec<OffsetBound> = Vec::new();
    for bound in sorted {
        if hull.last().is_some_and(|last| last.at == bound.at) {
            // Same time, and not lower.
            continue;
        }
        while let [.., first, second] = hull[..]
            && !turns_left(first, second, bound)
        {
            hull.pop();
        }
        hull.push(bound);
    }
    hull
}

fn turns_left(a: OffsetBound, b: OffsetBound, c: OffsetBound) -> bool {
    (b.at - a.at) * (c.ahead - a.ahead) - (b.ahead - a.ahead) * (c.at - a.at) > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: f64 = 1e9;

    fn bound(at: f64, ahead: f64) -> OffsetBound {
        OffsetBound { at, ahead }
    }

    #[test]
    fn packets_in_both_directions_are_required() {
        assert_eq!(estimate_offset(&[], &[bound(0.0, 1.0)]), None);
        assert_eq!(estimate_offset(&[bound(0.0, 1.0)], &[]), None);
        assert_eq!(estimate_offset(&[bound(f64::NAN, 1.0)], &[bound(0.0, 1.0)]), None);
    }

    #[test]
    fn one_packet_each_way_is_half_the_round_trip() {
        // Clocks that agree; 3000 ns there and 1000 ns back.
        let line = estimate_offset(&[bound(5.0, -1_000.0)], &[bound(0.0, 3_000.0)]).unwrap();
        assert_eq!(line, OffsetLine { offset: 1_000.0, rate: 0.0, uncertainty: 2_000.0 });
    }

    #[test]
    fn contradicting_packets_have_negative_uncertainty() {
        let line = estimate_offset(&[bound(0.0, 10_000.0)], &[bound(0.0, 3_000.0)]).unwrap();
        assert!(line.uncertainty < 0.0, "{line:?}");
    }

    /// A clock that is an hour ahead and 50 ppm fast; delays of at least 4 µs there and 2 µs back.
    #[test]
    fn an_offset_of_an_hour_and_fifty_ppm_is_found() {
        let truth = |at: f64| 3_600.0 * SECOND + 50e-6 * at;
        let packets = |least: f64| {
            move |index: u32| {
                let at = f64::from(index) * SECOND / 500.0;
                // Most packets are delayed, a few are not.
                (at, least + f64::from(index * 7_919 % 97) * 100.0)
            }
        };
        let there = (0..1_000).map(packets(4_000.0));
        let back = (0..1_000).map(packets(2_000.0));
        let upper: Vec<_> = there.map(|(at, delay)| bound(at, truth(at) + delay)).collect();
        let lower: Vec<_> = back.map(|(at, delay)| bound(at, truth(at) - delay)).collect();
        let line = estimate_offset(&lower, &upper).unwrap();
        assert!((line.rate - 50e-6).abs() < 0.1e-6, "{line:?}");
        // The asymmetry of the delays is invisible: 1 µs of error, within the uncertainty of 3 µs.
        assert!((line.uncertainty - 3_000.0).abs() < 100.0, "{line:?}");
        for at in [0.0, SECOND, 2.0 * SECOND] {
            let error = line.offset + line.rate * at - truth(at);
            assert!((error - 1_000.0).abs() < 100.0, "{at}: {error}");
        }
    }

    #[test]
    fn few_packets_do_not_make_a_rate() {
        // All outbound packets are early, all return packets are late: any line between them would
        // fit.
        let upper = [bound(0.0, 5_000.0), bound(10.0, 4_000.0)];
        let lower = [bound(1_000.0, -4_000.0), bound(1_010.0, -5_000.0)];
        let line = estimate_offset(&lower, &upper).unwrap();
        assert!(line.rate.abs() <= MAX_RATE && line.uncertainty > 3_900.0, "{line:?}");
    }

    proptest! {
        /// For any delays, the true offset is within the uncertainty wherever both clouds have
        /// points.
        #[test]
        fn the_true_offset_is_in_the_corridor(
            offset in -1e12..1e12_f64,
            rate in -200e-6..200e-6_f64,
            there in prop::collection::vec((0.0..1e9_f64, 100.0..50_000.0_f64), 1..60),
            back in prop::collection::vec((0.0..1e9_f64, 100.0..50_000.0_f64), 1..60),
        ) {
            let truth = |at: f64| offset + rate * at;
            let upper: Vec<_> =
                there.iter().map(|(at, delay)| bound(*at, truth(*at) + delay)).collect();
            let lower: Vec<_> = back.iter().map(|(at, delay)| bound(*at, truth(*at) - delay)).collect();
            let line = estimate_offset(&lower, &upper).unwrap();
            let says = |at: f64| line.offset + line.rate * at;
            // The corridor may be slightly narrower than the widest corridor, and floats have 53
            // bits.
            for bound in &upper {
                prop_assert!(says(bound.at) <= bound.ahead - line.uncertainty + 1.0);
            }
            for bound in &lower {
                prop_assert!(says(bound.at) >= bound.ahead + line.uncertainty - 1.0);
            }
            prop_assert!(line.uncertainty > 0.0, "the truth is such a line");
        }
    }
}
