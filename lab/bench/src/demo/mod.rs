//! The demo: short messages among long ones, over apus and over the usual transports.
//!
//! W4 at 80 % load. The path is the first of these that this system allows; the result states the
//! path and the reason:
//!
//! ```text
//!   fabric      real sockets between hosts on shaped links: apus, tcp, tcp-per-request
//!   simulator   simulated hosts of one rack: apus as it ships, dctcp; and loopback
//!   loopback    one client and one server of this machine: round trip and rate of apus and tcp
//! ```
//!
//! Settings are fixed: no calibration is needed, and the demo ends within a minute.
//! `apus-lab bench cluster` and `apus-lab sim run` have all settings, and the demo's page includes
//! the command that repeats it with one of them.

mod fabric;
mod loopback;
mod options;
mod path;
mod simulator;

pub use options::DemoOptions;

use std::path::Path as File;

use serde_json::{Value, json};

use self::path::Path;
use apus_report::findings::Findings;
use apus_testbed::error::Error;
use apus_testbed::process::{Control, Spawner, Task};

/// Load of each link: its share of time busy with messages.
const LOAD: f64 = 0.8;

/// Longer messages are cut to this, as in the kernel module and in the published comparisons.
const LONGEST: u32 = 1_000_000;

/// Runs the demo. `program` is an agent when its first argument is
/// [`AGENT`](apus_testbed::process::AGENT). `say` is called with progress lines: networks built and
/// removed, and paths that this system does not allow.
///
/// # Errors
///
/// An option is out of range, or not even loopback can be measured.
pub fn run(options: &DemoOptions, program: &File, say: &dyn Fn(&str)) -> Result<Findings, Error> {
    options.check()?;
    let host = &Spawner::Processes(program.to_owned());
    let (path, findings, reasons) = match fabric::run(options, program, say) {
        Ok(findings) => (Path::Fabric, findings, Vec::new()),
        Err(error @ Error::Option { .. }) => return Err(error),
        Err(error) => without_fabric(options, host, &error, say)?,
    };
    Ok(labelled(findings, path, reasons))
}

/// Runs the paths that need no network between hosts. Returns the path taken, the findings, and the
/// reasons why better paths are unavailable.
fn without_fabric(
    options: &DemoOptions,
    host: &Spawner,
    error: &Error,
    say: &dyn Fn(&str),
) -> Result<(Path, Findings, Vec<String>), Error> {
    let mut reasons = vec![match error {
        Error::Unavailable { .. } => format!("no network between hosts can be built here: {error}"),
        error => format!("the network between hosts gave no result: {error}"),
    }];
    say(&reasons[0]);
    say("Instead, the same messages go through the simulator, and loopback is measured.");
    if options.sealed {
        reasons.push("packets are not sealed in the simulator: `apus-lab bench rtt --sealed` measures that over loopback".to_owned());
    }
    match simulator::run(options, host) {
        Ok(mut findings) => {
            // The simulator has answered the question; this is an addition.
            match loopback::run(options, host) {
                Ok(measured) => simulator::add_loopback(&mut findings, &measured),
                Err(error) => reasons.push(format!("loopback was not measured: {error}")),
            }
            Ok((Path::Simulator, findings, reasons))
        }
        Err(error) => {
            reasons.push(format!("the simulator does not run here: {error}"));
            say(&reasons[1]);
            Ok((Path::Loopback, loopback::run(options, host)?.findings(options), reasons))
        }
    }
}

/// Adds the path and the reasons for it to findings.
fn labelled(mut findings: Findings, path: Path, reasons: Vec<String>) -> Findings {
    findings.outcome.members.insert("path".to_owned(), json!(path.to_string()));
    findings.outcome.notes.splice(0..0, reasons);
    findings.lead = format!("{} {}", path.in_words(), findings.lead);
    findings
}

/// The job of [`agent`].
pub(crate) const JOB: &str = "demo";

/// Runs a simulation in an agent.
pub(crate) fn agent(task: &Task, control: &mut Control) -> Result<Value, Error> {
    simulator::agent(task, control)
}
