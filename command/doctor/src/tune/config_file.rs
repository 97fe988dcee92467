//! Configuration file of a recommendation.

use apus::Settings;

use super::evidence::Decision;
use super::options::TuneOptions;
use apus_report::result::Outcome;

/// Returns the head of the file: workload, machine and method of the measurement.
pub(super) fn preamble(options: &TuneOptions, outcome: &Outcome) -> Vec<String> {
    let Outcome { version, commit, machine, notes, .. } = outcome;
    let mut lines = vec![
        "Settings of apus for this host, found by `apus tune`. Use: `apus serve --config FILE`,"
            .to_owned(),
        "or apus::Settings::read(FILE) in a program. docs/configuration.md explains each key."
            .to_owned(),
        String::new(),
        format!(
            "apus {version} ({commit}), {} cpus, Linux {} {}; up to {} rounds",
            machine.cpus, machine.kernel, machine.arch, options.runs
        ),
    ];
    lines.extend(options.goals.iter().map(|goal| goal.description().to_owned()));
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// Returns the file: the evidence as comments, then the settings.
pub(super) fn toml(preamble: &[String], decisions: &[Decision], settings: &Settings) -> String {
    let mut lines: Vec<String> = preamble.iter().map(|line| comment(line)).collect();
    for decision in decisions {
        let Decision { setting, before, recommended, candidates } = decision;
        let verdict = if decision.is_change() {
            format!("{setting}: {recommended} instead of {before}")
        } else {
            format!("{setting}: {before} is kept")
        };
        lines.extend([comment(""), comment(&verdict)]);
        for candidate in candidates {
            for effect in &candidate.effects {
                lines.push(comment(&format!("  {}: {}", candidate.value, effect.sentence())));
            }
        }
    }
    let settings = settings.toml();
    let body = if settings.is_empty() { "# Defaults only.\n" } else { &settings };
    format!("{}\n\n{body}", lines.join("\n"))
}

/// Returns a comment line; line breaks in `line` cannot end the comment.
fn comment(line: &str) -> String {
    let line = line.replace(['\n', '\r'], " ");
    format!("# {line}").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::evidence::{Candidate, Effect};
    use super::super::options::Goal;
    use super::*;

    fn decision(factor: f64) -> Decision {
        let base = [10.0, 10.1, 9.9];
        let other = base.map(|value| value * factor);
        let rounds = |figures: &[f64]| -> Vec<(usize, f64)> {
            figures.iter().copied().enumerate().collect()
        };
        let candidate = |value: &str, figures: &[f64], base: Option<&[(usize, f64)]>| Candidate {
            value: value.to_owned(),
            effects: vec![Effect::of(Goal::Latency, &rounds(figures), base, 1)],
        };
        let base_rounds = rounds(&base);
        let candidates =
            vec![candidate("hybrid", &base, None), candidate("spin", &other, Some(&base_rounds))];
        Decision::between("poll", candidates)
    }

    #[test]
    fn the_evidence_precedes_the_settings() {
        let settings = Settings { poll: "spin".parse().ok(), ..Settings::default() };
        let preamble = ["one\nline".to_owned()];
        insta::assert_snapshot!(toml(&preamble, &[decision(0.5)], &settings), @r#"
        # one line
        #
        # poll: spin instead of hybrid
        #   hybrid: latency p50_us 10.0 (9.90 – 10.1): current
        #   spin: latency p50_us 5.00 (4.95 – 5.05), 2.00 (2.00 to 2.00) times as good: better

        poll = "spin"
        "#);
    }

    #[test]
    fn without_a_gain_the_file_has_only_comments_and_is_valid() {
        let text = toml(&[], &[decision(1.5)], &Settings::default());
        assert!(text.contains("# poll: hybrid is kept") && text.ends_with("\n# Defaults only.\n"));
        assert_eq!(text.parse::<Settings>().unwrap(), Settings::default());
    }
}
