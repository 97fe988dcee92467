//! Runs the experiments without the `apus` command: `cargo run --release --example lab -- rtt`.
//!
//! Shows what a program needs to do to run experiments: be an agent when it is asked to, choose
//! options, run, print.

use std::env;
use std::fmt::Display;
use std::process::ExitCode;
use std::str::FromStr;

use apus_lab::bench::EXPERIMENTS;
use apus_lab::process::{AGENT, Host};
use apus_lab::{Error, agent, demo};

fn main() -> ExitCode {
    let mut arguments = env::args().skip(1);
    let first = arguments.next().unwrap_or_default();
    if first == AGENT {
        return agent::main();
    }
    let done = if first == "demo" { demo(arguments) } else { bench(&first, arguments) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// `arguments` are `NAME=VALUE`, or `json`.
fn bench(experiment: &str, arguments: impl Iterator<Item = String>) -> Result<(), Error> {
    let found = EXPERIMENTS.iter().find(|each| each.name == experiment).ok_or_else(|| {
        let names = EXPERIMENTS.map(|each| each.name).join(", ");
        wrong("experiment", &format!("`{experiment}` is none of {names}"))
    })?;
    let mut options = (found.defaults)();
    let mut json = false;
    for argument in arguments {
        let (name, value) = argument.split_once('=').unwrap_or((&argument, ""));
        match name {
            "json" => json = true,
            "size" => options.size = parse("size", value)?,
            "outstanding" => options.outstanding = parse("outstanding", value)?,
            "seconds" => options.seconds = parse("seconds", value)?,
            "runs" => options.runs = parse("runs", value)?,
            "poll" => options.poll = parse("poll", value)?,
            "only" => options.only = value.split(',').map(str::to_owned).collect(),
            _ => return Err(wrong("argument", &format!("`{argument}`; try `size=100`"))),
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

/// Writes the page to `page=FILE`, if that is asked for.
fn demo(arguments: impl Iterator<Item = String>) -> Result<(), Error> {
    let mut options = demo::Options::default();
    let mut json = false;
    let mut page = None;
    for argument in arguments {
        let (name, value) = argument.split_once('=').unwrap_or((&argument, ""));
        match name {
            "json" => json = true,
            "page" => page = Some(value.to_owned()),
            "workload" => value.clone_into(&mut options.workload),
            "load" => options.load = parse("load", value)?,
            "rate" => options.rate = Some(parse("rate", value)?),
            "seconds" => options.seconds = parse("seconds", value)?,
            "runs" => options.runs = parse("runs", value)?,
            "poll" => options.poll = parse("poll", value)?,
            _ => return Err(wrong("argument", &format!("`{argument}`; try `load=0.8`"))),
        }
    }
    let findings = demo::run(&options, &Host::this_program()?)?;
    if let Some(file) = page {
        std::fs::write(&file, findings.html())
            .map_err(|source| Error::System { doing: format!("write {file}"), source })?;
    }
    if json {
        println!("{}", findings.outcome.json());
    } else {
        print!("{findings}");
    }
    Ok(())
}

fn parse<T: FromStr<Err: Display>>(option: &'static str, value: &str) -> Result<T, Error> {
    value.parse().map_err(|error: T::Err| wrong(option, &error.to_string()))
}

fn wrong(option: &'static str, problem: &str) -> Error {
    Error::Option { option, problem: problem.to_owned() }
}
