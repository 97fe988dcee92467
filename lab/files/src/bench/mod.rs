//! Benchmark of the file service compared with others: file operations of programs, in seconds and
//! in calls.
//!
//! Each work is done by each peer in turn, and everything is repeated. The directories of all
//! servers are in memory, so no disk takes part. Over a network, a delay program between two
//! network namespaces makes the round-trip time.
//!
//! | file | content |
//! |---|---|
//! | `options` | the options |
//! | `interrupt`, `workspace`, `service`, `family`, `program` | processes and files that are created, and their removal |
//! | `peers` | file systems that are measured |
//! | `tree`, `material` | archives that all peers unpack |
//! | `stage`, `works` | a measurement; the measured works |
//! | `network` | the path between client and server |
//! | `sweep` | all runs |
//! | `findings` | rows, ratios, tables |
//!
//! # Invariants
//!
//! - **FSBENCH-1** A time ends when every change is at the server, unless the work only reads or
//!   calls fsync itself.
//! - **FSBENCH-2** Reads return the content that was written.
//! - **FSBENCH-3** Whatever happens, all processes, mounts, namespaces and directories are gone at
//!   the end.

mod family;
mod findings;
mod interrupt;
mod material;
mod measured;
mod network;
mod options;
mod peers;
mod program;
mod service;
mod stage;
mod sweep;
mod tree;
mod works;
mod workspace;

pub use apus_report::findings::Findings;
pub use options::{BenchOptions, GivenPeer};
