//! The ground that experiments stand on: processes, cores, clocks, and networks of several hosts on one machine.
//!
//! ```text
//!   process            each side of an experiment in a process of its own
//!   fabric             network namespaces, a switch with priorities, shaped links
//!   launch, launcher   agents on other hosts: by ssh, or as ranks of Slurm, MPI, Kubernetes
//!   machine, clock     cores, neighbours, time
//!   packet_socket      packets of one interface
//! ```
//!
//! Only [`fabric`] needs privileges (root or user namespaces), and only [`launch`] talks to other hosts.

#![forbid(unsafe_code)]

pub mod clock;
pub mod error;
pub mod fabric;
pub mod launch;
pub mod launcher;
#[cfg(any(test, feature = "testing"))]
pub mod layers;
pub mod machine;
pub mod packet_socket;
pub mod process;

pub use error::Error;
