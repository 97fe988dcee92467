//! `apus-lab demo`: short messages among long ones, over apus and over TCP.

use std::env;
use std::path::PathBuf;

use apus_bench::demo;
use apus_doctor::doctor;
use clap::Args;

use apus_command_line::destination::Destination;
use apus_command_line::experiment::{answered, print};
use apus_command_line::failure::Failure;
use apus_command_line::output;

/// Default file of the page.
const PAGE: &str = "apus-demo.html";

// The demo explains the command.
#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    #[command(flatten)]
    options: demo::DemoOptions,
    /// Print one JSON object instead of tables
    #[arg(long)]
    json: bool,
    /// File of the page with the charts [default: apus-demo.html, if it can be written]
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write no page
    #[arg(long, conflicts_with = "html")]
    no_html: bool,
}

/// Runs the demo, prints its findings and writes its page.
pub(crate) fn run(arguments: &DemoArguments) -> Result<(), Failure> {
    let DemoArguments { options, json, .. } = arguments;
    options.check()?;
    let page = arguments.page()?;
    let program = env::current_exe().map_err(|error| Failure::of("find this program", &error))?;
    let findings = demo::run(options, &program, &output::note)?;
    // The findings are printed even if the disk has become full meanwhile.
    let filled = page.map(|(path, page)| (page.fill(findings.html().as_bytes()), path));
    if let Some((Ok(()), path)) = &filled {
        output::note(&format!(
            "A page with charts is in {}; open it in a browser.",
            path.display()
        ));
    }
    print(&findings, *json)?;
    if let Some((filled, _)) = filled {
        filled?;
    }
    // A check forbidden by the system does not justify a line.
    let report = doctor::run(&doctor::DoctorOptions::default()).ok();
    if let Some(line) = report.as_ref().and_then(doctor::advice) {
        output::note(&line);
    }
    answered(&findings)
}

impl DemoArguments {
    /// Returns the destination of the page; `None` for `--no-html`, or if no file was named and the
    /// working directory belongs to another user.
    fn page(&self) -> Result<Option<(PathBuf, Destination)>, Failure> {
        if self.no_html {
            return Ok(None);
        }
        if let Some(path) = &self.html {
            return Ok(Some((path.clone(), Destination::open_page("--html", path)?)));
        }
        let path = PathBuf::from(PAGE);
        match Destination::open_page("--html", &path) {
            Ok(page) => Ok(Some((path, page))),
            Err(Failure::Argument { problem, .. }) => {
                output::note(&format!("{PAGE} cannot be written here: no page is made; {problem}"));
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}
