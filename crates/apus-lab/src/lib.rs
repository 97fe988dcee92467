//! What does apus achieve, compared with what else there is?
//!
//! Everything that is claimed about apus is measured beside something else, on the same machine, in
//! the same run. Several kinds of experiment do that:
//!
//! - [`bench`](mod@bench): one figure (round trip time, throughput, rate, handoffs) of contenders that
//!   take turns;
//! - [`local`]: messages between processes of one host, of any size, between any number of them;
//! - [`demo`]: the whole picture, messages of a published workload at a load that hurts;
//! - [`cluster`](mod@cluster): the same between hosts on links that are busy, for any value of any setting;
//! - [`livelock`](mod@livelock): what comes out of a router while more and more goes in;
//! - [`contention`](mod@contention): what one lock for all pairs of a host costs;
//! - [`small_writes`]: what a short message costs that is written in two pieces.
//!
//! Beside them [`doctor`] says what on a host stands in the way, and [`tune`] which settings suit it.
//!
//! ```text
//!   bench, local, demo, cluster, livelock, contention, small_writes   which experiments there are, and in which order they find things out
//!     ├── apus                 what is measured, used as an application would
//!     ├── baseline             what it is compared with: UDP, TCP and unix sockets, as fast as they go
//!     ├── transport, load      requests and replies of any size, and what makes them
//!     ├── contender, meter     what a contender is, and what of its work counts
//!     ├── process, agent       each side in a process of its own, on a core of its own
//!     ├── fabric, packet_socket  a network of several hosts on this machine
//!     ├── launch, launcher     agents on other hosts: by ssh, or as ranks of Slurm, MPI, Kubernetes
//!     ├── machine, clock       where and when
//!     ├── slowdown             how much longer messages took than they had to
//!     ├── stats, result, lines what the figures say, for people and for machines, and where they are kept
//!     ├── traces               how the reports on time traces look
//!     └── chart, page          how they look in a browser
//! ```
//!
//! A program that runs experiments starts itself again for each side, so it has to call
//! [`agent::main`] when its first argument is [`process::AGENT`]:
//!
//! ```no_run
//! use std::process::ExitCode;
//!
//! use apus_lab::{Error, agent, bench, process};
//!
//! fn main() -> Result<ExitCode, Error> {
//!     if std::env::args().nth(1).as_deref() == Some(process::AGENT) {
//!         return Ok(agent::main());
//!     }
//!     let options = (bench::RTT.defaults)();
//!     let outcome = bench::RTT.run(&options, &process::Host::this_program()?)?;
//!     print!("{outcome}");
//!     Ok(ExitCode::SUCCESS)
//! }
//! ```
//!
//! # What is absent
//!
//! No experiment judges its result: there is no threshold here, and no test asserts a time. Nothing
//! here needs privileges but for [`livelock`](mod@livelock), whose interrupts are threads at real-time priority, and
//! [`fabric`], on which [`cluster`](mod@cluster) runs unless it is told where else, and
//! which needs root or user namespaces; nothing talks to another host but for [`launch`], which is told to.

pub mod agent;
pub mod apus;
pub mod baseline;
pub mod bench;
pub mod chart;
pub mod clock;
pub mod cluster;
pub mod contender;
pub mod contention;
pub mod demo;
pub mod doctor;
mod error;
pub mod fabric;
pub mod findings;
pub mod handoff;
pub mod launch;
pub mod launcher;
pub mod lines;
pub mod livelock;
mod load;
pub mod local;
pub mod machine;
pub mod meter;
pub mod overload;
mod packet_socket;
pub mod page;
mod ping_pong;
pub mod process;
pub mod progress;
pub mod result;
pub mod simulation;
pub mod slowdown;
pub mod small_writes;
pub mod stats;
pub mod traces;
pub mod transport;
pub mod tune;

pub use ::apus::{Poll, PollError};
pub use error::Error;
