//! Runs the experiments without the `apus` command: `cargo run --release --example lab -- rtt`.
//!
//! Shows what a program needs to do to run experiments: be an agent when it is asked to, choose
//! options, run, print.

use std::env;
use std::process::ExitCode;

use apus_lab::bench::EXPERIMENTS;
use apus_lab::process::{AGENT, Host};
use apus_lab::{Error, agent};

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let first = arguments.next().unwrap_or_default();
    if first == AGENT {
        return agent::main();
    }
    match run(&first, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// `arguments` are `NAME=VALUE`, or `json`.
fn run(experiment: &str, arguments: impl Iterator<Item = String>) -> Result<(), Error> {
    let unknown = |option, problem: String| Error::Option { option, problem };
    let found = EXPERIMENTS.iter().find(|each| each.name == experiment).ok_or_else(|| {
        let names = EXPERIMENTS.map(|each| each.name).join(", ");
        unknown("experiment", format!("`{experiment}` is none of {names}"))
    })?;
    let mut options = (found.defaults)();
    let mut json = false;
    for argument in arguments {
        let (name, value) = argument.split_once('=').unwrap_or((&argument, ""));
        let wrong = || unknown("argument", format!("`{argument}`: write for instance `size=100`"));
        match name {
            "json" => json = true,
            "size" => options.size = value.parse().map_err(|_| wrong())?,
            "outstanding" => options.outstanding = value.parse().map_err(|_| wrong())?,
            "seconds" => options.seconds = value.parse().map_err(|_| wrong())?,
            "runs" => options.runs = value.parse().map_err(|_| wrong())?,
            "poll" => options.poll = value.parse().map_err(|_| wrong())?,
            "only" => options.only = value.split(',').map(str::to_owned).collect(),
            _ => return Err(wrong()),
        }
    }
    let outcome = found.run(&options, &Host::this_program()?)?;
    if json {
        println!("{}", outcome.json());
    } else {
        print!("{outcome}");
    }
    Ok(())
}
