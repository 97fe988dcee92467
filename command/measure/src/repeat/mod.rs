//! Repetition of disturbed phases: the only module that decides how often a phase is attempted.
//!
//! A phase is one measurement with fresh processes, like one run of one transport. An attempt does
//! not count if it fails, for example because a host drops out, or if the machine was busy with
//! other work meanwhile ([`Interference`]). The phase is then attempted again. A phase without a
//! result is recorded ([`Phases`]), and the experiment continues with the rest.
//!
//! # Invariants
//!
//! - **REPEAT-1**: A phase has at most [`ATTEMPTS`] attempts. All repetitions of an experiment
//!   together are at most a quarter of its phases, or four: the experiment ends in reasonable time
//!   on any machine.
//! - **REPEAT-2**: A disturbed result is retained unless a repetition was disturbed less. A
//!   machine that is busy all the time costs one repetition.
//! - **REPEAT-3**: An error that a repetition cannot change ([`Error::is_final`]) ends the
//!   experiment at once.

mod interference;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::mem;

use apus_report::progress::Progress;
use apus_report::result::{Incident, Outcome, PhaseEnd, Phases};

pub use self::interference::Interference;
use crate::error::Error;
use crate::machine::BackgroundLoad;

/// Maximum attempts of one phase. Chosen by us: a cause that strikes three times is not a
/// coincidence.
pub const ATTEMPTS: usize = 3;

/// Maximum number of consecutive lost phases before the rest is abandoned. Chosen by us: each lost
/// phase may have taken a full timeout.
const PATIENCE: usize = 3;

/// Minimum number of repetitions allowed to an experiment with few phases.
const LEAST_REPETITIONS: usize = 4;

/// Attempts the phases of an experiment, and records their outcomes.
#[derive(Debug)]
pub struct Repeater {
    progress: Progress,
    neighbours: BackgroundLoad,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// Remaining repetitions of the experiment.
    left: usize,
    /// Whether the machine was busy during a phase and its repetition, so that further repetitions
    /// would be useless.
    busy: bool,
    /// Number of consecutive lost phases.
    lost: usize,
    /// Rows whose last phase was lost. Their next phase has one attempt.
    hopeless: BTreeSet<String>,
    /// Error of the last lost phase.
    last_error: Option<Error>,
    phases: Phases,
}

impl Repeater {
    /// Returns the repeater of an experiment of `phases` phases, and starts to watch the machine.
    #[must_use]
    pub fn of(phases: usize, progress: Progress) -> Self {
        let state = State {
            left: (phases / 4).max(LEAST_REPETITIONS),
            busy: false,
            lost: 0,
            hopeless: BTreeSet::new(),
            last_error: None,
            phases: Phases::default(),
        };
        Self { progress, neighbours: BackgroundLoad::watch(), state: RefCell::new(state) }
    }

    /// Returns the progress of the experiment.
    #[must_use]
    pub const fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Attempts a phase of a row until an attempt counts, at most [`ATTEMPTS`] times. `phase` is
    /// its name, like `run 2`. The child processes of an attempt must have ended when it returns.
    ///
    /// Returns `None` if no attempt has a result.
    ///
    /// # Errors
    ///
    /// An error that a repetition cannot change.
    pub fn attempt<T>(
        &self,
        row: &str,
        phase: &str,
        mut attempt: impl FnMut() -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        self.observed(row, phase, || {
            let watch = BackgroundLoad::watch();
            let result = attempt();
            (result, Interference::since(&watch))
        })
    }

    /// Attempts a phase; `attempt` also returns the interference.
    fn observed<T>(
        &self,
        row: &str,
        phase: &str,
        mut attempt: impl FnMut() -> (Result<T, Error>, Option<Interference>),
    ) -> Result<Option<T>, Error> {
        if self.state.borrow().lost >= PATIENCE {
            let why = vec!["given up".to_owned()];
            self.state.borrow_mut().record(row, phase, 0, PhaseEnd::Lost, why);
            return Ok(None);
        }
        let mut attempts = 0;
        let mut best: Option<(T, Interference)> = None;
        let (mut whys, mut last_error) = (Vec::new(), None);
        loop {
            attempts += 1;
            let (why, is_promising) = match attempt() {
                (Err(error), _) if error.is_final() => return Err(error),
                (Err(error), _) => {
                    let why = error.to_string();
                    last_error = Some(error);
                    (why, !self.state.borrow().hopeless.contains(row))
                }
                (Ok(result), None) => {
                    self.state.borrow_mut().succeed(row, phase, attempts, whys);
                    return Ok(Some(result));
                }
                (Ok(result), Some(found)) => {
                    self.state.borrow_mut().busy |= best.is_some();
                    if best.as_ref().is_none_or(|(_, least)| found.share() < least.share()) {
                        best = Some((result, found));
                    }
                    (found.to_string(), !self.state.borrow().busy)
                }
            };
            whys.push(why);
            if !is_promising || attempts == ATTEMPTS || !self.state.borrow_mut().take() {
                break;
            }
            self.progress.note(&format!("{row}, {phase}: again"));
        }
        let mut state = self.state.borrow_mut();
        if let Some((result, _)) = best {
            state.end_losses(row);
            state.record(row, phase, attempts, PhaseEnd::Disturbed, whys);
            return Ok(Some(result));
        }
        let error = last_error.expect("an attempt without a result has failed");
        state.lost += 1;
        state.hopeless.insert(row.to_owned());
        state.record(row, phase, attempts, PhaseEnd::Lost, whys);
        state.last_error = Some(error);
        Ok(None)
    }

    /// Returns the error of an experiment that has no result at all.
    #[must_use]
    pub fn failure(&self) -> Error {
        let state = self.state.borrow();
        let why = state.last_error.as_ref().map(ToString::to_string);
        let why = why.unwrap_or_else(|| "nothing was measured".to_owned());
        Error::Peer(format!("no run succeeded; {why}"))
    }

    /// Returns the record of the phases since the previous call, for experiments in several parts.
    /// Losses in one part do not make the repeater abandon the next.
    #[must_use]
    pub fn take(&self) -> Phases {
        let mut state = self.state.borrow_mut();
        (state.lost, state.hopeless) = (0, BTreeSet::new());
        mem::take(&mut state.phases)
    }

    /// Returns a note for readers of the result if other programs were active. To be called when
    /// all phases have ended.
    #[must_use]
    pub fn neighbours(&self) -> Option<String> {
        self.neighbours.note()
    }

    /// Adds the record of the phases to the outcome of the experiment; rows are matched by name.
    /// To be called when all phases have ended.
    ///
    /// # Errors
    ///
    /// No row has a result.
    pub fn account(&self, outcome: &mut Outcome) -> Result<(), Error> {
        if outcome.rows.is_empty() {
            return Err(self.failure());
        }
        outcome.account(self.take());
        outcome.notes.extend(self.neighbours());
        Ok(())
    }
}

impl State {
    /// Uses up one repetition, if any remain.
    const fn take(&mut self) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        true
    }

    fn succeed(&mut self, row: &str, phase: &str, attempts: usize, whys: Vec<String>) {
        self.busy = false;
        self.end_losses(row);
        if whys.is_empty() {
            self.phases.record_measured(row);
        } else {
            self.record(row, phase, attempts, PhaseEnd::Measured, whys);
        }
    }

    fn end_losses(&mut self, row: &str) {
        self.lost = 0;
        self.hopeless.remove(row);
    }

    fn record(&mut self, row: &str, phase: &str, attempts: usize, end: PhaseEnd, why: Vec<String>) {
        let (row, phase) = (row.to_owned(), phase.to_owned());
        self.phases.record(Incident { row, phase, attempts, end, why });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_report::result::PhaseCounts;

    fn repeater(phases: usize) -> Repeater {
        Repeater::of(phases, Progress::of(phases))
    }

    fn fell_out() -> Error {
        Error::Peer("a host fell out".to_owned())
    }

    /// Attempts a phase that fails `failures` times.
    fn failing(repeater: &Repeater, row: &str, failures: usize) -> Option<usize> {
        let mut attempts = 0;
        let result = repeater.attempt(row, "run 1", || {
            attempts += 1;
            if attempts <= failures { Err(fell_out()) } else { Ok(attempts) }
        });
        result.unwrap()
    }

    fn counts(repeater: &Repeater) -> PhaseCounts {
        repeater.take().counts
    }

    #[test]
    fn a_phase_that_fails_is_attempted_again_and_then_given_up() {
        let repeater = repeater(40);
        assert_eq!(failing(&repeater, "tcp", 2), Some(3));
        assert_eq!(failing(&repeater, "apus", ATTEMPTS), None);
        assert_eq!(failing(&repeater, "udp", 0), Some(1));
        let phases = repeater.take();
        let ends: Vec<_> = phases.incidents.iter().map(|it| (it.attempts, it.end)).collect();
        assert_eq!(ends, [(3, PhaseEnd::Measured), (3, PhaseEnd::Lost)]);
        assert_eq!(phases.why_lost("apus"), Some("a host fell out"));
    }

    #[test]
    fn a_row_that_was_lost_has_one_attempt_until_it_succeeds() {
        let repeater = repeater(100);
        assert_eq!(failing(&repeater, "tcp", ATTEMPTS), None);
        assert_eq!(failing(&repeater, "tcp", 1), None);
        assert_eq!(failing(&repeater, "tcp", 0), Some(1));
        assert_eq!(failing(&repeater, "tcp", 1), Some(2));
    }

    #[test]
    fn repetitions_of_all_phases_together_end() {
        let repeater = repeater(5);
        let attempts: Vec<_> = (0..6).map(|_| failing(&repeater, "tcp", 1)).collect();
        assert_eq!(attempts[..LEAST_REPETITIONS], [Some(2); LEAST_REPETITIONS]);
        assert_eq!(attempts[LEAST_REPETITIONS..], [None, None]);
    }

    #[test]
    fn after_three_losses_one_after_the_other_the_rest_is_given_up() {
        let repeater = repeater(1);
        for row in ["a", "b", "c"] {
            assert_eq!(failing(&repeater, row, ATTEMPTS), None);
        }
        assert_eq!(failing(&repeater, "d", 0), None, "not attempted");
        assert_eq!(counts(&repeater), PhaseCounts { lost: 4, repeated: 4, ..Default::default() });
        assert_eq!(failing(&repeater, "d", 0), Some(1), "another part");
    }

    /// Attempts a phase whose consecutive attempts run while the machine is busy for these shares
    /// of the time. Returns the number of the attempt that counts.
    fn disturbed(repeater: &Repeater, shares: &[f64]) -> usize {
        let mut attempts = 0;
        let result = repeater.observed("apus", "run 1", || {
            let share = shares[attempts];
            attempts += 1;
            (Ok(attempts), (share > 0.0).then(|| Interference::of_others(share)))
        });
        result.unwrap().unwrap()
    }

    #[test]
    fn a_disturbed_phase_is_repeated_and_the_least_disturbed_attempt_counts() {
        let repeater = repeater(40);
        assert_eq!(disturbed(&repeater, &[0.5, 0.0]), 2);
        assert_eq!(disturbed(&repeater, &[0.5, 0.3]), 2);
        assert_eq!(disturbed(&repeater, &[0.0]), 1);
        assert_eq!(disturbed(&repeater, &[0.3, 0.5]), 1);
        let phases = repeater.take();
        let ends: Vec<_> = phases.incidents.iter().map(|it| (it.attempts, it.end)).collect();
        let kept = (2, PhaseEnd::Disturbed);
        assert_eq!(ends, [(2, PhaseEnd::Measured), kept, kept]);
        let whys = [30, 50].map(|share| format!("other programs used {share} % of the processors"));
        assert_eq!(phases.incidents[2].why, whys);
    }

    #[test]
    fn a_machine_that_is_busy_all_the_time_costs_one_repetition() {
        let repeater = repeater(40);
        for shares in [&[0.5, 0.5][..], &[0.5], &[0.5], &[0.0], &[0.5, 0.0]] {
            disturbed(&repeater, shares);
        }
        let expected = PhaseCounts { measured: 5, repeated: 2, disturbed: 3, lost: 0 };
        assert_eq!(counts(&repeater), expected);
    }

    #[test]
    fn a_disturbed_result_is_better_than_none() {
        let repeater = repeater(40);
        let mut attempts = 0;
        let result = repeater.observed("apus", "run 1", || {
            attempts += 1;
            let found = Some(Interference::of_others(0.5));
            if attempts == 1 { (Ok(attempts), found) } else { (Err(fell_out()), found) }
        });
        assert_eq!((result.unwrap(), attempts), (Some(1), ATTEMPTS));
    }

    #[test]
    fn an_error_that_a_repetition_cannot_change_ends_the_experiment() {
        let repeater = repeater(9);
        let mut attempts = 0;
        let result: Result<Option<()>, _> = repeater.attempt("tcp", "run 1", || {
            attempts += 1;
            Err(Error::Option { option: "size", problem: "too much".to_owned() })
        });
        assert_eq!((result.unwrap_err().to_string(), attempts), ("size: too much".to_owned(), 1));
    }

    #[test]
    fn an_experiment_without_any_result_has_an_error() {
        let repeater = repeater(1);
        assert_eq!(failing(&repeater, "tcp", ATTEMPTS), None);
        let mut outcome = Outcome::new("test", serde_json::Map::new());
        let error = repeater.account(&mut outcome).unwrap_err().to_string();
        assert_eq!(error, "no run succeeded; a host fell out");
    }
}
