//! Test beds for experiments: networks of several hosts on one machine, and agents on other hosts.
//!
//! ```text
//!   fabric             network namespaces, a switch with priorities, shaped links
//!   delay              two hosts with a fixed delay between them
//!   launch, launcher   agents on other hosts: by ssh, or as ranks of Slurm, MPI, Kubernetes
//!   packet_socket      all packets of one interface
//! ```
//!
//! Agents, cores and clocks of this machine are in `apus-measure`; its modules are re-exported
//! here.
//!
//! Only [`fabric`] and [`delay`] need privileges (root or user namespaces), and only [`launch`]
//! connects to other hosts.

#![forbid(unsafe_code)]

pub mod delay;
pub mod fabric;
pub mod launch;
pub mod launcher;
pub mod packet_socket;

pub use apus_measure::{Error, clock, error, machine, process, repeat};
