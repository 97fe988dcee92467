//! The contention lab: one lock for all local sockets, beside none.
//!
//! For years FreeBSD took one lock for every message over any local socket: 96 processes, each with a pair of its own,
//! got 1.69 million messages a second through, fewer than six did; with a lock for each socket 70.7 million
//! (docs/reference/papers.md, *Local sockets and benchmarks*). This lab repeats that beside the product, with the load
//! that showed it there, will-it-scale's `unix1_processes`: each worker has a pair of its own, writes one byte and
//! reads it itself, again and again. Workers share nothing but locks.
//!
//! - `global-lock`: a registry of all pairs with one lock, as FreeBSD had it. Each send and each receive takes the lock to
//!   look its pair up and works under it (`global_registry`).
//! - `fine-grained`: the product's pairs, whose messages never touch the registry.
//! - `unix`: a socket pair of the kernel.
//!
//! | file | content |
//! |---|---|
//! | `options` | the options |
//! | `exchange`, `fine_grained`, `global_lock`, `unix`, `waits` | the operation, each contender's way to do it, and waits at locks |
//! | `worker`, `crew` | workers, and the processes and threads in which they run |
//! | `sweep` | all numbers of workers, all contenders, all runs |
//! | `queueing`, `forecast` | a model of more workers than cores, and what it is fitted to |
//! | `curve`, `findings`, `words`, `plots`, `published` | rows, tables, sentences and charts, beside FreeBSD's figures |
//!
//! # Invariants
//!
//! - **CONTENTION-1** `global-lock` does what `fine-grained` does, by the same code, and takes its lock around that. Nothing else makes
//!   it slower: its lock spins and sleeps as std's does, and looking up is to read one word.
//! - **CONTENTION-2** Workers share nothing that is written, except for what a contender makes them share.
//! - **CONTENTION-3** Measurements and models are never in one column, one list or one line.

mod crew;
mod curve;
mod exchange;
mod findings;
mod fine_grained;
mod forecast;
mod futex_lock;
mod global_lock;
mod global_registry;
mod options;
mod plots;
mod published;
mod queueing;
mod sweep;
mod unix;
mod waits;
mod words;
mod worker;

pub use apus_report::findings::Findings;
pub use options::{Options, Tasks};
pub use sweep::run;

pub(crate) use crew::agent;

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of task that [`agent`] does.
pub(crate) const JOB: &str = "lab contention";

/// The pairs that carry messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Contender {
    /// All pairs share one lock.
    GlobalLock,
    /// The product's.
    FineGrained,
    /// The kernel's.
    Unix,
}

impl Contender {
    const ALL: [Self; 3] = [Self::GlobalLock, Self::FineGrained, Self::Unix];
}

impl fmt::Display for Contender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::GlobalLock => "global-lock",
            Self::FineGrained => "fine-grained",
            Self::Unix => "unix",
        })
    }
}
