//! Options of the command.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use apus_report::experiment::config;
use apus_report::findings::Findings;
use apus_testbed::error::{Doing, Error, require};
use clap::Parser;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::document;
use crate::works::{COURSES, Course};

/// apus beside what users would pick instead
///
/// Each peer has a program of its own, written as its project's own best example. All do the same work over the loopback
/// interface, in processes that are pinned to a core each, in turns; figures are medians over the runs, and ratios are computed
/// inside each run. Replies are compared with what they must be, byte by byte.
#[derive(Clone, Debug, Parser, Serialize)]
#[command(
    name = "compare/run",
    version,
    after_help = "Examples:
  compare/run
  compare/run --only tcp,tokio,tarpc,tonic,quinn
  compare/run --only quinn --works rtt-100,rate-100 --seconds 3 --json"
)]
pub(crate) struct Options {
    /// Only these peers beside apus, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip)]
    pub(crate) only: Vec<String>,
    /// Only these works, with commas between them: `rtt-100`, `rtt-1k`, `rtt-10k`, each also with `-spin`, `rate-100`,
    /// `throughput-500k`
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip)]
    pub(crate) works: Vec<String>,
    /// Seconds of each measurement: 0.01 to 3600; a tenth of it is warm-up before
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, allow_negative_numbers = true)]
    pub(crate) seconds: f64,
    /// Runs: 1 to 1000; the median over them is reported
    #[arg(long, value_name = "RUNS", default_value_t = 5)]
    pub(crate) runs: usize,
    /// Print one JSON object instead of tables
    #[arg(long)]
    #[serde(skip)]
    pub(crate) json: bool,
    /// Also write a page with the result
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) html: Option<PathBuf>,
    /// Also write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub(crate) markdown: Option<PathBuf>,
}

impl Options {
    /// Checks that each value is in its range.
    pub(crate) fn check(&self) -> Result<(), Error> {
        require((0.01..=3_600.0).contains(&self.seconds), "seconds", "from 0.01 to 3600; try 1")?;
        require((1..=1_000).contains(&self.runs), "runs", "from 1 to 1000; try 5")?;
        let known = |name: &String| COURSES.iter().any(|course| course.name == name);
        require(
            self.works.iter().all(known),
            "works",
            "there is no such work; try rtt-100,rate-100",
        )
    }

    /// Returns the selected works.
    pub(crate) fn courses(&self) -> Vec<Course> {
        let selected = |course: &Course| {
            self.works.is_empty() || self.works.iter().any(|it| it == course.name)
        };
        COURSES.into_iter().filter(selected).collect()
    }

    /// Returns the time in which calls count.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Returns the options as a result shows them.
    pub(crate) fn config(&self) -> Map<String, Value> {
        config(self)
    }

    /// Shows a result.
    pub(crate) fn show(&self, findings: &Findings) -> Result<(), Error> {
        let write = |path: &PathBuf, text: String| {
            fs::write(path, text).doing(|| format!("write {}", path.display()))
        };
        if let Some(path) = &self.html {
            write(path, findings.html())?;
        }
        if let Some(path) = &self.markdown {
            write(path, document::markdown(findings))?;
        }
        if self.json {
            println!("{}", findings.outcome.json());
        } else {
            print!("{findings}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Options {
        let command = ["compare"].into_iter().chain(arguments.iter().copied());
        Options::try_parse_from(command).unwrap()
    }

    #[test]
    fn what_cannot_be_run_is_refused_by_name() {
        parse(&[]).check().unwrap();
        for (name, value) in
            [("seconds", "0"), ("seconds", "NaN"), ("runs", "0"), ("works", "naps")]
        {
            let option = format!("--{name}");
            let error = parse(&[&option, value]).check().unwrap_err().to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }

    #[test]
    fn the_selected_works_keep_their_order() {
        let options = parse(&["--works", "rate-100,rtt-100"]);
        let names: Vec<&str> = options.courses().iter().map(|course| course.name).collect();
        assert_eq!(names, ["rtt-100", "rate-100"]);
        assert_eq!(parse(&[]).courses(), COURSES);
    }
}
