//! `apus demo`: the tail latency of apus beside TCP on this machine.

use std::path::PathBuf;

use apus_bench::demo;
use apus_report::experiment::Experiment;
use clap::Args;

use crate::destination::Destination;
use crate::experiment::{answered, print};
use crate::failure::Failure;
use crate::output;

// The demo explains the command.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    options: demo::Options,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// File of the page with the charts
    #[arg(long, value_name = "FILE", default_value = "apus-demo.html")]
    html: PathBuf,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    no_html: bool,
}

/// Runs the demo, prints its findings and writes its page.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Arguments { options, json, html, no_html } = arguments;
    options.check()?;
    let page = if *no_html { None } else { Some(Destination::open("--html", html)?) };
    let findings = options.run()?;
    if let Some(page) = page {
        page.fill(findings.html().as_bytes())?;
        output::note(&format!(
            "The same with charts is in {}; open it in a browser.",
            html.display()
        ));
    }
    print(&findings, *json)?;
    answered(&findings)
}
