//! Ways to start agents on this machine, and the entry point of an agent process.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::process::{ExitCode, exit};

use super::agent::Agent;
use super::control::{Runner, run_agent};
use super::crew::Crew;
use super::handle::{RunningAgent, no_remedy};
use super::protocol::Task;
use crate::error::{Doing, Error};

/// Method of starting agents on this machine.
#[derive(Clone, Debug)]
pub enum Spawner {
    /// As child processes of this program, which must call [`agent_main`] if its first argument is
    /// [`AGENT`](super::AGENT).
    Processes(PathBuf),
    /// As child processes behind another command, for example `nsenter --target 123 --net`. The
    /// command is run with the program and [`AGENT`](super::AGENT) as its last two arguments. It
    /// must pass standard input, output and error through, including the end of the input.
    Command {
        /// The command and its first arguments; if empty, the program is the command.
        prefix: Vec<OsString>,
        /// Path of the program, as resolved by the command.
        program: OsString,
    },
    /// As threads of this process. For tests only: threads share state that must be separate in a
    /// measurement, for example the processor time charged to each side.
    Threads(Runner),
}

impl Spawner {
    /// Returns a spawner of processes of the running program.
    ///
    /// # Errors
    ///
    /// The system does not report the file of the running program.
    pub fn this_program() -> Result<Self, Error> {
        let program = env::current_exe().doing(|| "find this program's file".to_owned())?;
        Ok(Self::Processes(program))
    }

    /// Starts an agent that does `task`.
    ///
    /// # Errors
    ///
    /// The agent cannot be started.
    pub fn start(&self, task: Task) -> Result<Agent, Error> {
        let agent = self.embody(&task.name);
        Crew::begin_all([(agent, task)]).map(Agent::new)
    }

    /// Starts the agent of this name, without its task.
    fn embody(&self, name: &str) -> Result<RunningAgent, Error> {
        let agent = match self {
            Self::Processes(program) => RunningAgent::process(&[], program.as_ref(), no_remedy()),
            Self::Command { prefix, program } => {
                RunningAgent::process(prefix, program, no_remedy())
            }
            Self::Threads(runner) => RunningAgent::thread(*runner),
        };
        agent.doing(|| format!("start {name}"))
    }
}

impl Crew {
    /// Starts agents that work together, each by its own spawner.
    ///
    /// # Errors
    ///
    /// An agent cannot be started; those that started are ended.
    pub fn start(tasks: impl IntoIterator<Item = (Spawner, Task)>) -> Result<Self, Error> {
        Self::begin_all(tasks.into_iter().map(|(host, task)| (host.embody(&task.name), task)))
    }
}

/// Runs an agent process. A program must call only this if its first argument is
/// [`AGENT`](super::AGENT).
#[must_use]
pub fn agent_main(runner: Runner) -> ExitCode {
    let input = Box::new(BufReader::new(io::stdin()));
    match run_agent(input, Box::new(io::stdout()), runner, || exit(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
