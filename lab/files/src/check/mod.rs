//! Consistency of several mounts of one directory.
//!
//! Threads, one or more per mount, work on the same files at once. Their requests, with times and
//! answers, form a history. The checkers of `apus-fs-sim` search for an explanation of it: an order
//! of operations that a single disk could have had.
//! | work | property |
//! |---|---|
//! | registers | writes, reads, truncations of short files are linearisable |
//! | appends | no append is lost, torn, doubled, or out of its mount's order |
//! | locks | `flock` excludes: a counter in a file that is read and written under it loses no step |
//! | names | exclusive creation and removal of one name alternate |

mod appends;
mod locks;
mod names;
mod place;
mod registers;

use std::fmt;
use std::path::PathBuf;

use place::Places;
pub use place::{CheckError, directory_name};

/// Scope and duration of a check.
#[derive(Clone, Debug)]
pub struct CheckSettings {
    /// The mounts: paths of the same directory.
    pub mounts: Vec<PathBuf>,
    /// Threads that work on each mount.
    pub workers: usize,
    /// Operations of each kind of work, by all threads together.
    pub operations: u64,
    /// Seed of the choices.
    pub seed: u64,
    /// Whether a read concurrent with a write returns all of the write or none of it. apus promises
    /// this. Local file systems other than XFS do not: they read without the lock that a write
    /// holds, so a read may return a part of it.
    pub atomic_reads: bool,
}

/// Findings of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct CheckReport {
    /// Operations that were done.
    pub operations: u64,
    /// Histories whose search for an explanation was given up, because it took too long.
    pub undecided: u64,
    /// Broken promises, with the evidence.
    pub violations: Vec<String>,
}

impl CheckReport {
    fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.undecided += other.undecided;
        self.violations.extend(other.violations);
    }
}

/// A kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Short files that are written, read and cut.
    Registers,
    /// Files that are appended to.
    Appends,
    /// A counter under a lock.
    Locks,
    /// A name that is created and removed.
    Names,
}

impl Work {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Registers, Self::Appends, Self::Locks, Self::Names];
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Registers => "registers",
            Self::Appends => "appends",
            Self::Locks => "locks",
            Self::Names => "names",
        })
    }
}

/// Runs the check. `progress` is called with the next step. Everything happens in a new directory,
/// which is removed at the end.
///
/// # Errors
///
/// [`CheckError`]: a path is unusable, or an operation that must not fail did.
pub fn run(
    settings: &CheckSettings,
    mut progress: impl FnMut(Work),
) -> Result<CheckReport, CheckError> {
    let places = Places::new(&settings.mounts)?;
    let mut report = CheckReport::default();
    for work in Work::ALL {
        progress(work);
        let checked = match work {
            Work::Registers => registers::run(settings, &places),
            Work::Appends => appends::run(settings, &places),
            Work::Locks => locks::run(settings, &places),
            Work::Names => names::run(settings, &places),
        };
        match checked {
            Ok(more) => report.add(more),
            Err(error) => {
                // The first error is more useful than the error of a directory that cannot be
                // removed for the same reason.
                let _ = places.remove();
                return Err(error);
            }
        }
    }
    places.remove()?;
    Ok(report)
}
