//! Checks the contract of `apus-lab demo --json`.
//!
//! `apus-lab demo --json | cargo run --example check_demo` confirms the contract, or prints the
//! violation and exits with status 1.

#[path = "../tests/cli/contract.rs"]
mod contract;

use std::io::{Read, stdin};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut text = String::new();
    if let Err(error) = stdin().read_to_string(&mut text) {
        eprintln!("read the demo's output: {error}");
        return ExitCode::FAILURE;
    }
    match contract::check("demo", &text) {
        Ok(json) => {
            let rows = json["rows"].as_array().map_or(0, Vec::len);
            println!("path {}: one object with {rows} rows, as promised", json["path"]);
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("the demo's output breaks its contract: {problem}");
            ExitCode::FAILURE
        }
    }
}
