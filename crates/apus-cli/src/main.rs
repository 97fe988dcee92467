//! What can be done with apus from a shell?
//!
//! ```text
//!   demo, bench           measure apus beside UDP, TCP and unix sockets (apus-lab does the work)
//!   lab                   old failures and their cures (apus-lab does the work)
//!   sim                   the protocol in a simulated fabric (apus-sim does the work)
//!   fabric                a network of several hosts to try programs in (apus-lab does the work)
//!   decode                captures in words (apus-decode does the work)
//!   trace                 where the microseconds of RPCs go (apus-trace finds out, apus-lab shows)
//!   serve, call           talk by hand (apus does the work)
//!   doctor, tune          what stands in the way on a host, and which settings suit it (apus-lab does the work)
//!   metrics, top          look at live processes (apus does the work)
//!   completions, man      for shells and readers, from the definitions of the commands
//!     │
//!   command_line          the commands together, wrong arguments, examples
//!   repetition, address, path, configuration, tracing   what several commands ask for
//!   output, destination, files   where results go
//!   signals               how what runs for ever is ended
//!   failure               why there is none, and the exit status
//! ```
//!
//! The contract: people read tables, machines read `--json`, one object on standard output; everything
//! else goes to standard error. Exit status 0: done; 1: it failed; 2: wrong arguments.

mod address;
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
mod fabric;
mod failure;
mod files;
mod lab;
mod man;
mod metrics;
mod output;
mod path;
mod repetition;
mod serve;
mod signals;
mod sim;
mod top;
mod trace;
mod tracing;
mod tune;

use std::env;
use std::process::ExitCode;

use apus_lab::fabric::standing;

use crate::command_line::Command;
use crate::failure::Failure;

fn main() -> ExitCode {
    // Experiments start this program again for each of their sides.
    if env::args_os().nth(1).is_some_and(|first| first == apus_lab::process::AGENT) {
        return apus_lab::agent::main();
    }
    // So does `apus fabric up`, for what keeps the fabric.
    if env::args_os().nth(1).is_some_and(|first| first == standing::KEEPER) {
        return standing::keeper_main();
    }
    match command_line::parse().and_then(run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(command_line::example()),
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Demo(arguments) => demo::run(arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Call(arguments) => call::run(&arguments),
        Command::Bench(arguments) => bench::run(arguments),
        Command::Lab(arguments) => lab::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Fabric(arguments) => fabric::run(&arguments),
        Command::Decode(arguments) => decode::run(&arguments),
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Tune(arguments) => tune::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Metrics(arguments) => metrics::run(&arguments),
        Command::Top(arguments) => top::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
    }
}
