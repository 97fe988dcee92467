//! Works: file operations of programs, in the order of each run.
//!
//! A work prepares what it needs unless an earlier one has left it, and measures the rest.
//!
//! | file | works |
//! |---|---|
//! | `small_files` | 500 files of 1 KiB, at the server and each with fsync |
//! | `trees` | trees that tar unpacks, find walks and rm removes |
//! | `repository` | `git status` |
//! | `names` | files created, renamed, unlinked |
//! | `large_file` | one file written, read, read in random order |
//! | `append` | a log whose lines are fsynced |
//! | `stat` | `stat` while another thread reads |

mod append;
mod large_file;
mod names;
mod repository;
mod small_files;
mod stat;
mod trees;

use apus_testbed::error::Error;

use super::stage::{Sample, Stage};

/// A work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Its name in rows.
    pub(super) name: &'static str,
    /// One-line description.
    pub(super) about: &'static str,
    /// Programs that it takes.
    pub(super) programs: &'static [&'static str],
    /// Does it.
    pub(super) run: fn(&mut Stage<'_>) -> Result<Sample, Error>,
}

impl Work {
    /// All works. Chosen by us: an order that gives most works the files they need.
    pub(super) const ALL: [Self; 16] = [
        Self::new("sync-500", "500 files of 1 KiB, until all are at the server", small_files::sync),
        Self::new("fsync-500", "500 files of 1 KiB, each with fsync", small_files::fsync),
        Self::new("untar-443", "tar unpacks 443 files, 8 MB", trees::untar_small).with(&["tar"]),
        Self::new("find-443", "find asks for the size of each of 443 files, cold", trees::find)
            .with(&["tar", "find"]),
        Self::new("rm-443", "rm removes 443 files", trees::remove).with(&["tar", "rm"]),
        Self::new("git-status-cold", "git status of 443 files, cold", repository::cold)
            .with(&["tar", "git"]),
        Self::new("git-status-warm", "git status again", repository::warm).with(&["tar", "git"]),
        Self::new("untar-1565", "tar unpacks 1,565 files, 31 MB", trees::untar_large)
            .with(&["tar"]),
        Self::new("create", "1,000 empty files", names::create),
        Self::new("rename", "1,000 files get other names", names::rename),
        Self::new("unlink", "1,000 files are removed", names::unlink),
        Self::new(
            "write-seq",
            "256 MiB in pieces of 1 MiB, with fsync at the end",
            large_file::write,
        ),
        Self::new("read-seq", "256 MiB in pieces of 1 MiB, cold", large_file::read),
        Self::new("read-4k", "2,000 reads of 4 KiB in random order, cold", large_file::read_random),
        Self::new("append-fsync", "300 lines of 100 bytes, each with fsync", append::run),
        Self::new(
            "stat-under-load",
            "stat of files not seen before, while another thread reads 256 MiB",
            stat::run,
        ),
    ];

    const fn new(
        name: &'static str,
        about: &'static str,
        run: fn(&mut Stage<'_>) -> Result<Sample, Error>,
    ) -> Self {
        Self { name, about, programs: &[], run }
    }

    const fn with(self, programs: &'static [&'static str]) -> Self {
        Self { programs, ..self }
    }

    /// Returns the names of all works.
    pub(super) fn names() -> [&'static str; 16] {
        Self::ALL.map(|work| work.name)
    }
}
