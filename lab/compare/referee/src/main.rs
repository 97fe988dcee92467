//! `compare`: runs the programs of all peers, interleaved, and shows their measurements.
//! `lab/compare/run` builds and starts it.
//!
//! ```text
//!   options   selection and duration of measurements
//!   works     the works, by their names
//!   programs  the peer programs, and their descriptions
//!   course    the measurement: all peers, interleaved, in each work
//!   memory    memory of a server for each of its clients
//!   tails     tails under load between hosts: the cluster benchmark of apus
//!   agent     the sides run by this program
//!   footprint crates, and the time of a clean build
//!   table     rows and ratios
//!   document  the Markdown table
//! ```

mod agent;
mod course;
mod document;
mod footprint;
mod memory;
mod options;
mod programs;
mod table;
mod tails;
mod works;

use std::env;
use std::process::ExitCode;

use apus_testbed::process::{AGENT, agent_main};
use clap::Parser;

use options::Options;

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some(AGENT) {
        return agent_main(agent::run);
    }
    let options = Options::parse();
    match options
        .check()
        .and_then(|()| course::run(&options))
        .and_then(|found| options.show(&found))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(if error.is_final() { 2 } else { 1 })
        }
    }
}
