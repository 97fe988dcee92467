//! Curves: slowdowns of one contender over all runs.

use super::summary::{CDF, Group, Percentile, Summary, Tail};
use apus_report::result::{Table, rounded, short};
use apus_report::stats::Spread;

/// The medians of one contender over the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The contender.
    pub name: String,
    /// Slowdown by size, smallest first; the number of messages is the total over all runs.
    pub by_size: Vec<Group>,
    /// Latency of short messages in microseconds, with the cumulative share.
    pub cdf: Vec<(f64, f64)>,
    /// Slowdown of short messages.
    pub short: Tail,
}

impl Curve {
    /// Computes the curve of a contender's runs; all must have the same groups.
    ///
    /// # Panics
    ///
    /// `runs` is empty, or their groups differ.
    #[must_use]
    pub fn of(name: &str, runs: &[&Summary]) -> Self {
        let median = |figure: &dyn Fn(&Summary) -> f64| {
            let each: Vec<f64> = runs.iter().map(|run| figure(run)).collect();
            rounded(Spread::over(&each).median)
        };
        let tail = |of: &dyn Fn(&Summary) -> Tail| Tail {
            p50: median(&|run| of(run).p50),
            p99: median(&|run| of(run).p99),
            p999: median(&|run| of(run).p999),
        };
        let group = |index: usize| Group {
            upto: runs[0].groups[index].upto,
            count: runs.iter().map(|run| run.groups[index].count).sum(),
            tail: tail(&|run| run.groups[index].tail),
        };
        let groups = runs.first().map_or(0, |run| run.groups.len());
        assert!(runs.iter().all(|run| run.groups.len() == groups), "runs of different groups");
        let share = |(index, share): (usize, f64)| (median(&|run| run.short_cdf_us[index]), share);
        Self {
            name: name.to_owned(),
            by_size: (0..groups).map(group).collect(),
            cdf: CDF.into_iter().enumerate().map(share).collect(),
            short: tail(&|run| run.short),
        }
    }
}

/// Returns slowdown by size: one line per size and one column per contender, with `percentiles` in
/// each cell.
#[must_use]
pub fn table(curves: &[Curve], percentiles: &[Percentile]) -> Table {
    let names = curves.iter().map(|curve| curve.name.clone());
    let groups = curves.first().map_or(&[][..], |curve| &curve.by_size);
    let line = |(index, group): (usize, &Group)| {
        let tails = curves.iter().map(|curve| curve.by_size[index].tail);
        let cells = tails.map(|tail| {
            let each = percentiles.iter().map(|percentile| short((percentile.of)(&tail)));
            each.collect::<Vec<_>>().join(" / ")
        });
        [group.upto.to_string(), group.count.to_string()].into_iter().chain(cells).collect()
    };
    let shown: Vec<&str> = percentiles.iter().map(|percentile| percentile.name).collect();
    let title = format!("slowdown by size, {}", shown.join(" / "));
    let header = ["size up to".to_owned(), "messages".to_owned()].into_iter().chain(names);
    Table::new(title, header, groups.iter().enumerate().map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(p99: f64, count: u64) -> Summary {
        let tail = Tail { p50: 1.0, p99, p999: 2.0 * p99 };
        Summary {
            groups: vec![Group { upto: 100, count, tail }],
            short: tail,
            all: tail,
            short_us: tail,
            short_cdf_us: CDF.map(|share| 10.0 * p99 * (1.0 + share)).to_vec(),
            mean_by_bytes: 1.5,
            messages: count,
        }
    }

    #[test]
    fn medians_are_drawn_and_messages_are_added() {
        let runs = [run(4.0, 10), run(9.0, 20), run(5.0, 30)];
        let curve = Curve::of("apus", &runs.iter().collect::<Vec<_>>());
        let tail = Tail { p50: 1.0, p99: 5.0, p999: 10.0 };
        assert_eq!(curve.by_size, [Group { upto: 100, count: 60, tail }]);
        assert_eq!((curve.short, curve.cdf[0], curve.cdf.len()), (tail, (50.0, 0.0), CDF.len()));
        let table = table(&[curve], &[Percentile::P50, Percentile::P99]);
        assert_eq!(table.header, ["size up to", "messages", "apus"]);
        assert_eq!(table.lines, [["100", "60", "1.00 / 5.00"]]);
    }
}
