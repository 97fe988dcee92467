//! What do the counts say?

use super::options::Options;
use super::socket::Counts;
use super::trial::Path;
use apus_report::result::{Figure, Outcome, Row};
use apus_report::stats::Spread;

/// Puts the result together.
pub(super) fn outcome(options: &Options, paths: &[Path], found: &[Vec<Counts>]) -> Outcome {
    let mut outcome = Outcome::new("lab handoff", options.config());
    outcome.rows =
        paths.iter().zip(found).map(|(path, trials)| row(&path.name(), trials)).collect();
    outcome.notes.push(
        "published for the Linux kernel's module: 1.148 before it was mended, 1.000 in 5 of 5 trials after that"
            .to_owned(),
    );
    outcome
}

fn row(name: &str, trials: &[Counts]) -> Row {
    let sum = |count: fn(&Counts) -> u64| Figure::Count(trials.iter().map(count).sum());
    let ratios = trials.iter().map(|counts| counts.handoffs as f64 / counts.messages.max(1) as f64);
    let ratios: Vec<f64> = ratios.collect();
    Row::new(name)
        .with("messages", sum(|counts| counts.messages))
        .with("handoffs", sum(|counts| counts.handoffs))
        .with("handoffs_per_message", Figure::Spread(Spread::over(&ratios)))
        .with("spurious_wakeups", sum(|counts| counts.spurious))
        .with("keeper_turns", sum(|counts| counts.keeper_turns))
}
