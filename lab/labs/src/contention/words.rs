//! Sentences about the curves.

use super::curve::{Curve, Points, count};
use super::forecast::Forecast;
use super::published::{self, Published};
use super::{Contender, Tasks};
use apus_report::result::short;
use apus_report::stats::Spread;

/// Returns all that is seen.
pub(super) fn sentences(curves: &[Curve], forecasts: &[Forecast]) -> Vec<String> {
    let mut sentences: Vec<String> = curves.iter().map(of_curve).collect();
    for tasks in [Tasks::Processes, Tasks::Threads] {
        sentences.extend(side_by_side(curves, tasks));
    }
    sentences.extend(forecasts.iter().map(of_forecast));
    sentences.push(freebsd());
    sentences
}

/// Thousand operations a second, of all runs.
fn kops(points: &Points) -> f64 {
    Spread::over(&points.kops()).median
}

/// Returns what more workers bring, and how long they wait.
fn of_curve(curve: &Curve) -> String {
    let (first, last) = (curve.first(), curve.last());
    let mut said = format!("{curve}: {} kops with one", short(kops(first)));
    if last.workers > 1 {
        let times = kops(last) / kops(first);
        said += &format!(
            ", {} with {}, {} times as many",
            short(kops(last)),
            last.workers,
            short(times)
        );
    }
    if let (Contender::GlobalLock, Some(wait), Some(p99), Some(taken)) =
        (curve.contender, last.wait_mean(), last.wait_p99(), last.taken())
    {
        let [wait, p99] = [wait, p99].map(|spread| short(spread.median));
        let taken = 100.0 * taken.median;
        said += &format!(
            ". The lock is then found taken {taken:.1} % of the time, and waited for {wait} ns in the mean (p99 {p99} ns)"
        );
    }
    said + "."
}

/// Returns the product and the one lock.
fn side_by_side(curves: &[Curve], tasks: Tasks) -> Option<String> {
    let find = |contender| curves.iter().find(|it| it.tasks == tasks && it.contender == contender);
    let (ours, theirs) = (find(Contender::FineGrained)?, find(Contender::GlobalLock)?);
    let times = |ours: &Points, theirs: &Points| short(kops(ours) / kops(theirs));
    let workers = ours.last().workers;
    let with_all = format!(
        "With {} fine-grained carries {} times what global-lock does",
        count(workers, tasks),
        times(ours.last(), theirs.last())
    );
    let with_one = times(ours.first(), theirs.first());
    Some(if workers == 1 {
        with_all + "."
    } else {
        format!("{with_all}, with one {with_one} times.")
    })
}

/// Returns the expectation, and what it was computed from.
fn of_forecast(forecast: &Forecast) -> String {
    let Forecast { tasks, lock, fitted_at, .. } = forecast;
    let last = forecast.last();
    let handover = if *fitted_at > 1 {
        format!("handing it over costs {} ns, as {fitted_at} {tasks} show", short(lock.handover))
    } else {
        "what handing it over costs was not measured, for lack of cores, and counts as nothing"
            .to_owned()
    };
    format!(
        "A model, not measured: with {} {tasks} on as many cores one lock lets {} kops through, {} times what one has, and \
         each waits {} ns for it; without it {} kops at best. The lock is held for {} ns, twice in an operation, with {} ns \
         between, and {handover}.",
        last.workers,
        short(last.global),
        short(last.global / forecast.points[0].global),
        short(last.wait),
        short(last.fine),
        short(lock.critical),
        short(lock.rest),
    )
}

/// Returns what was measured elsewhere with many cores.
fn freebsd() -> String {
    let [before, after] = published::freebsd();
    let kops =
        |published: &Published| published.at(96).map_or_else(String::new, |it| short(it / 1e3));
    format!(
        "Published: FreeBSD with 96 processes, {} kops with one lock, {} times what one process had; {} with a lock for \
         each socket, {} times.",
        kops(before),
        short(before.at(96).unwrap_or(0.0) / before.one()),
        kops(after),
        short(after.at(96).unwrap_or(0.0) / after.one()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::curve::made_up::curve;

    #[test]
    fn what_more_workers_bring_and_how_long_they_wait_is_told() {
        let runs: &[f64] = &[2e3, 1e3, 9e3];
        let made = |contender| curve(contender, Tasks::Processes, &[(1, &[4e3; 3]), (2, runs)]);
        assert_eq!(
            of_curve(&made(Contender::GlobalLock)),
            "global-lock, processes: 4000 kops with one, 2000 with 2, 0.500 times as many. The lock is then found \
             taken 50.0 % of the time, and waited for 200 ns in the mean (p99 2000 ns)."
        );
        assert_eq!(
            of_curve(&made(Contender::Unix)),
            "unix, processes: 4000 kops with one, 2000 with 2, 0.500 times as many."
        );
        let one = curve(Contender::Unix, Tasks::Threads, &[(1, &[400.0])]);
        assert_eq!(of_curve(&one), "unix, threads: 400 kops with one.");
    }

    #[test]
    fn the_product_is_held_against_the_one_lock() {
        let curves = [
            curve(Contender::GlobalLock, Tasks::Threads, &[(1, &[4e3]), (2, &[2e3])]),
            curve(Contender::FineGrained, Tasks::Threads, &[(1, &[5e3]), (2, &[9e3])]),
        ];
        assert_eq!(
            side_by_side(&curves, Tasks::Threads).unwrap(),
            "With 2 threads fine-grained carries 4.50 times what global-lock does, with one 1.25 times."
        );
        assert_eq!(side_by_side(&curves, Tasks::Processes), None);
    }

    #[test]
    fn a_forecast_says_what_it_is_and_what_it_was_computed_from() {
        let curves = [
            curve(Contender::GlobalLock, Tasks::Processes, &[(1, &[5e3]), (2, &[3e3])]),
            curve(Contender::FineGrained, Tasks::Processes, &[(1, &[6e3]), (2, &[12e3])]),
        ];
        let said = |cores| of_forecast(&Forecast::of(Tasks::Processes, &curves, cores).unwrap());
        for expected in [
            "A model, not measured: with 96 processes on as many cores",
            "without it 576000 kops at best",
            "held for 50.0 ns, twice in an operation, with 50.0 ns between",
            "as 2 processes show",
        ] {
            assert!(said(2).contains(expected), "{expected}: {}", said(2));
        }
        assert!(said(1).contains("was not measured, for lack of cores"), "{}", said(1));
    }

    #[test]
    fn what_was_published_is_told() {
        assert_eq!(
            freebsd(),
            "Published: FreeBSD with 96 processes, 1694 kops with one lock, 1.41 times what one process had; 70663 with a \
             lock for each socket, 58.6 times."
        );
    }
}
