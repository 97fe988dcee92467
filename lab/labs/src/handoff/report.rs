//! The result of the handoff lab: counts and ratios of each receive path.

use super::options::Options;
use super::socket::Counts;
use super::trial::Path;
use apus_report::experiment::config;
use apus_report::result::{Outcome, Row};

/// Returns the result of the trials of each path. A path without any has no row.
pub(super) fn outcome(options: &Options, paths: &[Path], found: &[Vec<Counts>]) -> Outcome {
    let mut outcome = Outcome::new("lab handoff", config(options));
    let measured = paths.iter().zip(found).filter(|(_, trials)| !trials.is_empty());
    outcome.rows = measured.map(|(path, trials)| row(&path.name(), trials)).collect();
    outcome.notes.push(
        "published for the Linux kernel's module: 1.148 before it was mended, 1.000 in 5 of 5 trials after that"
            .to_owned(),
    );
    outcome
}

fn row(name: &str, trials: &[Counts]) -> Row {
    let ratio = |counts: &Counts| counts.handoffs as f64 / counts.messages.max(1) as f64;
    Row::new(name)
        .with_sum("messages", trials, |counts| counts.messages)
        .with_sum("handoffs", trials, |counts| counts.handoffs)
        .with_spread("handoffs_per_message", trials, ratio)
        .with_sum("spurious_wakeups", trials, |counts| counts.spurious)
        .with_sum("keeper_turns", trials, |counts| counts.keeper_turns)
}
