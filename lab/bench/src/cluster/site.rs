//! The site of a run: a fabric of this machine, or hosts that a launcher provides.

use std::path::PathBuf;

use super::options::ClusterOptions;
use apus_testbed::error::{Error, require};
use apus_testbed::fabric::{Fabric, PortCounters, Spec};
use apus_testbed::launch::{Launch, LocalNode};
use apus_testbed::process::{Crew, Task};

/// The place of the nodes.
#[derive(Debug)]
pub enum Venue {
    /// On this machine, each in a namespace. The network between them is recreated for each run.
    Fabric {
        /// The program that runs as an agent when its first argument is
        /// [`apus_testbed::process::AGENT`].
        program: PathBuf,
    },
    /// On hosts that a launcher provides, with their own network.
    Elsewhere {
        /// The launcher of the agents.
        launch: Launch,
        /// The launcher as command-line arguments, such as `--launch`, `ssh`, `--hosts`,
        /// `rack.txt`.
        words: Vec<String>,
    },
}

impl Venue {
    /// Returns the fabric, with the running program.
    ///
    /// # Errors
    ///
    /// The system does not report the path of the running program.
    pub fn fabric() -> Result<Self, Error> {
        let program = std::env::current_exe().map_err(|source| Error::System {
            doing: "find this program's file".to_owned(),
            source,
        })?;
        Ok(Self::Fabric { program })
    }

    /// Checks that the options can be measured there.
    pub(super) fn check(&self, options: &ClusterOptions) -> Result<(), Error> {
        let Self::Elsewhere { launch, .. } = self else { return Ok(()) };
        options.check_elsewhere()?;
        let problem = format!(
            "there are {} hosts, and {} are requested",
            launch.nodes(),
            options.fabric.nodes
        );
        require(options.fabric.nodes <= launch.nodes(), "nodes", &problem)
    }

    /// Returns whether all nodes share the cores of this machine.
    pub(super) const fn is_here(&self) -> bool {
        matches!(self, Self::Fabric { .. })
    }

    /// Returns the venue as command line options.
    pub(super) fn words(&self) -> Vec<&str> {
        match self {
            Self::Fabric { .. } => vec!["--launch", "local"],
            Self::Elsewhere { words, .. } => words.iter().map(String::as_str).collect(),
        }
    }

    /// Returns the launcher of the hosts: `local`, `ssh` or `env`.
    pub(super) fn provider(&self) -> &str {
        self.words().get(1).copied().unwrap_or_default()
    }
}

/// The places for the nodes of one run.
pub(super) struct Site<'a> {
    nodes: usize,
    ground: Ground<'a>,
}

enum Ground<'a> {
    /// Made for this run.
    Made { fabric: Box<Fabric>, launch: Launch },
    /// There all the time.
    Lent(&'a Launch),
}

impl<'a> Site<'a> {
    /// Creates a fabric with this link rate, unless the nodes are elsewhere. The nodes run the
    /// program of the transport.
    pub(super) fn open(
        venue: &'a Venue,
        options: &ClusterOptions,
        mbps: u64,
        transport: &str,
    ) -> Result<Self, Error> {
        let nodes = options.fabric.nodes;
        let ground = match venue {
            Venue::Elsewhere { launch, .. } => Ground::Lent(launch),
            Venue::Fabric { program } => {
                let spec = Spec { link: super::options::rate(mbps), ..options.fabric.clone() };
                let fabric = Box::new(Fabric::up(&spec)?);
                let node = |node| LocalNode {
                    name: format!("h{}", node + 1),
                    prefix: fabric.enter(node),
                    bind: fabric.address(node).into(),
                };
                let nodes = (0..nodes).map(node).collect();
                let external = options.external(transport).map(|external| &external.program);
                let program = external.unwrap_or(program).clone();
                let launch = Launch::Local { nodes, program };
                Ground::Made { fabric, launch }
            }
        };
        Ok(Self { nodes, ground })
    }

    /// Returns the number of nodes.
    pub(super) const fn nodes(&self) -> usize {
        self.nodes
    }

    /// Starts an agent for each task, round robin over the nodes, starting at the first node.
    pub(super) fn start(&self, tasks: Vec<Task>) -> Result<Crew, Error> {
        let launch = match &self.ground {
            Ground::Made { launch, .. } => launch,
            Ground::Lent(launch) => launch,
        };
        launch.start_on(self.nodes, tasks)
    }

    /// Returns the counters of the switch, if it is part of a fabric.
    pub(super) fn counters(&self) -> Result<Option<Vec<PortCounters>>, Error> {
        match &self.ground {
            Ground::Made { fabric, .. } => fabric.counters().map(Some),
            Ground::Lent(_) => Ok(None),
        }
    }
}
