//! Sentences about the curves.

use super::contender::Contender;
use super::crew::CrewResult;
use super::curve::{Curve, TAKEN, WAIT_MEAN, WAIT_P99, count, median_kops};
use super::forecast::Forecast;
use super::options::Tasks;
use super::published;
use apus_report::published::PublishedCurve;
use apus_report::result::short;
use apus_report::series::SeriesPoint;

/// Returns the sentences: of each curve, of pairs of curves, of models, of published figures.
pub(super) fn sentences(curves: &[Curve], forecasts: &[Forecast]) -> Vec<String> {
    let mut sentences: Vec<String> = curves.iter().map(of_curve).collect();
    for tasks in [Tasks::Processes, Tasks::Threads] {
        sentences.extend(side_by_side(curves, tasks));
    }
    sentences.extend(forecasts.iter().map(of_forecast));
    sentences.push(freebsd());
    sentences
}

/// Returns a sentence about the effect of more workers, and about lock waits.
fn of_curve(curve: &Curve) -> String {
    let (first, last) = (curve.first(), curve.last());
    let (one, most) = (median_kops(first), median_kops(last));
    let mut text = format!("{curve}: {} kops with one", short(one));
    if last.key > 1 {
        let times = short(most / one);
        text += &format!(", {} with {}: {times} times as many", short(most), last.key);
    }
    if let (Contender::GlobalLock, Some(wait), Some(p99), Some(taken)) = {
        let median = |measure| last.runs.median(measure);
        (curve.contender, median(WAIT_MEAN), median(WAIT_P99), median(TAKEN))
    } {
        text += &format!(
            ". The lock is found taken {:.1} % of the time; the mean wait is {} ns (p99 {} ns)",
            100.0 * taken,
            short(wait),
            short(p99)
        );
    }
    text + "."
}

/// Returns a sentence that compares fine-grained with the global lock.
fn side_by_side(curves: &[Curve], tasks: Tasks) -> Option<String> {
    let find = |contender| curves.iter().find(|it| it.tasks == tasks && it.contender == contender);
    let (fine, global) = (find(Contender::FineGrained)?, find(Contender::GlobalLock)?);
    let times = |fine: &SeriesPoint<CrewResult>, global: &SeriesPoint<CrewResult>| {
        short(median_kops(fine) / median_kops(global))
    };
    let workers = fine.last().key;
    let with_all = format!(
        "With {}, fine-grained does {} times the operations of global-lock",
        count(workers, tasks),
        times(fine.last(), global.last())
    );
    let with_one = times(fine.first(), global.first());
    Some(if workers == 1 {
        with_all + "."
    } else {
        format!("{with_all}, with one {with_one} times.")
    })
}

/// Returns the expectation of the model, and the values that it was computed from.
fn of_forecast(forecast: &Forecast) -> String {
    let Forecast { tasks, lock, fitted_at, .. } = forecast;
    let last = forecast.last();
    let handover = if *fitted_at > 1 {
        format!("a handover costs {} ns, fitted to {fitted_at} {tasks}", short(lock.handover))
    } else {
        "the cost of a handover was not measured, for lack of cores, and counts as 0".to_owned()
    };
    format!(
        "A model, not measured: with {} {tasks} on as many cores, one lock allows {} kops, {} times the rate of one, and \
         each waits {} ns for it; without the lock, {} kops at best. The lock is held for {} ns twice in an operation, \
         {} ns apart; {handover}.",
        last.workers,
        short(last.global),
        short(last.global / forecast.points[0].global),
        short(last.wait),
        short(last.fine),
        short(lock.critical),
        short(lock.rest),
    )
}

/// Returns a sentence about the measurements of FreeBSD with many cores.
fn freebsd() -> String {
    let [before, after] = published::freebsd();
    let kops =
        |curve: &PublishedCurve| curve.at(96.0).map_or_else(String::new, |it| short(it / 1e3));
    let times = |curve: &PublishedCurve| short(curve.at(96.0).unwrap_or(0.0) / curve.first().1);
    format!(
        "Published: FreeBSD with 96 processes, {} kops with one lock, {} times the rate of one process; {} with a lock \
         per socket, {} times.",
        kops(before),
        times(before),
        kops(after),
        times(after),
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
            "global-lock, processes: 4000 kops with one, 2000 with 2: 0.500 times as many. The lock is found taken \
             50.0 % of the time; the mean wait is 200 ns (p99 2000 ns)."
        );
        assert_eq!(
            of_curve(&made(Contender::Unix)),
            "unix, processes: 4000 kops with one, 2000 with 2: 0.500 times as many."
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
            "With 2 threads, fine-grained does 4.50 times the operations of global-lock, with one 1.25 times."
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
            "without the lock, 576000 kops at best",
            "held for 50.0 ns twice in an operation, 50.0 ns apart",
            "fitted to 2 processes",
        ] {
            assert!(said(2).contains(expected), "{expected}: {}", said(2));
        }
        assert!(said(1).contains("was not measured, for lack of cores"), "{}", said(1));
    }

    #[test]
    fn what_was_published_is_told() {
        assert_eq!(
            freebsd(),
            "Published: FreeBSD with 96 processes, 1694 kops with one lock, 1.41 times the rate of one process; 70663 \
             with a lock per socket, 58.6 times."
        );
    }
}
