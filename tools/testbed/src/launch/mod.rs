//! Where do the agents of a cluster run, and who starts them?
//!
//! Thin adapters: each brings agents of [`crate::process`] onto hosts that somebody else provides, and
//! tells each the address at which the others reach it. None of them schedules anything.
//!
//! ```text
//!   Launch::Local     a command per host of this machine, such as one that enters a namespace
//!   Launch::Ssh       hosts of a file (hosts), reached and checked by ssh
//!   Launch::Ranks     processes that a launcher started: Slurm, MPI, Kubernetes
//!     ranks             which one this is
//!     meeting           where the first one is, what they all know
//!     coordinator       the first one: awaits the others, has an agent of its own
//!     node              any other one: comes to the first, and starts an agent whenever told
//!     greeting          what they say to each other before the first task
//!   Launch::Threads   tests
//! ```
//!
//! # Invariants
//!
//! - **L1** Each start gives agents that are new processes: nothing is left over from an earlier run.
//! - **L2** Whoever comes without the token gets nothing done: it is heard for a few seconds and bytes.
//! - **L3** A host that cannot take part is named, with the remedy, before anything is measured.

mod coordinator;
mod greeting;
mod host_port;
mod hosts;
mod meeting;
mod node;
mod ranks;
mod ssh;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

pub use coordinator::Coordinator;
pub use hosts::{HostsError, SshHost, hosts};
pub use node::Node;
pub use ranks::{Ranks, RanksError, Role};
pub use ssh::Ssh;

use crate::error::{Doing, Error};
use crate::process::{Crew, Embodied, Runner, Task, no_remedy};

/// Who starts the agents.
#[derive(Debug)]
pub enum Launch {
    /// This process, each with a command of its own.
    Local {
        /// Where they run.
        nodes: Vec<LocalNode>,
        /// The program that is an agent when its first argument is [`crate::process::AGENT`].
        program: PathBuf,
    },
    /// `ssh`, on other hosts.
    Ssh(Ssh),
    /// Processes that a launcher started; this is the first of them.
    Ranks(Coordinator),
    /// Threads of this process, all at 127.0.0.1. For tests.
    Threads {
        /// What they do.
        runner: Runner,
        /// How many.
        nodes: usize,
    },
}

/// A place for an agent on this machine.
#[derive(Clone, Debug)]
pub struct LocalNode {
    /// Its name in messages, like `h1`.
    pub name: String,
    /// What comes before the program in the command, like `nsenter --target 123 --net`; may be empty.
    pub prefix: Vec<OsString>,
    /// The address at which the others reach it.
    pub bind: IpAddr,
}

impl Launch {
    /// The most agents that [`Launch::start`] can start.
    #[must_use]
    pub fn nodes(&self) -> usize {
        match self {
            Self::Local { nodes, .. } => nodes.len(),
            Self::Ssh(ssh) => ssh.nodes(),
            Self::Ranks(coordinator) => coordinator.nodes(),
            Self::Threads { nodes, .. } => *nodes,
        }
    }

    /// Starts an agent for each task, each on a node of its own, in the order of the nodes. Tasks that do
    /// not say where to listen are told; their names are completed by that of their host.
    ///
    /// Can be called any number of times, once the agents of the time before are gone.
    ///
    /// # Errors
    ///
    /// One of them does not start; the others are ended.
    ///
    /// # Panics
    ///
    /// There are more tasks than nodes.
    pub fn start(&self, tasks: Vec<Task>) -> Result<Crew, Error> {
        self.start_on(tasks.len(), tasks)
    }

    /// The same on the first `nodes` nodes alone: if there are more tasks, it is the first node's turn again.
    /// Each task has an agent of its own all the same.
    ///
    /// # Errors
    ///
    /// As for [`Launch::start`].
    ///
    /// # Panics
    ///
    /// There are not so many nodes.
    pub fn start_on(&self, nodes: usize, tasks: Vec<Task>) -> Result<Crew, Error> {
        assert!(nodes <= self.nodes(), "{nodes} nodes wanted of {}", self.nodes());
        match self {
            Self::Local { nodes: all, program } => {
                Crew::begin_all(all[..nodes].iter().cycle().zip(tasks).map(|(node, task)| {
                    let task = placed(task, &node.name, node.bind);
                    let body = Embodied::process(&node.prefix, program.as_ref(), no_remedy());
                    (body.doing(|| format!("start {}", task.name)), task)
                }))
            }
            Self::Ssh(ssh) => ssh.start(nodes, tasks),
            Self::Ranks(coordinator) => coordinator.start(nodes, tasks),
            Self::Threads { runner, .. } => Crew::begin_all(tasks.into_iter().map(|task| {
                let bind = task.bind.or(Some(Ipv4Addr::LOCALHOST.into()));
                let body = Embodied::thread(*runner);
                (body.doing(|| format!("start {}", task.name)), Task { bind, ..task })
            })),
        }
    }
}

/// A task that knows where it is done.
fn placed(task: Task, host: &str, bind: IpAddr) -> Task {
    let name = format!("{} on {host}", task.name);
    Task { name, bind: task.bind.or(Some(bind)), ..task }
}
