//! The contention lab: one lock for all local sockets, compared with none.
//!
//! For years FreeBSD took one lock for every message over any local socket: 96 processes, each with
//! its own pair, transferred 1.69 million messages per second, fewer than six did. With a lock per
//! socket it was 70.7 million (docs/reference/papers.md, *Local sockets and benchmarks*). This lab
//! repeats the comparison with the load that exposed it, will-it-scale's `unix1_processes`: each
//! worker repeatedly writes one byte into its own pair and reads it. Workers share only locks.
//!
//! - `global-lock`: a registry of all pairs with one lock, as in FreeBSD. Each send and each
//!   receive looks its pair up under the lock and works under it (`global_registry`).
//! - `fine-grained`: pairs of apus; their messages never touch the registry.
//! - `unix`: a socket pair of the kernel.
//!
//! | file | content |
//! |---|---|
//! | `options`, `contender` | the options; the contenders |
//! | `exchange`, `fine_grained`, `global_lock`, `unix`, `waits` | the operation, each contender's implementation, lock waits |
//! | `worker`, `crew` | workers, and the processes and threads that run them |
//! | `curve`, `published` | measurements by number of workers; FreeBSD's figures |
//! | `queueing`, `forecast` | a model of more workers than cores, fitted to the measurements |
//! | `declaration`, `sentences`, `plots` | the report |
//! | `sweep` | all numbers of workers, all contenders, all runs |
//!
//! # Invariants
//!
//! - **CONTENTION-1** `global-lock` runs the code of `fine-grained` with one lock around it.
//!   Nothing else makes it slower: the lock spins and sleeps as std's does, and a lookup reads one
//!   word.
//! - **CONTENTION-2** Workers share no written memory except what their contender makes them share.
//! - **CONTENTION-3** Measurements and models never appear in one column, one list or one line.

mod contender;
mod crew;
mod curve;
mod declaration;
mod exchange;
mod fine_grained;
mod forecast;
mod futex_lock;
mod global_lock;
mod global_registry;
mod options;
mod plots;
mod published;
mod queueing;
mod sentences;
mod sweep;
mod unix;
mod waits;
mod worker;

pub use options::{ContentionOptions, Tasks};
pub use sweep::run;

pub(crate) use crew::{JOB, agent};
