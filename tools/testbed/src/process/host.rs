//! Where do agents run?

use std::env;
use std::ffi::OsString;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::process::{ExitCode, exit};

use serde_json::Value;

use super::agent::Agent;
use super::body::{Embodied, Remedy};
use super::control::{Control, live};
use super::crew::Crew;
use super::lines::Task;
use crate::error::{Doing, Error};

/// The hidden argument that makes a program an agent.
pub const AGENT: &str = "__agent";

/// Does the work of a [`Task`] and gives its result.
pub type Runner = fn(&Task, &mut Control) -> Result<Value, Error>;

/// A kind of task, and what does its work.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// The [`Task::job`] that names it.
    pub name: &'static str,
    /// Does the work.
    pub run: Runner,
}

/// Does the work of a task whose kind is one of `jobs`.
///
/// # Errors
///
/// What the work reports, or that no job has the name.
pub fn run_job(jobs: &[Job], task: &Task, control: &mut Control) -> Result<Value, Error> {
    match jobs.iter().find(|job| job.name == task.job) {
        Some(job) => (job.run)(task, control),
        None => Err(Error::Peer(format!("no job is named `{}`", task.job))),
    }
}

/// Where agents run.
#[derive(Clone, Debug)]
pub enum Host {
    /// Each in a process of its own: a program that calls [`agent_main`] when its first argument is
    /// [`AGENT`].
    Processes(PathBuf),
    /// Each in a process that another command starts: `nsenter --target 123 --net`, for instance. The
    /// command is run with the program and [`AGENT`] as its last two arguments. It must hand standard
    /// input, output and error through, and the end of the input, too.
    Command {
        /// The command and its first arguments; if empty, the program itself is the command.
        prefix: Vec<OsString>,
        /// The program, as the command understands it.
        program: OsString,
    },
    /// Each in a thread of this process. For tests: threads share what should be apart, the
    /// processor time that is charged to each side for instance.
    Threads(Runner),
}

impl Host {
    /// Processes of the program that is running.
    ///
    /// # Errors
    ///
    /// The system does not say which program that is.
    pub fn this_program() -> Result<Self, Error> {
        let program = env::current_exe().doing(|| "find this program's file".to_owned())?;
        Ok(Self::Processes(program))
    }

    /// Starts an agent that does `task`.
    ///
    /// # Errors
    ///
    /// The system does not let it start.
    pub fn start(&self, task: Task) -> Result<Agent, Error> {
        let embodied = self.embody(&task.name);
        Crew::begin_all([(embodied, task)]).map(Agent::new)
    }

    /// Starts a body for the agent of this name.
    fn embody(&self, name: &str) -> Result<Embodied, Error> {
        let embodied = match self {
            Self::Processes(program) => Embodied::process(&[], program.as_ref(), no_remedy()),
            Self::Command { prefix, program } => Embodied::process(prefix, program, no_remedy()),
            Self::Threads(runner) => Embodied::thread(*runner),
        };
        embodied.doing(|| format!("start {name}"))
    }
}

/// What a program of ours says speaks for itself.
pub(crate) fn no_remedy() -> Remedy {
    Box::new(|_, _| None)
}

impl Crew {
    /// Starts agents that work together, each on its host.
    ///
    /// # Errors
    ///
    /// The system does not let one of them start; the others are ended.
    pub fn start(tasks: impl IntoIterator<Item = (Host, Task)>) -> Result<Self, Error> {
        Self::begin_all(tasks.into_iter().map(|(host, task)| (host.embody(&task.name), task)))
    }
}

/// Is an agent: call this when the program's first argument is [`AGENT`], and do nothing else.
#[must_use]
pub fn agent_main(runner: Runner) -> ExitCode {
    let input = Box::new(BufReader::new(io::stdin()));
    match live(input, Box::new(io::stdout()), runner, || exit(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
