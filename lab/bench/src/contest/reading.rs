//! Readings: a figure of one contender in one run, and over all runs.

use apus_report::result::Figure;

/// A figure of one contender in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// A value per run. Shown as the median over all runs, with minimum and maximum.
    Each(f64),
    /// A count. Shown as the sum over all runs.
    Count(u64),
}

impl Reading {
    /// Returns the value for comparisons with another contender in the same run.
    pub const fn value(self) -> f64 {
        match self {
            Self::Each(value) => value,
            Self::Count(count) => count as f64,
        }
    }

    /// Returns the figure shown for the readings of all runs; they must be of one kind.
    ///
    /// # Panics
    ///
    /// `runs` is empty, or a value is not a number.
    pub(super) fn over_runs(runs: &[Self]) -> Figure {
        let counts = runs.iter().map(|reading| match reading {
            Self::Count(count) => Some(*count),
            Self::Each(_) => None,
        });
        let sum: Option<u64> = counts.sum();
        sum.map_or_else(|| Figure::over(runs, |reading| reading.value()), Figure::Count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_and_values_are_not() {
        let counts = [Reading::Count(2), Reading::Count(3)];
        assert_eq!(Reading::over_runs(&counts), Figure::Count(5));
        let values = [Reading::Each(1.0), Reading::Each(5.0), Reading::Each(2.0)];
        let Figure::Spread(spread) = Reading::over_runs(&values) else {
            panic!("values of their own have no sum")
        };
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 2.0, 5.0));
    }
}
