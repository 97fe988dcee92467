//! Test beds for experiments: processes, cores, clocks, and networks of several hosts on one machine.
//!
//! ```text
//!   process            agents: each side of an experiment in a process of its own
//!   fabric             network namespaces, a switch with priorities, shaped links
//!   delay              two hosts with a fixed delay between them
//!   launch, launcher   agents on other hosts: by ssh, or as ranks of Slurm, MPI, Kubernetes
//!   machine, clock     cores, background load, time
//!   repeat             phases that were disturbed are attempted again, and the rest is kept
//!   packet_socket      all packets of one interface
//! ```
//!
//! Only [`fabric`] and [`delay`] need privileges (root or user namespaces), and only [`launch`] reaches other hosts.

#![forbid(unsafe_code)]

pub mod clock;
pub mod delay;
pub mod error;
pub mod fabric;
pub mod launch;
pub mod launcher;
pub mod machine;
pub mod packet_socket;
pub mod process;
pub mod repeat;

pub use error::Error;
