//! What is a message transport good for, on this machine?

use std::path::PathBuf;

use apus_bench::demo::{self, Options};
use apus_testbed::process::Spawner;
use clap::{Args, Command};

use crate::destination::Destination;
use crate::failure::Failure;
use crate::output;
use crate::repetition::{Repetition, with_defaults};

/// Where the page goes if nothing else is said.
const PAGE: &str = "apus-demo.html";

/// Show what apus does for tail latency, beside TCP: the main job, in under a minute
///
/// A server and a client in separate processes exchange messages of a published workload, over apus and
/// over TCP: first one by one, then as fast as they can, then at a load that leaves every contender
/// some air. A table comes out, and a page with charts. No privileges are needed.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  apus demo
  apus demo --workload w3 --load 0.5 --html w3.html
  apus demo --json --no-html > demo.json")]
pub(crate) struct Arguments {
    /// Whose messages: `w1` to `w5` (published workloads), a size in bytes, or a file whose lines are
    /// `SIZE SHARE`, the share of the messages up to that size
    #[arg(long, value_name = "WORKLOAD")]
    workload: String,
    /// Longer messages are as long as this: 1 to 64000000
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    truncate: u32,
    /// Load as a share of what the slowest contender can do: 0.01 to 1
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    load: f64,
    /// Requests per second, instead of a load
    #[arg(long, value_name = "REQUESTS", allow_negative_numbers = true, conflicts_with = "load")]
    rate: Option<f64>,
    #[command(flatten)]
    repetition: Repetition,
    /// Where the page with the charts goes
    #[arg(long, value_name = "FILE", default_value = PAGE)]
    html: PathBuf,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    no_html: bool,
}

/// Runs the demo, prints its result and writes its page.
pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    let Arguments { workload, truncate, load, rate, repetition, html, no_html } = arguments;
    let Repetition { seconds, runs, seed, poll, json } = repetition;
    let options = Options { workload, truncate, load, rate, seconds, runs, seed, poll };
    options.check()?;
    let page = if no_html { None } else { Some(Destination::open("--html", &html)?) };
    let findings = demo::run(&options, &Spawner::this_program()?)?;
    if let Some(page) = page {
        page.fill(findings.html().as_bytes())?;
        output::note(&format!(
            "The same with charts is in {}; open it in a browser.",
            html.display()
        ));
    }
    if json { output::line(&findings.outcome.json()) } else { output::write(findings.to_string()) }
}

/// Gives the arguments the lab's defaults.
pub(crate) fn defaults(command: Command) -> Command {
    let defaults = Options::default();
    with_defaults(
        command,
        [
            ("workload", defaults.workload),
            ("truncate", defaults.truncate.to_string()),
            ("load", defaults.load.to_string()),
            ("seconds", defaults.seconds.to_string()),
            ("runs", defaults.runs.to_string()),
            ("seed", defaults.seed.to_string()),
            ("poll", defaults.poll.to_string()),
        ],
    )
}
