//! Which files does a trace leave behind when it freezes by itself?
//!
//! Whoever asks for that ([`keep`]) names a folder. A thread of the process, which does nothing else, is told when the trace
//! freezes, writes a file into each folder, and lets recording go on. What somebody froze on demand it leaves alone: they will
//! look at it, and may want it to stay.
//!
//! # Bounds
//!
//! A folder that holds as many traces as it may, whoever has written them, gets no more, and nothing is ever removed. Then the
//! trace stays frozen: what led to it is in memory until somebody looks, or thaws it. Processes that freeze at the same moment
//! may go beyond the bound by a file each.
//!
//! # Invariants
//!
//! - **K1** A freeze is written once: the thread remembers which one it has handled, and begins with the one that was there.
//! - **K2** A freeze that came before the last [`Keeping`] was dropped is written before the drop returns.

use crate::file::FileError;
use crate::recorder::{self, FreezeReason};
use crate::trace::{Frozen, Trace};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Where files go, and how many there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct TraceFiles {
    folder: PathBuf,
    at_most: usize,
}

impl TraceFiles {
    /// Traces that a folder may hold unless it is said otherwise. Ours: of a process with eight busy threads a trace has
    /// 4 MB, so that is 64 MB.
    pub const AT_MOST: usize = 16;

    /// Into this folder, which is made if it is missing: `HOST-PID-REASON-NUMBER.tt`, with the names of
    /// [`FreezeReason::NAMES`].
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), at_most: Self::AT_MOST }
    }

    /// The folder gets no more if it holds so many files that end in `.tt`.
    pub const fn at_most(mut self, files: usize) -> Self {
        self.at_most = files;
        self
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a trace that was frozen for this reason.
    fn write(&self, trace: &Trace, reason: FreezeReason) -> Result<(), String> {
        let folder = self.folder.display();
        let there = self.count().map_err(|error| format!("{folder}: {error}"))?;
        if there >= self.at_most {
            return Err(format!("{folder} holds {there} traces, as many as it may"));
        }
        trace.save(&self.free_name(trace, reason)).map_err(|error: FileError| error.to_string())
    }

    /// Traces in the folder.
    fn count(&self) -> io::Result<usize> {
        let mut count = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            count += usize::from(entry?.path().extension().is_some_and(|end| end == "tt"));
        }
        Ok(count)
    }

    /// A name that no file has: another process may have had our number.
    fn free_name(&self, trace: &Trace, reason: FreezeReason) -> PathBuf {
        let path = |number: u32| {
            let more = format!("{}-{number}", reason.name());
            self.folder.join(trace.head.file_name(Some(&more)))
        };
        let free = (1..u32::MAX).map(path).find(|path| !path.exists());
        free.unwrap_or_else(|| path(u32::MAX))
    }
}

/// What has been left behind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilesLeft {
    /// The folders into which files go.
    pub folders: Vec<PathBuf>,
    /// Files that this process has written.
    pub files: u64,
    /// Why there is none of the last freeze, if there is none.
    pub problem: Option<String>,
}

#[derive(Debug)]
struct Keeper {
    /// What was asked for: each as often as it was.
    asked: Vec<TraceFiles>,
    /// Those who have asked and are still there.
    keepings: usize,
    thread: Option<Writer>,
    files: u64,
    problem: Option<String>,
}

static KEEPER: Mutex<Keeper> =
    Mutex::new(Keeper { asked: Vec::new(), keepings: 0, thread: None, files: 0, problem: None });

fn keeper() -> MutexGuard<'static, Keeper> {
    KEEPER.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Keeper {
    /// What was asked for, once for each folder: the first who names it says how many there may be.
    fn folders(&self) -> Vec<TraceFiles> {
        let mut all: Vec<TraceFiles> = Vec::new();
        for files in &self.asked {
            if all.iter().all(|other| other.folder != files.folder) {
                all.push(files.clone());
            }
        }
        all
    }
}

/// What this process has left behind.
#[must_use]
pub fn left() -> FilesLeft {
    let keeper = keeper();
    let folders = keeper.folders().into_iter().map(|files| files.folder).collect();
    FilesLeft { folders, files: keeper.files, problem: keeper.problem.clone() }
}

/// As long as this lives, the trace leaves files behind.
#[derive(Debug)]
#[must_use]
pub struct Keeping {
    files: TraceFiles,
    /// The process that asked. A fork of it has the same memory, but not the thread.
    pid: u32,
}

/// Has the trace leave files behind when it freezes by itself, until what this returns is dropped. What is frozen already is
/// left alone. Any number may be kept at a time, also for one folder: it gets each trace once.
///
/// # Errors
///
/// The folder cannot be made, or the system refuses a thread.
pub fn keep(files: TraceFiles) -> io::Result<Keeping> {
    std::fs::create_dir_all(&files.folder)?;
    let mut keeper = keeper();
    if keeper.thread.is_none() {
        keeper.thread = Some(Writer::start()?);
    }
    keeper.keepings += 1;
    keeper.asked.push(files.clone());
    Ok(Keeping { files, pid: std::process::id() })
}

impl Drop for Keeping {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        let last = {
            let mut keeper = keeper();
            keeper.keepings -= 1;
            if keeper.keepings == 0 { keeper.thread.take() } else { None }
        };
        // K2. Without the lock: the thread may be about to take it.
        if let Some(writer) = last {
            writer.end();
        }
        let mut keeper = keeper();
        if let Some(own) = keeper.asked.iter().position(|files| *files == self.files) {
            drop(keeper.asked.remove(own));
        }
    }
}

/// The thread that writes.
#[derive(Debug)]
struct Writer {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Writer {
    fn start() -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (told, before) = (stop.clone(), recorder::frozen());
        let builder = thread::Builder::new().name("apus-traces".to_owned());
        let thread = builder.spawn(move || write_all(before, &told))?;
        Ok(Self { stop, thread })
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        recorder::wake_those_who_wait();
        // If it panicked, its message has been printed.
        let _ = self.thread.join();
    }
}

/// Writes what freezes, until it is told to stop.
fn write_all(mut handled: Option<Frozen>, stop: &AtomicBool) {
    while let Some(frozen) = recorder::wait_for_freeze(handled, stop) {
        handled = Some(frozen);
        if frozen.reason != FreezeReason::Demand {
            write_one(frozen);
        }
    }
}

/// Writes what is frozen into each folder; then recording goes on.
fn write_one(frozen: Frozen) {
    let folders = keeper().folders();
    let mut trace = recorder::snapshot();
    // Somebody may have thawed it meanwhile: what led to the file stands in it all the same.
    trace.head.frozen = Some(frozen);
    let results: Vec<_> = folders.iter().map(|files| files.write(&trace, frozen.reason)).collect();
    let mut keeper = keeper();
    keeper.files += results.iter().filter(|result| result.is_ok()).count() as u64;
    keeper.problem = results.into_iter().find_map(Result::err);
    if keeper.problem.is_none() {
        recorder::thaw_if(frozen);
    }
}
