//! `apus-lab fs check`: consistency of several mounts of one directory.

use std::path::PathBuf;
use std::process;
use std::time::Instant;

use apus_files::check::{self, CheckReport, CheckSettings, Work};
use apus_report::progress::Progress;
use apus_report::result::Outcome;
use clap::Args;
use serde_json::{Map, Value, json};

use apus_command_line::failure::Failure;
use apus_command_line::output;
use apus_command_line::signals;

/// Check that mounts of one directory agree as if they were one local disk
///
/// Threads on all mounts write, cut, read, append, lock, create and remove the same files at once.
/// The check records what each operation was answered and when, and searches for an order of all
/// operations that a local disk could have had. Where there is none, a promise is broken.
///
/// It works on any file system, and in a new directory that it removes at the end.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:
  apus-lab fs check /mnt/one /mnt/two
  apus-lab fs check /mnt/one /mnt/two /mnt/three --operations 1000000 --workers 1
  apus-lab fs check /tmp --seed 7 --json

Exit status:
  0  no promise was broken
  1  a promise was broken, or the check could not run
  2  the arguments are wrong"
)]
pub(super) struct CheckArguments {
    /// Where the directory is mounted; a path that is given twice counts as two mounts
    #[arg(value_name = "MOUNT", required = true)]
    mounts: Vec<PathBuf>,
    /// Operations of each kind of work, by all threads together: 1 to 1000000000
    #[arg(long, value_name = "NUMBER", default_value = "10000",
          value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    operations: u64,
    /// Threads that work on each mount: 1 to 64
    #[arg(long, value_name = "NUMBER", default_value = "2",
          value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,
    /// Seed of the choices
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

/// Runs the check and prints its findings.
///
/// # Errors
///
/// [`Failure::Found`] if a promise was broken. Otherwise a path is unusable, or an operation that
/// must not fail failed.
pub(super) fn run(arguments: &CheckArguments) -> Result<(), Failure> {
    for mount in &arguments.mounts {
        let problem = match std::fs::metadata(mount) {
            Ok(found) if found.is_dir() => continue,
            Ok(_) => "it is no directory".to_owned(),
            Err(error) => error.to_string(),
        };
        let problem = format!("{}: {problem}", mount.display());
        return Err(Failure::Argument { argument: "MOUNT".to_owned(), problem });
    }
    let left_behind = arguments.mounts[0].join(check::directory_name());
    signals::on_first(move || {
        // Workers may still create files in it; by the last attempt all have stopped.
        for _ in 0..10 {
            let _ = std::fs::remove_dir_all(&left_behind);
        }
        process::exit(1);
    })
    .map_err(|error| Failure::of("catch signals", &error))?;
    let settings = CheckSettings {
        mounts: arguments.mounts.clone(),
        workers: usize::from(arguments.workers),
        operations: arguments.operations,
        seed: arguments.seed,
        atomic_reads: true,
    };
    let began = Instant::now();
    let progress = Progress::of(Work::ALL.len());
    let report = check::run(&settings, |work| progress.step(&work.to_string()));
    drop(progress);
    let report = report.map_err(|error| Failure::Work(error.to_string()))?;
    if arguments.json {
        output::line(&json_text(arguments, &report))?;
    } else {
        output::write(text(arguments.mounts.len(), &report, began.elapsed().as_secs_f64()))?;
    }
    if report.violations.is_empty() { Ok(()) } else { Err(Failure::Found(1)) }
}

/// Returns the violations and the totals as text.
fn text(mounts: usize, report: &CheckReport, seconds: f64) -> String {
    let mut text: String =
        report.violations.iter().map(|violation| format!("{}\n\n", violation.trim_end())).collect();
    text += &format!(
        "{} operations on {mounts} mounts, {} violations, {seconds:.1} s\n",
        report.operations,
        report.violations.len()
    );
    if report.undecided > 0 {
        text += &format!(
            "{} histories are undecided: the search for an order took too long; try fewer --operations\n",
            report.undecided
        );
    }
    text
}

/// Returns the violations and the totals as JSON.
fn json_text(arguments: &CheckArguments, report: &CheckReport) -> String {
    let mut config = Map::new();
    config.insert("mounts".to_owned(), json!(arguments.mounts));
    config.insert("operations".to_owned(), json!(arguments.operations));
    config.insert("workers".to_owned(), json!(arguments.workers));
    config.insert("seed".to_owned(), json!(arguments.seed));
    let mut outcome = Outcome::new("fs check", config);
    let members: [(&str, Value); 5] = [
        ("operations", json!(report.operations)),
        ("mounts", json!(arguments.mounts.len())),
        ("violations", json!(report.violations.len())),
        ("undecided", json!(report.undecided)),
        ("found", json!(report.violations)),
    ];
    outcome.members.extend(members.map(|(name, value)| (name.to_owned(), value)));
    outcome.json()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> CheckArguments {
        let mounts = vec!["/mnt/one".into(), "/mnt/two".into()];
        CheckArguments { mounts, operations: 10, workers: 2, seed: 1, json: true }
    }

    #[test]
    fn the_json_contains_what_the_contract_names() {
        let report =
            CheckReport { operations: 40, undecided: 0, violations: vec!["a lost append".into()] };
        let json: Value = serde_json::from_str(&json_text(&arguments(), &report)).unwrap();
        assert_eq!(
            (&json["operations"], &json["mounts"], &json["violations"]),
            (&json!(40), &json!(2), &json!(1))
        );
        assert_eq!(json["found"], json!(["a lost append"]));
        assert_eq!(json["experiment"], "fs check");
    }

    #[test]
    fn the_text_shows_violations_first() {
        let report = CheckReport {
            operations: 40,
            undecided: 1,
            violations: vec!["a lost append\n".into()],
        };
        let text = text(2, &report, 0.5);
        assert!(
            text.starts_with(
                "a lost append\n\n40 operations on 2 mounts, 1 violations, 0.5 s\n1 histories"
            ),
            "{text}"
        );
    }
}
