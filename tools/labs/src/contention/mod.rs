//! The contention lab: one lock for all local sockets, beside none.
//!
//! For years FreeBSD took one lock for every message over any local socket: 96 processes, each with a pair of its own,
//! got 1.69 million messages a second through, fewer than six did; with a lock for each socket 70.7 million (published
//! numbers G). Here that is done again beside the product, by the load that showed it there, will-it-scale's
//! `unix1_processes`: each worker has a pair of its own, writes one byte and reads it itself, again and again.
//! Workers share nothing but locks.
//!
//! - `global-lock`: how it was. A registry of all pairs with one lock, which each send and each receive takes to look its pair
//!   up and to work under it (`global_registry`).
//! - `fine-grained`: the product's pairs, whose messages never touch the registry.
//! - `unix`: a socket pair of the kernel.
//!
//! | file | question |
//! |---|---|
//! | `options` | what can be asked for |
//! | `exchange`, `fine_grained`, `global_lock`, `unix`, `waits` | what an operation is; who does it how; how waits are noted |
//! | `worker`, `crew` | what a worker does, and counts; the processes and threads in which workers are |
//! | `sweep` | all numbers of workers, all contenders, all runs |
//! | `queueing`, `forecast` | what is to be expected beyond the cores there are: a model, and what it is fitted to |
//! | `curve`, `findings`, `words`, `plots`, `published`, `page` | what that means, in tables, in words, as curves, beside FreeBSD's, in a browser |
//!
//! # Invariants
//!
//! - **C1** `global-lock` does what `fine-grained` does, by the same code, and takes its lock around that. Nothing else makes
//!   it slower: its lock spins and sleeps as std's does, and looking up is to read one word.
//! - **C2** Workers share nothing that is written, but for what a contender makes them share.
//! - **C3** What is measured and what is a model are never in one column, one list or one line.

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
#[expect(unsafe_code, reason = "the mapping that processes share")]
mod shared_words;
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

/// What kind of task this is.
pub(crate) const JOB: &str = "lab contention";

/// Whose messages they are.
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
