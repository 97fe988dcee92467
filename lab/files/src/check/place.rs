//! The working directory of a check, as each mount shows it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use apus_fs_sim::history::{Moment, MountId};

/// Why a check could not be done.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {path}: {source}")]
pub struct CheckError {
    /// The operation that failed.
    pub operation: &'static str,
    /// Path of the operation.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

/// Adds operation and path to an error.
pub(super) fn doing(
    operation: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> CheckError + use<> {
    let path = path.to_owned();
    move |source| CheckError { operation, path, source }
}

/// A worker's view.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    /// Its number among all.
    pub(super) index: usize,
    /// Its mount.
    pub(super) mount: MountId,
    /// The directory of the check, on this mount.
    pub(super) directory: PathBuf,
}

/// The directory of a check on each mount, and the order of events.
#[derive(Debug)]
pub(super) struct Places {
    directories: Vec<PathBuf>,
    moments: AtomicU64,
}

impl Places {
    /// Creates a new directory on the first mount.
    pub(super) fn new(mounts: &[PathBuf]) -> Result<Self, CheckError> {
        let name = directory_name();
        let directories: Vec<_> = mounts.iter().map(|mount| mount.join(&name)).collect();
        if let Some(first) = directories.first() {
            fs::create_dir(first).map_err(doing("create", first))?;
        }
        Ok(Self { directories, moments: AtomicU64::new(0) })
    }

    /// Removes it.
    pub(super) fn remove(&self) -> Result<(), CheckError> {
        match self.directories.first() {
            Some(first) => fs::remove_dir_all(first).map_err(doing("remove", first)),
            None => Ok(()),
        }
    }

    /// The directory on the first mount.
    pub(super) fn first(&self) -> &Path {
        self.directories.first().map_or(Path::new("."), PathBuf::as_path)
    }

    /// The next moment.
    pub(super) fn moment(&self) -> Moment {
        Moment(self.moments.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Runs `per_mount` workers of each mount concurrently, and returns their results.
    pub(super) fn work<T: Send>(
        &self,
        per_mount: usize,
        work: impl Fn(&Worker) -> Result<T, CheckError> + Sync,
    ) -> Result<Vec<T>, CheckError> {
        let workers = self.directories.iter().enumerate().flat_map(|(mount, directory)| {
            (0..per_mount).map(move |index| Worker {
                index: mount * per_mount + index,
                mount: MountId(mount as u32),
                directory: directory.clone(),
            })
        });
        let workers: Vec<_> = workers.collect();
        thread::scope(|scope| {
            let work = &work;
            let threads: Vec<_> =
                workers.iter().map(|worker| scope.spawn(move || work(worker))).collect();
            let joined = threads.into_iter().map(|thread| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            joined.collect()
        })
    }
}

/// Returns the name of the directory that this process checks in.
#[must_use]
pub fn directory_name() -> String {
    format!("apus-check-{}", std::process::id())
}
