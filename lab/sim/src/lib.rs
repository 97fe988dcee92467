//! Discrete-event simulator of fabrics with thousands of hosts.
//!
//! Each simulated host runs [`apus_proto::Transport`] as it ships; links, switches and time use
//! integers. An [`Experiment`] has all parameters of a run, and running it is a pure function: the
//! same experiment gives the same [`ExperimentReport`] on any machine.
//!
//! ```text
//!   experiment           messages of a workload at a load, and their completion times
//!     ├── fabric         events, links, switches with eight levels of priority; regions in threads
//!     │     └── processor ── host: apus · dctcp · sird
//!     ├── oracle         one scheduler with global knowledge; needs no fabric
//!     └── published      published measurements
//!   kernel               a model of the Linux module, for fabrics with hosts that run apus
//!   preset               the paper's set-up as an experiment
//!   topology, message, packet, text   vocabulary of all of them
//! ```
//!
//! ```
//! use apus_sim::preset;
//! use apus_workload::Workload;
//!
//! let mut experiment = preset::sigcomm18_experiment(Workload::published(4), 0.8, 1)?;
//! experiment.fabric.topology.shape = "2x4x1".parse()?;
//! (experiment.messages, experiment.warm_up) = (500, 100);
//! let report = experiment.run(experiment.allowed_growth(), &mut |_| {});
//! assert_eq!(report.failed, 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Not modelled
//!
//! Processor time of applications: the [`processor`]s that an experiment may give its hosts spend
//! time on packets alone, and without them hosts have software delays but are never overloaded.
//! Failures of links and switches other than full buffers. Topologies other than leaf and spine.
//! Payload: messages have a length, and their bytes are zeros.

#![forbid(unsafe_code)]

pub mod dctcp;
pub mod experiment;
pub mod fabric;
pub mod fault;
pub mod host;
pub mod kernel;
pub mod message;
pub mod network;
pub mod oracle;
pub mod packet;
pub mod preset;
pub mod processor;
pub mod published;
pub mod sird;
mod text;
pub mod topology;

pub use experiment::{Experiment, ExperimentReport};
pub use fabric::Fabric;
pub use host::Host;
pub use message::{HostId, Message, Outcome};
pub use network::Network;
pub use oracle::Oracle;
pub use packet::Packet;
pub use topology::{Delays, Shape, Topology, TopologyError};
