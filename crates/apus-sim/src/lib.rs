//! How does the protocol behave in a fabric of thousands of hosts?

#![forbid(unsafe_code)]

pub mod check;
pub mod dctcp;
pub mod experiment;
pub mod fabric;
pub mod fault;
pub mod host;
pub mod message;
pub mod network;
pub mod oracle;
pub mod packet;
pub mod preset;
pub mod published;
pub mod report;
pub mod sweep;
pub mod time;
pub mod topology;

pub use experiment::{Experiment, Report};
pub use fabric::Fabric;
pub use host::Host;
pub use message::{HostId, Message, Outcome};
pub use network::Network;
pub use oracle::Oracle;
pub use packet::Packet;
pub use time::{Nanos, Rate};
pub use topology::{Delays, Shape, Topology, TopologyError};
