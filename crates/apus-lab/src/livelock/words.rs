//! What do the curves say, in words?

use super::Mode;
use super::point::Point;
use super::published;
use super::sweep::Curve;
use crate::result::short;
use crate::stats::Spread;

/// Share of its peak below which a router's output counts as gone at the highest rate.
const GONE: f64 = 0.2;

/// Share of its peak from which on it counts as held.
const HELD: f64 = 0.95;

/// One sentence or two for each curve, and then what they say together.
pub(super) fn sentences(curves: &[Curve]) -> Vec<String> {
    let mut sentences: Vec<String> = curves.iter().filter_map(of_curve).collect();
    sentences.extend(of_peaks(curves));
    sentences
}

fn of_curve(curve: &Curve) -> Option<String> {
    let medians = curve.medians();
    let last = medians.last()?;
    let peak = Spread::over(&curve.peaks()).median;
    if peak == 0.0 {
        return Some(format!("{}: nothing came out at any rate.", curve.case));
    }
    let share = Spread::over(&curve.at_most()).median / peak;
    let verdict = match share {
        share if share < GONE => "receive livelock",
        share if share < HELD => "it declines",
        _ => "it holds",
    };
    let free = if curve.loss_free > 0.0 {
        format!("no losses up to {} kpps", kpps(curve.loss_free))
    } else {
        "losses at every rate".to_owned()
    };
    let mut text = format!(
        "{}: {free}, peak {}; with {} kpps offered {} come out, {:.0} % of the peak: {verdict}.",
        curve.case,
        kpps(peak),
        kpps(last.offered),
        kpps(last.forwarded),
        100.0 * share
    );
    if let Some(lost) = lost(last) {
        text += &format!(" Of the packets offered then, {lost}.");
    }
    text += &format!(" Programs have {:.0} % of the core.", 100.0 * last.user_share);
    if let (Mode::Share(percent), false) = (curve.case.mode, curve.case.filter) {
        let found = published::USER_SHARES.iter().find(|(each, _)| *each == percent);
        if let Some((_, theirs)) = found {
            text += &format!(" (1996: about {:.0} %.)", 100.0 * theirs);
        }
    }
    if let Some(seen) = last.seen {
        let share = seen as f64 / last.packets.max(1) as f64;
        text += &format!(" The monitor saw {:.0} % of the packets.", 100.0 * share);
    }
    Some(text)
}

/// Where packets were lost: before anything was spent on them, or after.
fn lost(point: &Point) -> Option<String> {
    let all = point.packets.max(1) as f64;
    let percent = |count: u64| 100.0 * count as f64 / all;
    let mut lost = Vec::new();
    let untouched = percent(point.packets.saturating_sub(point.counters.received));
    if untouched >= 0.5 {
        lost.push(format!("{untouched:.0} % were dropped before the router took them"));
    }
    for (why, count) in point.counters.thrown_away() {
        if percent(count) >= 0.5 {
            lost.push(format!("{:.0} % afterwards because {why}", percent(count)));
        }
    }
    (!lost.is_empty()).then(|| lost.join(", "))
}

/// The best mode against the worst.
fn of_peaks(curves: &[Curve]) -> Vec<String> {
    let peak = |mode, filter| {
        let curve =
            curves.iter().find(|curve| curve.case.mode == mode && curve.case.filter == filter)?;
        Some(Spread::over(&curve.peaks()).median)
    };
    let compare = |filter: bool| {
        let (ours, theirs) = (peak(Mode::Apus, filter)?, peak(Mode::Interrupt, filter)?);
        let with = if filter { "With the filter" } else { "Without the filter" };
        let ratio = short(ours / theirs);
        Some(format!("{with} the peak of apus is {ratio} times that of interrupt."))
    };
    [false, true].into_iter().filter_map(compare).collect()
}

/// Thousands of packets per second.
fn kpps(rate: f64) -> String {
    short(rate / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::livelock::point::Case;
    use crate::livelock::router::Counters;

    fn curve(mode: Mode, points: &[(f64, f64)]) -> Curve {
        let point = |&(offered, forwarded): &(f64, f64)| Point {
            offered,
            forwarded,
            user_share: 0.5,
            packets: 1_000,
            seen: None,
            counters: Counters { received: 900, ip_queue_full: 800, ..Counters::default() },
        };
        let case = Case { mode, filter: false };
        Curve { case, runs: vec![points.iter().map(point).collect()], loss_free: 1e5 }
    }

    #[test]
    fn livelock_decline_and_holding_are_told_apart() {
        let said = |last| {
            let curve = curve(Mode::Interrupt, &[(1e5, 1e5), (1e6, last)]);
            sentences(&[curve]).join(" ")
        };
        assert!(said(19e3).contains("19 % of the peak: receive livelock."), "{}", said(19e3));
        assert!(said(20e3).contains("it declines"));
        assert!(said(96e3).contains("it holds"));
        assert!(
            said(0.0).contains("10 % were dropped before the router took them, 80 % afterwards")
        );
    }

    #[test]
    fn peaks_are_compared_if_both_are_there() {
        let curves = [curve(Mode::Interrupt, &[(1e5, 1e5)]), curve(Mode::Apus, &[(1e5, 2e5)])];
        assert!(sentences(&curves).last().unwrap().contains("is 2.00 times"));
        assert!(!sentences(&curves[..1]).join("").contains("times"));
    }
}
