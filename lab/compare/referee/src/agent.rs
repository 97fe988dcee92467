//! Sides of measurements run by this program: transports of apus's cluster benchmark.

use std::env;
use std::path::PathBuf;

use apus_bench::agent;
use apus_bench::contenders::transport::{self, Transport};
use apus_testbed::error::{Doing, Error};
use apus_testbed::process::{Control, Task};
use compare_kit::{MEMORY_JOB, memory_agent};
use serde_json::Value;

use crate::programs::Program;

/// Returns the cluster benchmark's transport of this name: apus and plain TCP. Many TCP connections
/// need more than a program of 150 lines.
pub(crate) fn own(name: &str) -> Option<Box<dyn Transport>> {
    transport::parse(name).ok()
}

/// Returns the program that runs a peer with several connections.
pub(crate) fn program_of(program: &Program) -> Result<PathBuf, Error> {
    match own(&program.about.name) {
        Some(_) => env::current_exe().doing(|| "find this program's file".to_owned()),
        None => Ok(program.path.clone()),
    }
}

/// Does the work of a task.
pub(crate) fn run(task: &Task, control: &mut Control) -> Result<Value, Error> {
    if task.job != MEMORY_JOB {
        return agent::run(task, control);
    }
    let name = task.details["transport"].as_str().unwrap_or_default();
    memory_agent(&*transport::parse(name)?, task, control)
}
