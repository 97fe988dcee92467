//! How does a recommendation look as a file?

use apus::Settings;

use super::evidence::Decision;
use super::options::Options;
use apus_report::result::Outcome;

/// What was measured, where, and how.
pub(super) fn preamble(options: &Options, outcome: &Outcome) -> Vec<String> {
    let Outcome { version, commit, machine, notes, .. } = outcome;
    let mut lines = vec![
        "Settings of apus that suit this host, found by `apus tune`: `apus serve --config FILE`,".to_owned(),
        "or apus::Settings::read(FILE) in a program. Each key is explained in docs/configuration.md.".to_owned(),
        String::new(),
        format!(
            "apus {version} ({commit}), {} cpus, Linux {} {}; up to {} rounds",
            machine.cpus, machine.kernel, machine.arch, options.runs
        ),
    ];
    lines.extend(options.goals.iter().map(|goal| goal.in_words().to_owned()));
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    lines
}

/// The file: evidence first, then what follows from it.
pub(super) fn toml(preamble: &[String], decisions: &[Decision], settings: &Settings) -> String {
    let mut lines: Vec<String> = preamble.iter().map(|line| comment(line)).collect();
    for decision in decisions {
        let Decision { setting, before, taken, candidates } = decision;
        let verdict = if decision.is_a_change() {
            format!("{setting}: {taken} in place of {before}")
        } else {
            format!("{setting}: {before} stays")
        };
        lines.extend([comment(""), comment(&verdict)]);
        for candidate in candidates {
            for effect in &candidate.effects {
                lines.push(comment(&format!("  {}: {}", candidate.value, effect.sentence())));
            }
        }
    }
    let settings = settings.toml();
    let body = if settings.is_empty() { "# Nothing but the defaults.\n" } else { &settings };
    format!("{}\n\n{body}", lines.join("\n"))
}

/// A line that is none of the file's settings, whatever is in it.
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
        let candidate = |value: &str, figures: &[f64], base: Option<&[f64]>| Candidate {
            value: value.to_owned(),
            effects: vec![Effect::of(Goal::Latency, figures, base, 1)],
        };
        let candidates =
            vec![candidate("hybrid", &base, None), candidate("spin", &other, Some(&base))];
        Decision::between("poll", candidates)
    }

    #[test]
    fn the_evidence_stands_above_what_follows_from_it() {
        let settings = Settings { poll: "spin".parse().ok(), ..Settings::default() };
        let preamble = ["one\nline".to_owned()];
        insta::assert_snapshot!(toml(&preamble, &[decision(0.5)], &settings), @r#"
        # one line
        #
        # poll: spin in place of hybrid
        #   hybrid: latency p50_us 10.0 (9.90 – 10.1): in force
        #   spin: latency p50_us 5.00 (4.95 – 5.05), 2.00 (2.00 to 2.00) times as good: better

        poll = "spin"
        "#);
    }

    #[test]
    fn without_a_gain_the_file_has_only_comments_and_is_read_all_the_same() {
        let text = toml(&[], &[decision(1.5)], &Settings::default());
        assert!(
            text.contains("# poll: hybrid stays")
                && text.ends_with("\n# Nothing but the defaults.\n")
        );
        assert_eq!(text.parse::<Settings>().unwrap(), Settings::default());
    }
}
