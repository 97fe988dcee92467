//! `compare`: starts the programs of all peers in turns, and shows what they have measured. `compare/run` builds and starts it.
//!
//! ```text
//!   options   what is measured, and how long
//!   works     the works, by their names
//!   programs  the programs beside this one, and what they say about themselves
//!   course    the measurement: all peers in turns, in each work
//!   table     rows and ratios
//!   document  the Markdown table
//! ```

mod course;
mod document;
mod options;
mod programs;
mod table;
mod works;

use std::process::ExitCode;

use clap::Parser;

use options::Options;

fn main() -> ExitCode {
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
