//! The `apus` command: every part of apus from a shell.
//!
//! ```text
//!   demo, bench           apus beside UDP, TCP and Unix sockets             (apus-bench)
//!   lab                   known failures of network software and their cures (apus-labs)
//!   sim                   the protocol in a simulated fabric                (apus-sim, apus-sweep, apus-swarm)
//!   fabric                a network of several hosts on this machine        (apus-testbed)
//!   fs                    a directory served, mounted, measured, checked    (apus-fs, apus-files)
//!   keys                  a small certificate authority                  (apus)
//!   decode                the packets of a capture as text                  (apus-decode)
//!   trace                 where the microseconds of RPCs go                 (apus-traces)
//!   serve, call           an echo service, and calls by hand                (apus)
//!   doctor, tune          what is wrong with a host, and which settings suit it (apus-doctor)
//!   metrics, top          the counters of running processes                 (apus)
//!   completions, man      generated from the definitions of the commands
//!
//!   command_line          all commands together: parsing, version, examples
//!   exit                  failures on standard error, and the exit status
//!   experiment            a command that runs an experiment and shows its findings
//!   address, driver, path, network, processes, configuration, sealing, tracing, files
//!                         arguments that several commands share
//!   activity              what a process counted between two snapshots
//!   senders               the peers whose messages are arriving at a process, as columns
//!   output, destination   standard output and files for results
//!   advice                a line that offers `apus doctor`
//!   signals               the end of commands that run until they are interrupted
//!   failure               why a command has no result
//! ```
//!
//! A module imports only from the groups below its own, and a command never imports from another one;
//! `tests/architecture.rs` checks that.
//!
//! People read tables, programs read `--json`: one object on standard output. Everything else goes to standard error.
//! The exit status is 0 if the command succeeded, 1 if it failed, and 2 if the arguments are wrong.

mod activity;
mod address;
mod advice;
mod bench;
mod call;
mod command_line;
mod completions;
mod configuration;
mod decode;
mod demo;
mod destination;
mod doctor;
mod driver;
mod exit;
mod experiment;
mod fabric;
mod failure;
mod files;
mod fs;
mod keys;
mod lab;
mod man;
mod metrics;
mod network;
mod output;
mod path;
mod processes;
mod sealing;
mod senders;
mod serve;
mod signals;
mod sim;
#[cfg(feature = "top")]
mod top;
mod trace;
mod tracing;
mod tune;

use std::env;
use std::process::ExitCode;

use apus_testbed::delay;
use apus_testbed::fabric::persistent;
use apus_testbed::process::{agent_main, run_job};

use crate::command_line::{Command, definitions};
use crate::failure::Failure;

fn main() -> ExitCode {
    // Experiments start this program again for each of their sides.
    if env::args_os().nth(1).is_some_and(|first| first == apus_testbed::process::AGENT) {
        return agent_main(|task, control| {
            let jobs = [apus_bench::agent::JOBS, apus_labs::agent::JOBS, delay::JOBS].concat();
            run_job(&jobs, task, control)
        });
    }
    // `apus fabric up` starts it again as the process that owns the fabric.
    if env::args_os().nth(1).is_some_and(|first| first == persistent::OWNER) {
        return persistent::owner_main();
    }
    match command_line::parse().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => exit::report(failure, command_line::example()),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Fabric(arguments) => fabric::run(&arguments),
        Command::Fs(arguments) => fs::run(&arguments),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Metrics(arguments) => metrics::run(&arguments),
        #[cfg(feature = "top")]
        Command::Top(arguments) => top::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments, definitions()),
        Command::Man(arguments) => man::run(&arguments, definitions()),
    }
}
