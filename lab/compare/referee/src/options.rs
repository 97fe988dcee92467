//! Options of the command.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use apus_report::experiment::config;
use apus_report::findings::Findings;
use apus_testbed::error::{Doing, Error, require};
use apus_testbed::fabric::Spec;
use apus_workload::{Rate, units};
use clap::Parser;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::memory::CROWDS;
use crate::tails::{LOADS, Load};
use crate::works::{COURSES, Course};
use crate::{document, footprint};

/// apus beside what users would pick instead
///
/// Each peer has a program of its own, written as its project's own best example. All do the same
/// work over the loopback interface, in processes that are pinned to a core each, in turns; figures
/// are medians over the runs, and ratios are computed inside each run. Replies are compared with
/// what they must be, byte by byte.
#[derive(Clone, Debug, Parser, Serialize)]
#[command(
    name = "lab/compare/run",
    version,
    after_help = "Examples:
  lab/compare/run
  lab/compare/run --only tcp,tokio,tarpc,tonic,quinn
  lab/compare/run --only quinn --works rtt-100,rate-100 --seconds 3 --json
  lab/compare/run --only tonic,quinn --works tails-w4 --runs 3
  lab/compare/run --works build --build"
)]
pub(crate) struct Options {
    /// Only these peers beside apus, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip)]
    pub(crate) only: Vec<String>,
    /// Only these works, with commas between them: `rtt-100`, `rtt-1k`, `rtt-10k`, each also with
    /// `-spin`, `rate-100`, `throughput-500k`; `memory-1`, `memory-100`, `memory-10k` (memory of a
    /// server for each of that many clients); `tails-w3`, `tails-w4` (slowdown under load between
    /// hosts); `build` (dependencies)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip)]
    pub(crate) works: Vec<String>,
    /// Also measure tails under load, where --only or --works select something else. They need
    /// network namespaces: root, or users who may create them
    #[arg(long)]
    #[serde(skip)]
    pub(crate) tails: bool,
    /// Hosts of the tails, each of them server and client: 2 to 128
    #[arg(long, value_name = "HOSTS", default_value_t = 4)]
    pub(crate) nodes: usize,
    /// Rate of each host's link there. The cores that all hosts share must not be the bottleneck
    #[arg(long, value_name = "RATE", default_value = "40mbit", value_parser = units::rate)]
    #[serde(serialize_with = "in_words")]
    pub(crate) link: Rate,
    /// Share of each link that is busy there with requests and replies: 0.01 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, allow_negative_numbers = true)]
    pub(crate) load: f64,
    /// Seconds of each measurement of the tails
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, allow_negative_numbers = true)]
    pub(crate) tail_seconds: f64,
    /// Also time a clean build of each peer's dependencies, which takes minutes
    #[arg(long)]
    #[serde(skip)]
    pub(crate) build: bool,
    /// Seconds of each other measurement: 0.01 to 3600; a tenth of it is warm-up before
    #[arg(long, value_name = "SECONDS", default_value_t = 0.5, allow_negative_numbers = true)]
    pub(crate) seconds: f64,
    /// Runs: 1 to 1000; the median over them is reported
    #[arg(long, value_name = "RUNS", default_value_t = 3)]
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
        require((0.01..=3_600.0).contains(&self.seconds), "seconds", "from 0.01 to 3600; try 0.5")?;
        require((1..=1_000).contains(&self.runs), "runs", "from 1 to 1000; try 3")?;
        let seconds = (0.01..=3_600.0).contains(&self.tail_seconds);
        require(seconds, "tail-seconds", "from 0.01 to 3600; try 20")?;
        require((0.01..=1.0).contains(&self.load), "load", "from 0.01 to 1; try 0.8")?;
        Spec { nodes: self.nodes, link: self.link, ..Spec::default() }.check()?;
        let known = |name: &String| names().any(|known| known == name);
        require(
            self.works.iter().all(known),
            "works",
            "there is no such work; try rtt-100,rate-100",
        )
    }

    /// Returns whether a work other than a load is selected.
    pub(crate) fn selects(&self, work: &str) -> bool {
        self.works.is_empty() || self.works.iter().any(|it| it == work)
    }

    /// Returns the selected works of one client and one server.
    pub(crate) fn courses(&self) -> Vec<Course> {
        COURSES.into_iter().filter(|course| self.selects(course.name)).collect()
    }

    /// Returns the loads whose tails are measured: by default, or if selected.
    pub(crate) fn loads(&self) -> Vec<Load> {
        let by_name = |load: &Load| self.works.iter().any(|it| it == load.name);
        let all = self.tails || (self.works.is_empty() && self.only.is_empty());
        LOADS.into_iter().filter(|load| all || by_name(load)).collect()
    }

    /// Returns the length of the counting window.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    /// Returns the options as a result shows them.
    pub(crate) fn config(&self) -> Map<String, Value> {
        let mut all = config(self);
        if self.loads().is_empty() {
            all.retain(|name, _| !["nodes", "link", "load", "tail_seconds"].contains(&&name[..]));
        }
        let today = OffsetDateTime::now_utc().date().to_string();
        all.insert("date".to_owned(), Value::String(today));
        all
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

/// Returns the names of all works.
fn names() -> impl Iterator<Item = &'static str> {
    let courses = COURSES.iter().map(|course| course.name);
    let crowds = CROWDS.iter().map(|crowd| crowd.name);
    let loads = LOADS.iter().map(|load| load.name);
    courses.chain(crowds).chain(loads).chain([footprint::NAME])
}

fn in_words<S: Serializer>(rate: &Rate, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&units::format_rate(*rate))
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
        for (name, value) in [
            ("seconds", "0"),
            ("seconds", "NaN"),
            ("runs", "0"),
            ("works", "naps"),
            ("load", "2"),
            ("nodes", "1"),
            ("tail-seconds", "0"),
        ] {
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

    #[test]
    fn tails_are_measured_if_nothing_else_is_selected_or_if_they_are() {
        let names = |arguments: &[&str]| {
            parse(arguments).loads().iter().map(|load| load.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["tails-w3", "tails-w4"]);
        assert_eq!(names(&["--only", "quinn"]), [""; 0]);
        assert_eq!(names(&["--works", "rtt-100"]), [""; 0]);
        assert_eq!(names(&["--only", "quinn", "--tails"]), ["tails-w3", "tails-w4"]);
        assert_eq!(names(&["--works", "rtt-100,tails-w4"]), ["tails-w4"]);
    }

    #[test]
    fn the_settings_of_tails_are_shown_with_them_and_the_date_always() {
        let config = parse(&["--only", "quinn"]).config();
        assert!(config.contains_key("date") && !config.contains_key("link"), "{config:?}");
        assert_eq!(parse(&[]).config()["link"], "40mbit");
    }
}
