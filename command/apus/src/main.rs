//! The `apus` command for operators.
//!
//! ```text
//!   serve, call           an echo service, and calls by hand                       (apus)
//!   fs                    a directory served and mounted                           (apus-fs)
//!   keys                  a small certificate authority                            (apus)
//!   decode                packets of a capture as text                             (apus-decode)
//!   trace                 latency of RPCs, stage by stage                          (apus-traces)
//!   doctor, tune          faults of a host, and the best settings for it           (apus-doctor)
//!   metrics, top          the counters of running processes                        (apus)
//!
//!   command_line          all commands together
//!   forward               commands of `apus-lab`: demo, bench, sim, lab, fabric, fs bench|check
//!   address, path, processes, sealing, tracing
//!                         arguments shared by several commands
//!   activity              counter changes of a process between two snapshots
//!   senders               peers with arriving messages, as columns
//! ```
//!
//! Output, failures and arguments shared with `apus-lab` are in `apus-command-line`.
//!
//! A module imports only from the groups below its own, and a command never imports from another
//! command; `tests/architecture.rs` checks that.

mod activity;
mod address;
mod call;
mod command_line;
mod decode;
mod doctor;
mod forward;
mod fs;
mod keys;
mod metrics;
mod path;
mod processes;
mod sealing;
mod senders;
mod serve;
#[cfg(feature = "top")]
mod top;
mod trace;
mod tracing;
mod tune;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use apus_command_line::definitions::example;
use apus_command_line::exit;
use apus_command_line::failure::Failure;
use apus_measure::exchange;
use apus_measure::process::{AGENT, agent_main, run_job};

use crate::command_line::{Command, definitions};

fn main() -> ExitCode {
    // `tune` and `trace record` start this program again for each of their sides.
    if env::args_os().nth(1).is_some_and(|first| first == AGENT) {
        return agent_main(|task, control| run_job(exchange::JOBS, task, control));
    }
    let words = fs::translate(env::args_os());
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => exit::report(failure, example(&definitions(), &words)),
    }
}

fn run(words: &[OsString]) -> Result<(), Failure> {
    if let Some(failure) = forward::run_elsewhere(words) {
        return Err(failure);
    }
    match command_line::parse(words.to_vec())? {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Fs(arguments) => fs::run(&arguments),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Metrics(arguments) => metrics::run(&arguments),
        #[cfg(feature = "top")]
        Command::Top(arguments) => top::run(&arguments),
        Command::Completions(arguments) => arguments.run(definitions()),
        Command::Man(arguments) => arguments.run(definitions()),
    }
}
