//! Turns: the order in which an experiment measures its cases, run by run.
//!
//! Cases are measured in turn within each run, so a change in the machine's speed affects all of
//! them.

use apus_workload::{Stream, rng};
use rand::seq::SliceRandom;

use apus_report::runs::Runs;
use apus_testbed::error::Error;

/// The order of cases in a run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Turns {
    /// The order of the cases.
    InOrder,
    /// Each run starts one case later.
    Rotating,
    /// An order drawn from the seed for each run.
    Shuffled { seed: u64 },
}

impl Turns {
    /// Calls `measure` with the number of the run, from 1, and the index of the case, for each case
    /// in each run. Returns the results of each case; a measurement without a result is left out.
    ///
    /// # Errors
    ///
    /// The first error of `measure`, which ends the measurements.
    pub(crate) fn measure<T>(
        self,
        runs: usize,
        cases: usize,
        mut measure: impl FnMut(usize, usize) -> Result<Option<T>, Error>,
    ) -> Result<Vec<Runs<T>>, Error> {
        let mut order: Vec<usize> = (0..cases).collect();
        let mut chance = match self {
            Self::Shuffled { seed } => Some(rng(seed, Stream::Order)),
            Self::InOrder | Self::Rotating => None,
        };
        let mut results: Vec<Runs<T>> = order.iter().map(|_| Runs::default()).collect();
        for run in 1..=runs {
            if let Some(chance) = &mut chance {
                order.shuffle(chance);
            }
            for &case in &order {
                if let Some(result) = measure(run, case)? {
                    results[case].add(run, result);
                }
            }
            if matches!(self, Self::Rotating) {
                order.rotate_left(1);
            }
        }
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cases of each of three runs of three cases, in the order of measurement.
    fn order(turns: Turns) -> Vec<Vec<usize>> {
        let mut order = vec![Vec::new(); 3];
        turns
            .measure(3, 3, |run, case| {
                order[run - 1].push(case);
                Ok(Some(()))
            })
            .unwrap();
        order
    }

    #[test]
    fn every_case_has_its_turn_in_every_run() {
        assert_eq!(order(Turns::InOrder), [[0, 1, 2]; 3]);
        assert_eq!(order(Turns::Rotating), [[0, 1, 2], [1, 2, 0], [2, 0, 1]]);
        let shuffled = order(Turns::Shuffled { seed: 7 });
        assert_eq!(shuffled, order(Turns::Shuffled { seed: 7 }), "a function of the seed");
        for mut run in shuffled {
            run.sort_unstable();
            assert_eq!(run, [0, 1, 2]);
        }
    }

    #[test]
    fn results_keep_the_number_of_their_run_and_errors_end_the_measurements() {
        let found = Turns::InOrder.measure(3, 1, |run, _| Ok((run != 2).then_some(10 * run)));
        assert_eq!(found.unwrap(), [[(1, 10), (3, 30)].into_iter().collect()]);
        let failed: Result<Vec<Runs<()>>, _> =
            Turns::InOrder.measure(3, 1, |run, _| Err(Error::Peer(format!("run {run}"))));
        assert_eq!(failed.unwrap_err().to_string(), "run 1");
    }
}
