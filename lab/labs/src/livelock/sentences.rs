//! Sentences about the curves.

use super::curve::{Curve, FORWARDED, USER_SHARE, typical};
use super::mode::Mode;
use super::point::RatePoint;
use super::published;
use apus_report::result::short;

/// Shares of the peak below which the output at the highest rate, and the least output after the
/// peak, have a verdict.
const LIVELOCK_BELOW: f64 = 0.2;
const DECLINE_BELOW: f64 = 0.95;

/// Share of the peak by which the least output must be below the output at the highest rate to be
/// mentioned.
const WORTH_MENTION: f64 = 0.005;

/// Least percentage of the packets that is mentioned.
const LEAST_PERCENT: f64 = 0.5;

/// Returns one sentence or two for each curve, and then comparisons of curves.
pub(super) fn sentences(curves: &[Curve]) -> Vec<String> {
    let mut sentences: Vec<String> = curves.iter().filter_map(of_curve).collect();
    sentences.extend(of_peaks(curves));
    sentences
}

fn of_curve(curve: &Curve) -> Option<String> {
    let last = typical(curve.series.points.last()?);
    let peak = curve.peak().median;
    if peak == 0.0 {
        return Some(format!("{}: no packet was forwarded at any rate.", curve.case));
    }
    let out = curve.at_most(FORWARDED).median;
    let share = out / peak;
    let least = curve.least_after_peak().map_or(share, |least| least.min(share));
    let verdict = match share {
        share if share < LIVELOCK_BELOW => "receive livelock",
        _ if least < DECLINE_BELOW => "it declines",
        _ => "it holds",
    };
    let between = if share - least < WORTH_MENTION {
        String::new()
    } else {
        format!(" ({:.0} % at the worst rate after the peak)", 100.0 * least)
    };
    let free = if curve.loss_free > 0.0 {
        format!("no losses up to {} kpps", kpps(curve.loss_free))
    } else {
        "losses at every rate".to_owned()
    };
    let mut text = format!(
        "{}: {free}, peak {}; of {} kpps offered, {} are forwarded, {:.0} % of the peak{between}: {verdict}.",
        curve.case,
        short(peak),
        kpps(last.offered),
        short(out),
        100.0 * share
    );
    if let Some(lost) = lost(last) {
        text += &format!(" Of the packets offered then, {lost}.");
    }
    let left = 100.0 * curve.at_most(USER_SHARE).median;
    text += &format!(" Programs have {left:.0} % of the core.");
    if let (Mode::Share(percent), false) = (curve.case.mode, curve.case.filter) {
        let found = published::USER_SHARES.iter().find(|each| each.percent == percent);
        if let Some(theirs) = found {
            text += &format!(" (1996: about {:.0} %.)", 100.0 * theirs.share);
        }
    }
    if let Some(seen) = last.seen {
        let share = seen as f64 / last.packets.max(1) as f64;
        text += &format!(" The monitor saw {:.0} % of the packets.", 100.0 * share);
    }
    Some(text)
}

/// Returns where packets were lost: before the router took them, or afterwards.
fn lost(point: &RatePoint) -> Option<String> {
    let all = point.packets.max(1) as f64;
    let percent = |count: u64| 100.0 * count as f64 / all;
    let mut lost = Vec::new();
    let untouched = percent(point.packets.saturating_sub(point.counters.received));
    if untouched >= LEAST_PERCENT {
        lost.push(format!("{untouched:.0} % were dropped before the router took them"));
    }
    for (why, count) in point.counters.thrown_away() {
        if percent(count) >= LEAST_PERCENT {
            let were = if lost.is_empty() { "were dropped " } else { "" };
            lost.push(format!("{:.0} % {were}afterwards because {why}", percent(count)));
        }
    }
    (!lost.is_empty()).then(|| lost.join(", "))
}

/// Returns the peaks of the best mode compared with the worst.
fn of_peaks(curves: &[Curve]) -> Vec<String> {
    let peak = |mode, filter| {
        let curve =
            curves.iter().find(|curve| curve.case.mode == mode && curve.case.filter == filter)?;
        Some(curve.peak().median)
    };
    let compare = |filter: bool| {
        let (ours, theirs) = (peak(Mode::Apus, filter)?, peak(Mode::Interrupt, filter)?);
        let with = if filter { "With the filter" } else { "Without the filter" };
        let ratio = short(ours / theirs);
        Some(format!("{with}, the peak of apus is {ratio} times the peak of interrupt."))
    };
    [false, true].into_iter().filter_map(compare).collect()
}

/// Returns the thousands of packets per second.
fn kpps(rate: f64) -> String {
    short(rate / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::livelock::curve::made_up::{self, Made};
    use crate::livelock::point::Case;
    use crate::livelock::router::Counters;

    /// Returns one run.
    fn curve(mode: Mode, points: &[(f64, f64)]) -> Curve {
        let points = points.iter().map(|&(offered, forwarded)| Made(offered, forwarded)).collect();
        made_up::curve(mode, false, &[points])
    }

    /// Returns the first run at the first rate.
    fn first(curve: &mut Curve) -> &mut RatePoint {
        curve.series.points[0].runs.results_mut().next().unwrap()
    }

    /// Returns the sentences about one curve.
    fn said(curve: Curve) -> String {
        sentences(&[curve]).join(" ")
    }

    #[test]
    fn livelock_decline_and_holding_are_distinguished() {
        let said = |last| said(curve(Mode::Interrupt, &[(1e5, 1e5), (1e6, last)]));
        assert!(said(19e3).contains("19 % of the peak: receive livelock."), "{}", said(19e3));
        assert!(said(20e3).contains("20 % of the peak: it declines."));
        assert!(said(94e3).contains("94 % of the peak: it declines."));
        assert!(said(95e3).contains("95 % of the peak: it holds."));
        assert!(
            said(0.0).contains("10 % were dropped before the router took them, 80 % afterwards")
        );
    }

    #[test]
    fn a_sentence_has_all_figures_of_a_curve() {
        assert_eq!(
            said(curve(Mode::PollNoQuota, &[(1e5, 1e5), (2e5, 12e4), (1e6, 6e4)])),
            "poll-no-quota: no losses up to 100 kpps, peak 120; of 1000 kpps offered, 60.0 are forwarded, 50 % of the \
             peak: it declines. Of the packets offered then, 10 % were dropped before the router took them, 80 % \
             afterwards because the IP queue was full. Programs have 50 % of the core."
        );
    }

    #[test]
    fn a_dip_after_the_peak_is_a_decline_even_if_the_highest_rate_is_carried() {
        let dip = |least| said(curve(Mode::Apus, &[(1e5, 1e5), (3e5, least), (1e6, 99e3)]));
        let text = dip(90e3);
        assert!(
            text.contains("99 % of the peak (90 % at the worst rate after the peak): it declines."),
            "{text}"
        );
        assert!(dip(96e3).contains("(96 % at the worst rate after the peak): it holds."));
        assert!(dip(99e3).contains("99 % of the peak: it holds."));
    }

    #[test]
    fn the_filter_and_the_reasons_of_losses_are_named() {
        let mut with = made_up::curve(Mode::PollQuota(5), true, &[vec![Made(1e5, 1e3)]]);
        let counters = Counters { received: 1_000, filter_queue_full: 990, ..Counters::default() };
        first(&mut with).counters = counters;
        let text = said(with.clone());
        assert!(text.starts_with("poll-quota=5+filter: "), "{text}");
        assert!(
            text.contains(
                "then, 99 % were dropped afterwards because the filter's queue was full."
            ),
            "{text}"
        );
        first(&mut with).counters = Counters { received: 1_000, sent: 1_000, ..counters };
        first(&mut with).counters.filter_queue_full = 4;
        assert!(
            !said(with).contains("Of the packets"),
            "less than half a per cent is not mentioned"
        );
    }

    #[test]
    fn losses_at_every_rate_leave_no_rate_without_losses() {
        let mut curve = curve(Mode::Interrupt, &[(1e5, 1e4)]);
        curve.loss_free = 0.0;
        assert!(said(curve).starts_with("interrupt: losses at every rate, peak 10.0; "));
    }

    #[test]
    fn without_output_there_is_no_share_of_a_peak() {
        let curve = curve(Mode::Interrupt, &[(1e5, 0.0), (1e6, 0.0)]);
        assert_eq!(said(curve), "interrupt: no packet was forwarded at any rate.");
    }

    #[test]
    fn several_runs_are_summed_up_by_medians() {
        let run = |last| vec![Made(1e5, 1e5), Made(1e6, last)];
        let runs = [run(90e3), run(10e3), run(30e3)];
        let text = said(made_up::curve(Mode::Apus, false, &runs));
        assert!(text.contains("30.0 are forwarded, 30 % of the peak"), "{text}");
        let text = said(made_up::curve(Mode::Apus, false, &runs[..2]));
        assert!(text.contains("50.0 are forwarded, 50 % of the peak"), "between the two: {text}");
    }

    #[test]
    fn the_shares_of_1996_and_of_the_monitor_are_named() {
        let mut share = curve(Mode::Share(50), &[(1e5, 1e5)]);
        assert!(said(share.clone()).ends_with("50 % of the core. (1996: about 45 %.)"));
        first(&mut share).seen = Some(250);
        assert!(said(share.clone()).ends_with(" The monitor saw 25 % of the packets."));
        share.case.mode = Mode::Share(40);
        assert!(!said(share.clone()).contains("1996"), "the paper has no such threshold");
        share.case = Case { mode: Mode::Share(50), filter: true };
        assert!(!said(share).contains("1996"), "the paper has this figure without a filter");
    }

    #[test]
    fn peaks_are_compared_if_both_were_measured() {
        let mut curves =
            vec![curve(Mode::Interrupt, &[(1e5, 1e5)]), curve(Mode::Apus, &[(1e5, 2e5)])];
        let last = |curves: &[Curve]| sentences(curves).pop().unwrap();
        let expected = "Without the filter, the peak of apus is 2.00 times the peak of interrupt.";
        assert_eq!(last(&curves), expected);
        assert!(!last(&curves[..1]).contains("times"));
        curves[1].case.filter = true;
        assert!(!last(&curves).contains("times"), "one with and one without cannot be compared");
        curves[0].case.filter = true;
        assert!(last(&curves).starts_with("With the filter, the peak"));
    }
}
