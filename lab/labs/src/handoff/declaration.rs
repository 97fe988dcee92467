//! The report of the handoff lab, declared.

use super::options::HandoffOptions;
use super::socket::Counts;
use super::trial::Path;
use apus_report::declaration::{Declaration, RowFigure};
use apus_report::findings::Findings;
use apus_report::runs::Runs;

const TITLE: &str = "Wake-ups of threads per message";

const LEAD: &str = "Handoffs and wake-ups per message of a receive path that announces a message before its packet is \
                    queued, as the Linux kernel's Homa module did, of its cure, and of apus.";

const PUBLISHED: &str = "published for the Linux kernel's module: 1.148 before the fix, 1.000 in 5 of 5 trials afterwards";

/// The figures of a row; counts are sums over the trials.
const FIGURES: &[RowFigure<Runs<Counts>>] = &[
    RowFigure::shown("messages", |trials| Some(trials.sum(|counts| counts.messages))),
    RowFigure::shown("handoffs", |trials| Some(trials.sum(|counts| counts.handoffs))),
    RowFigure::shown("handoffs_per_message", |trials| trials.figure(handoffs_per_message)),
    RowFigure::shown("spurious_wakeups", |trials| Some(trials.sum(|counts| counts.spurious))),
    RowFigure::shown("keeper_turns", |trials| Some(trials.sum(|counts| counts.keeper_turns))),
];

/// Returns the result of the trials of each path. A path without trials has no row.
pub(super) fn findings(
    options: &HandoffOptions,
    paths: &[Path],
    trials: &[Runs<Counts>],
) -> Findings {
    let measured = paths.iter().zip(trials).filter(|(_, trials)| !trials.is_empty());
    let notes = vec![PUBLISHED.to_owned()];
    Declaration { notes, ..Declaration::new("lab handoff", TITLE, LEAD, FIGURES) }
        .findings(options, measured.map(|(path, trials)| (path.name(), trials)))
}

fn handoffs_per_message(counts: &Counts) -> Option<f64> {
    Some(counts.handoffs as f64 / counts.messages.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_report::findings::read;
    use serde_json::{Value, json};

    #[test]
    fn counts_are_summed_and_ratios_are_spread_over_the_trials() {
        let counts = |handoffs| Counts { messages: 100, handoffs, spurious: 1, keeper_turns: 2 };
        let trials = [[(1, counts(100)), (2, counts(120))].into_iter().collect(), Runs::default()];
        let paths = [Path::SelfPolling, Path::Dedicated(2)];
        let findings = findings(&HandoffOptions::default(), &paths, &trials);
        let found: Value =
            serde_json::from_str(&read::json(&findings, &["rows", "notes"])).unwrap();
        let expected = json!([{
            "name": "apus self-polling", "messages": 200, "handoffs": 220,
            "handoffs_per_message": 1.1, "handoffs_per_message_min": 1.0,
            "handoffs_per_message_max": 1.2, "spurious_wakeups": 2, "keeper_turns": 4,
        }]);
        assert_eq!((&found["rows"], &found["notes"]), (&expected, &json!([PUBLISHED])));
    }
}
