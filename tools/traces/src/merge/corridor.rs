//! By how much do two clocks differ, as far as packets can tell?
//!
//! A packet from A to B that left at `a` and came at `b`, each by its own host's clock, says that B's clock is ahead by
//! at most `b - a`: no packet arrives before it leaves. A packet the other way says by how much it is ahead at least. Over
//! time these bounds are two clouds of points with a corridor between them, and how far B's clock is ahead is a line in
//! it: not level, since one clock runs faster. The line is the middle of the widest straight corridor, the one whose
//! smallest delays there and back are the largest together (convex hulls, as in Zhang, Liu, Xia: "Clock synchronization
//! algorithms for network measurements", INFOCOM 2002). What the packets cannot tell is how its width is shared by the
//! two directions; so half of it, which is half the sum of the smallest delays both ways, is the uncertainty.

/// A packet's bound: when it was seen by the reference's clock, and how far the other clock seemed to be ahead,
/// both in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) at: f64,
    pub(super) ahead: f64,
}

/// How far a clock is ahead of the reference's: `offset` at the reference's time 0, and `rate` more each nanosecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Line {
    /// Nanoseconds.
    pub(super) offset: f64,
    /// Nanoseconds in a nanosecond: 0.00005 is 50 ppm.
    pub(super) rate: f64,
    /// Half the width of the corridor, in nanoseconds; below 0 if there is none: then some packet seems to have come
    /// before it left.
    pub(super) uncertainty: f64,
}

/// Clocks of computers that differ by more than this are broken; with few packets, steeper lines could fit, too.
const STEEPEST: f64 = 1e-3;

/// The level corridor is taken as long as it is only so much narrower than the widest one, in nanoseconds and as a share:
/// a rate that hardly says more than no rate is made of noise.
const NOISE: (f64, f64) = (20.0, 0.01);

/// The middle of the widest corridor above `lower` and below `upper`; `None` if one of them has no point.
pub(super) fn middle(lower: &[Bound], upper: &[Bound]) -> Option<Line> {
    // The lower side of what is above, and the upper side of what is below, as the lower side of its mirror image.
    let mirrored: Vec<Bound> =
        lower.iter().map(|bound| Bound { ahead: -bound.ahead, ..*bound }).collect();
    let (above, below) = (lower_hull(upper), lower_hull(&mirrored));
    if above.is_empty() || below.is_empty() {
        return None;
    }
    let corridor = |rate: f64| {
        let ceiling = least(&above, |bound| bound.ahead - rate * bound.at);
        let floor = -least(&below, |bound| bound.ahead + rate * bound.at);
        (floor, ceiling)
    };
    let width = |rate: f64| {
        let (floor, ceiling) = corridor(rate);
        ceiling - floor
    };
    let widest = widest(width);
    let enough = width(widest) - NOISE.0.max(width(widest) * NOISE.1);
    let rate = nearest_to_level(widest, |rate| width(rate) >= enough);
    let (floor, ceiling) = corridor(rate);
    Some(Line { offset: f64::midpoint(floor, ceiling), rate, uncertainty: (ceiling - floor) / 2.0 })
}

fn least(bounds: &[Bound], value: impl Fn(&Bound) -> f64) -> f64 {
    bounds.iter().map(value).fold(f64::INFINITY, f64::min)
}

/// The rate at which the corridor is widest. Its width is concave: the least of some straight lines less the greatest of
/// others.
fn widest(width: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-STEEPEST, STEEPEST);
    // Each round leaves two thirds: far below what a picosecond in a day is.
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

/// The rate between 0 and `good` that is nearest to 0 and still good.
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

/// The points that some line can lie under and touch, from left to right (Andrew's monotone chain).
fn lower_hull(bounds: &[Bound]) -> Vec<Bound> {
    let mut sorted: Vec<Bound> = bounds
        .iter()
        .filter(|bound| bound.at.is_finite() && bound.ahead.is_finite())
        .copied()
        .collect();
    sorted.sort_by(|a, b| a.at.total_cmp(&b.at).then(a.ahead.total_cmp(&b.ahead)));
    let mut hull: Vec<Bound> = Vec::new();
    for bound in sorted {
        if hull.last().is_some_and(|last| last.at == bound.at) {
            // The same time, and not lower.
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

fn turns_left(a: Bound, b: Bound, c: Bound) -> bool {
    (b.at - a.at) * (c.ahead - a.ahead) - (b.ahead - a.ahead) * (c.at - a.at) > 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: f64 = 1e9;

    fn bound(at: f64, ahead: f64) -> Bound {
        Bound { at, ahead }
    }

    #[test]
    fn without_packets_both_ways_nothing_is_known() {
        assert_eq!(middle(&[], &[bound(0.0, 1.0)]), None);
        assert_eq!(middle(&[bound(0.0, 1.0)], &[]), None);
        assert_eq!(middle(&[bound(f64::NAN, 1.0)], &[bound(0.0, 1.0)]), None);
    }

    #[test]
    fn one_packet_each_way_is_half_the_round_trip() {
        // Clocks that agree, 3000 ns there and 1000 back.
        let line = middle(&[bound(5.0, -1_000.0)], &[bound(0.0, 3_000.0)]).unwrap();
        assert_eq!(line, Line { offset: 1_000.0, rate: 0.0, uncertainty: 2_000.0 });
    }

    #[test]
    fn packets_that_come_before_they_left_are_told() {
        let line = middle(&[bound(0.0, 10_000.0)], &[bound(0.0, 3_000.0)]).unwrap();
        assert!(line.uncertainty < 0.0, "{line:?}");
    }

    /// A clock that is an hour ahead and 50 ppm fast, delays of 4 us and more there, of 2 and more back.
    #[test]
    fn an_hour_and_fifty_millionths_are_found() {
        let truth = |at: f64| 3_600.0 * SECOND + 50e-6 * at;
        let packets = |least: f64| {
            move |index: u32| {
                let at = f64::from(index) * SECOND / 500.0;
                // Mostly delayed, now and then not.
                (at, least + f64::from(index * 7_919 % 97) * 100.0)
            }
        };
        let there = (0..1_000).map(packets(4_000.0));
        let back = (0..1_000).map(packets(2_000.0));
        let upper: Vec<_> = there.map(|(at, delay)| bound(at, truth(at) + delay)).collect();
        let lower: Vec<_> = back.map(|(at, delay)| bound(at, truth(at) - delay)).collect();
        let line = middle(&lower, &upper).unwrap();
        assert!((line.rate - 50e-6).abs() < 0.1e-6, "{line:?}");
        // The delays are not the same both ways, which nobody can see: 1 us of error, within the uncertainty of 3.
        assert!((line.uncertainty - 3_000.0).abs() < 100.0, "{line:?}");
        for at in [0.0, SECOND, 2.0 * SECOND] {
            let error = line.offset + line.rate * at - truth(at);
            assert!((error - 1_000.0).abs() < 100.0, "{at}: {error}");
        }
    }

    #[test]
    fn few_packets_do_not_make_a_rate() {
        // All packets there early, all packets back late: any line between them would fit.
        let upper = [bound(0.0, 5_000.0), bound(10.0, 4_000.0)];
        let lower = [bound(1_000.0, -4_000.0), bound(1_010.0, -5_000.0)];
        let line = middle(&lower, &upper).unwrap();
        assert!(line.rate.abs() <= STEEPEST && line.uncertainty > 3_900.0, "{line:?}");
    }

    proptest! {
        /// Whatever the delays are, the truth is inside the uncertainty where both clouds reach.
        #[test]
        fn the_truth_is_in_the_corridor(
            offset in -1e12..1e12_f64,
            rate in -200e-6..200e-6_f64,
            there in prop::collection::vec((0.0..1e9_f64, 100.0..50_000.0_f64), 1..60),
            back in prop::collection::vec((0.0..1e9_f64, 100.0..50_000.0_f64), 1..60),
        ) {
            let truth = |at: f64| offset + rate * at;
            let upper: Vec<_> =
                there.iter().map(|(at, delay)| bound(*at, truth(*at) + delay)).collect();
            let lower: Vec<_> = back.iter().map(|(at, delay)| bound(*at, truth(*at) - delay)).collect();
            let line = middle(&lower, &upper).unwrap();
            let says = |at: f64| line.offset + line.rate * at;
            // The corridor may be a little narrower than the widest, and floats have 53 bits.
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
