//! Starts the agents of a cluster on hosts that ssh, a launcher or this machine provides.
//!
//! Each adapter starts agents of [`crate::process`] on its hosts and adds to each task the address
//! for connections from the others. Adapters do not schedule.
//!
//! ```text
//!   Launch::Local     a command per host of this machine, such as one that enters a namespace
//!   Launch::Ssh       hosts of a file (hosts), reached and checked by ssh
//!   Launch::Ranks     processes that a launcher started: Slurm, MPI, Kubernetes
//!     ranks             the rank of this process and the job's settings
//!     rendezvous        address of rank 0, secret of the job
//!     coordinator       rank 0: waits for the others (registry) and runs agents locally
//!     node              any other rank: connects to rank 0 and starts an agent for each task
//!     handshake         messages before the first task
//!   Launch::Threads   tests
//! ```
//!
//! # Invariants
//!
//! - **LAUNCH-1**: Each start creates new agents: no state survives from an earlier run.
//! - **LAUNCH-2**: A connection without the token has no effect: it is read for a limited time, up
//!   to a limited length.
//! - **LAUNCH-3**: A host that cannot take part is reported by name, with the remedy, before any
//!   measurement.

mod coordinator;
mod handshake;
mod host_port;
mod hosts;
mod node;
mod ranks;
mod ranks_error;
mod registry;
mod rendezvous;
mod role;
mod ssh;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

pub use coordinator::Coordinator;
pub use hosts::{HostsError, SshHost, hosts};
pub use node::Node;
pub use ranks::Ranks;
pub use ranks_error::RanksError;
pub use role::Role;
pub use ssh::Ssh;

use apus_measure::error::{Doing, Error};
use apus_measure::process::{Crew, Runner, RunningAgent, Task, no_remedy};

/// How agents are started.
#[derive(Debug)]
pub enum Launch {
    /// Child processes of this process, each behind a separate command.
    Local {
        /// Nodes that run agents.
        nodes: Vec<LocalNode>,
        /// Program that runs as an agent if its first argument is [`crate::process::AGENT`].
        program: PathBuf,
    },
    /// Commands on other hosts, by `ssh`.
    Ssh(Ssh),
    /// Processes that a launcher started; this one is rank 0.
    Ranks(Coordinator),
    /// Threads of this process, all at 127.0.0.1. For tests.
    Threads {
        /// The work of an agent.
        runner: Runner,
        /// Number of nodes.
        nodes: usize,
    },
}

/// A node on this machine.
#[derive(Clone, Debug)]
pub struct LocalNode {
    /// Name in messages, like `h1`.
    pub name: String,
    /// Words in front of the program, like `nsenter --target 123 --net`; may be empty.
    pub prefix: Vec<OsString>,
    /// Address for connections from the other nodes.
    pub bind: IpAddr,
}

impl Launch {
    /// Returns the number of nodes: the most agents that [`Launch::start`] can start.
    #[must_use]
    pub fn nodes(&self) -> usize {
        match self {
            Self::Local { nodes, .. } => nodes.len(),
            Self::Ssh(ssh) => ssh.nodes(),
            Self::Ranks(coordinator) => coordinator.nodes(),
            Self::Threads { nodes, .. } => *nodes,
        }
    }

    /// Starts an agent for each task, each on a separate node, in node order. Tasks without a
    /// listening address get their node's address. The name of the host is appended to the name of
    /// the task.
    ///
    /// May be called again once the agents of the previous call have ended.
    ///
    /// # Errors
    ///
    /// An agent does not start; the agents already started are ended.
    ///
    /// # Panics
    ///
    /// There are more tasks than nodes.
    pub fn start(&self, tasks: Vec<Task>) -> Result<Crew, Error> {
        self.start_on(tasks.len(), tasks)
    }

    /// Starts an agent for each task on the first `nodes` nodes. If there are more tasks than
    /// nodes, the assignment wraps around to the first node. Each task has a separate agent in any
    /// case.
    ///
    /// # Errors
    ///
    /// As for [`Launch::start`].
    ///
    /// # Panics
    ///
    /// `nodes` is greater than [`Launch::nodes`].
    pub fn start_on(&self, nodes: usize, tasks: Vec<Task>) -> Result<Crew, Error> {
        assert!(nodes <= self.nodes(), "{nodes} nodes wanted of {}", self.nodes());
        match self {
            Self::Local { nodes: all, program } => {
                Crew::begin_all(all[..nodes].iter().cycle().zip(tasks).map(|(node, task)| {
                    let task = task.on_host(&node.name, node.bind);
                    let body = RunningAgent::process(&node.prefix, program.as_ref(), no_remedy());
                    (body.doing(|| format!("start {}", task.name)), task)
                }))
            }
            Self::Ssh(ssh) => ssh.start(nodes, tasks),
            Self::Ranks(coordinator) => coordinator.start(nodes, tasks),
            Self::Threads { runner, .. } => Crew::begin_all(tasks.into_iter().map(|task| {
                let bind = task.bind.or(Some(Ipv4Addr::LOCALHOST.into()));
                let body = RunningAgent::thread(*runner);
                (body.doing(|| format!("start {}", task.name)), Task { bind, ..task })
            })),
        }
    }
}
