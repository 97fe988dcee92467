//! Scenario: a figure is mistyped, or an unpublished figure is looked up.

use apus_workload::Workload;

use super::*;

fn rows() -> impl Iterator<Item = (&'static Figure, &'static Row)> {
    figures().iter().flat_map(|figure| figure.rows.iter().map(move |row| (figure, row)))
}

#[test]
fn published_figures_are_found() {
    let homa = slowdown("W4", 0.8, Scheme::Homa).unwrap();
    let point = SlowdownPoint { percent: 50, bytes: 662, median: 1.34, p99: 1.85 };
    assert_eq!(homa.closing(50), Some(point));
    assert_eq!((homa.longest().bytes, homa.longest().p99), (10_000_000, 26.0));
    assert_eq!(homa.summary.small_half_p99_max, 2.29);
    assert_eq!(slowdown("w2", 0.8, Scheme::SrptOracle).unwrap().closing(90).unwrap().p99, 2.29);
    assert_eq!(slowdown("w2", 0.1 + 0.7, Scheme::PHost).unwrap().longest().p99, 142.0);
}

#[test]
fn unpublished_figures_are_not_found() {
    assert_eq!(slowdown("w2", 0.8, Scheme::Ndp), None);
    assert_eq!(slowdown("w2", 0.5, Scheme::Homa), None);
    assert_eq!(figure("w4 truncated at 1000000 bytes", 0.8), None);
    assert_eq!(slowdown("w4", 0.8, Scheme::Homa).unwrap().closing(33), None);
    assert_eq!(queue_length("w6", Queue::TorToHost), None);
    assert_eq!(scheduled_levels("100"), None);
    assert_eq!(sustainable_load("w4", Scheme::Homa, Some(2)), None);
    assert_eq!(sustainable_load("w4", Scheme::Ndp, None), None);
}

#[test]
fn each_figure_has_the_transports_in_order() {
    for figure in figures() {
        let schemes: Vec<Scheme> = figure.rows.iter().map(|row| row.scheme).collect();
        let published = Scheme::ALL.into_iter().filter(|scheme| *scheme != Scheme::Ndp);
        assert_eq!(schemes, published.collect::<Vec<_>>(), "{}", figure.workload);
    }
}

#[test]
fn percentiles_and_sizes_increase_and_the_tail_is_above_the_median() {
    for (figure, row) in rows() {
        let at = format!("{} {}", figure.workload, row.scheme);
        let points: Vec<SlowdownPoint> = row.points().collect();
        assert!(points.is_sorted_by(|a, b| a.percent < b.percent && a.bytes < b.bytes), "{at}");
        assert_eq!(points.last(), Some(&row.longest()));
        assert_eq!(row.longest().percent, 100, "{at}");
        assert!(points.iter().all(|point| point.median <= point.p99), "{at}");
        assert!(points.iter().map(|point| point.bytes).eq(figure.sizes.iter().map(|s| s.bytes)));
        // Only a scheme that does not pad its packets is ever faster than the best time.
        let fastest = if row.scheme == Scheme::SrptOracle { 0.93 } else { 1.0 };
        assert!(points.iter().all(|point| point.median >= fastest), "{at}");
    }
}

/// The sizes match the workloads of this project, except for the shortest of W2, where the tables
/// differ.
#[test]
fn sizes_match_the_workloads() {
    for figure in figures() {
        let workload: Workload = figure.workload.parse().unwrap();
        for size in figure.sizes.iter().filter(|size| size.bytes > 8) {
            let ours = f64::from(workload.sizes().quantile(f64::from(size.percent) / 100.0));
            let apart = (ours / f64::from(size.bytes) - 1.0).abs();
            assert!(apart < 0.2, "{} {size:?}: {ours}", figure.workload);
        }
    }
}

/// Checks the documentation of [`Summary`].
#[test]
fn summaries_cover_all_sizes_and_points_only_some() {
    for (figure, row) in rows() {
        let at = format!("{} {}", figure.workload, row.scheme);
        let small: Vec<f64> =
            row.points().filter(|point| point.percent <= 50).map(|point| point.p99).collect();
        let greatest = small.iter().copied().fold(0.0, f64::max);
        let least = small.iter().copied().fold(f64::MAX, f64::min);
        let Summary { small_half_p99_max, small_half_p99_mean, .. } = row.summary;
        assert!(small_half_p99_max >= greatest, "{at}: {greatest}");
        assert!(small_half_p99_max <= greatest * 1.13, "{at}: {greatest}");
        assert!((least..=small_half_p99_max).contains(&small_half_p99_mean), "{at}");
        assert!(row.summary.mean_by_messages < row.summary.mean_by_bytes, "{at}");
    }
}

#[test]
fn no_scheme_is_faster_than_the_oracle_for_the_longest_messages() {
    for figure in figures() {
        let longest = |row: &Row| row.longest().median;
        let oracle = figure.rows.iter().find(|row| row.scheme == Scheme::SrptOracle).unwrap();
        assert!(figure.rows.iter().all(|row| longest(row) >= longest(oracle)));
    }
}

#[test]
fn queues_at_hosts_are_the_longest() {
    for number in 1..=5 {
        let name = Workload::published(number).to_string();
        let [up, down, host] = Queue::ALL.map(|queue| queue_length(&name, queue).unwrap());
        for core in [up, down] {
            assert!(core.mean_kb < host.mean_kb && core.max_kb < host.max_kb, "{name}");
            assert!(core.mean_kb < GOAL_CORE_MEAN_KB, "{name}");
        }
        assert!(host.mean_kb < GOAL_TOR_TO_HOST.mean_kb, "{name}");
        assert!(host.max_kb < GOAL_TOR_TO_HOST.max_kb, "{name}");
    }
}

#[test]
fn longer_messages_have_more_scheduled_levels_and_smaller_headers() {
    let names: Vec<String> = (1..=5).map(|n| Workload::published(n).to_string()).collect();
    let levels = names.iter().map(|name| scheduled_levels(name).unwrap());
    assert_eq!(levels.collect::<Vec<_>>(), [1, 3, 4, 7, 7]);
    assert!(names.iter().map(|name| payload_share(name).unwrap()).is_sorted());
}

#[test]
fn special_loads_precede_general_ones() {
    let load = |granted| sustainable_load("w4", Scheme::Homa, granted).unwrap();
    assert_eq!((load(Some(1)).load.end(), load(Some(7)).load.end()), (&0.63, &0.89));
    assert_eq!(load(None).load, 0.87..=0.92);
    assert!(load(None).load.contains(load(Some(7)).load.start()), "the paper grants to 7");
    for each in sustainable_loads() {
        assert!(0.0 < *each.load.start() && *each.load.end() < 1.0 && !each.load.is_empty());
        let workload = each.workload.as_deref().unwrap_or("w3");
        assert_eq!(sustainable_load(workload, each.scheme, each.overcommitment), Some(each));
    }
}
