//! The `apus-lab` command for measurements and proofs.
//!
//! ```text
//!   demo, bench   apus compared with UDP, TCP and Unix sockets   (apus-bench)
//!   lab           known failures of network software             (apus-labs)
//!   sim           the protocol in a simulated fabric             (apus-sim, apus-sweep, apus-swarm)
//!   fabric        a network of several hosts on this machine     (apus-testbed)
//!   fs            measurement and checks of the file service     (apus-files)
//!
//!   command_line  all commands together
//!   network       arguments for the network between hosts
//! ```
//!
//! Output, failures and arguments shared with `apus` are in `apus-command-line`. A module imports
//! only from modules listed before it in `tests/layers.rs`.

mod bench;
mod command_line;
mod demo;
mod fabric;
mod fs;
mod lab;
mod network;
mod sim;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use apus_command_line::definitions::example;
use apus_command_line::exit;
use apus_command_line::failure::Failure;
use apus_measure::process::{AGENT, agent_main, run_job};
use apus_testbed::delay;
use apus_testbed::fabric::persistent;

use crate::command_line::{Command, definitions};

fn main() -> ExitCode {
    // Experiments start this program again for each of their sides.
    if env::args_os().nth(1).is_some_and(|first| first == AGENT) {
        return agent_main(|task, control| {
            let jobs = [apus_bench::agent::JOBS, apus_labs::agent::JOBS, delay::JOBS].concat();
            run_job(&jobs, task, control)
        });
    }
    // `apus-lab fabric up` starts this program again as the owner process of the fabric.
    if env::args_os().nth(1).is_some_and(|first| first == persistent::OWNER) {
        return persistent::owner_main();
    }
    let words: Vec<OsString> = env::args_os().collect();
    match command_line::parse(words.clone()).and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => exit::report(failure, example(&definitions(), &words)),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Fabric(arguments) => fabric::run(&arguments),
        Command::Fs(arguments) => fs::run(&arguments),
        Command::Completions(arguments) => arguments.run(definitions()),
        Command::Man(arguments) => arguments.run(definitions()),
    }
}
