//! Automatic saving: writes files when the trace freezes because of a problem.
//!
//! A user calls [`start`] with a folder. From then on a thread of the process is notified of each
//! freeze, writes a file into each folder, and resumes recording. It ignores a freeze on demand:
//! the user who requested it is about to read the trace, and may want it to stay frozen.
//!
//! # Bounds
//!
//! A folder that contains its maximum number of traces, of any process, gets no more; files are
//! never removed. The trace then stays frozen in memory until a user reads it or resumes recording.
//! Processes that freeze at the same moment may exceed the maximum by one file each.
//!
//! # Invariants
//!
//! - **AUTOSAVE-1** A freeze is saved once: the thread stores the last freeze that it has handled,
//!   starting with the current one at its start.
//! - **AUTOSAVE-2** A freeze before the drop of the last [`AutoSave`] is saved before the drop
//!   returns.

use crate::file::FileError;
use crate::freeze_reason::FreezeReason;
use crate::recorder;
use crate::trace::{Frozen, Trace};
use apus_process::{Owner, PerProcess};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// Folder of automatically saved traces, and their maximum number.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct TraceFiles {
    folder: PathBuf,
    at_most: usize,
}

impl TraceFiles {
    /// Default maximum number of traces in a folder. Chosen by us: a trace of a process with eight
    /// busy threads has 4 MB, so the default is 64 MB.
    pub const AT_MOST: usize = 16;

    /// Returns the settings for a folder, which is created if it is missing. Files are named
    /// `HOST-PID-REASON-NUMBER.tt`, with the names of [`FreezeReason::NAMES`].
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), at_most: Self::AT_MOST }
    }

    /// Sets the number of files ending in `.tt` at which saving to the folder stops.
    pub const fn at_most(mut self, files: usize) -> Self {
        self.at_most = files;
        self
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a trace that was frozen for this reason.
    fn write(&self, trace: &Trace, reason: FreezeReason) -> Result<(), String> {
        let folder = self.folder.display();
        let count = self.count().map_err(|error| format!("{folder}: {error}"))?;
        if count >= self.at_most {
            return Err(format!("{folder} contains {count} traces, which is the maximum"));
        }
        trace.save(&self.free_name(trace, reason)).map_err(|error: FileError| error.to_string())
    }

    /// Returns the number of traces in the folder.
    fn count(&self) -> io::Result<usize> {
        let mut count = 0;
        for entry in std::fs::read_dir(&self.folder)? {
            count += usize::from(entry?.path().extension().is_some_and(|end| end == "tt"));
        }
        Ok(count)
    }

    /// Returns the name of a file that does not exist: an earlier process may have had the same
    /// pid.
    fn free_name(&self, trace: &Trace, reason: FreezeReason) -> PathBuf {
        let path = |number: u32| {
            let more = format!("{}-{number}", reason.name());
            self.folder.join(trace.head.file_name(Some(&more)))
        };
        let free = (1..u32::MAX).map(path).find(|path| !path.exists());
        free.unwrap_or_else(|| path(u32::MAX))
    }
}

/// Files that were saved automatically.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SavedFiles {
    /// The folders of the files.
    pub folders: Vec<PathBuf>,
    /// Number of files that this process has written.
    pub files: u64,
    /// Why the last freeze was not saved, if it was not.
    pub problem: Option<String>,
}

#[derive(Debug, Default)]
struct SaverState {
    /// Settings of all guards.
    settings: Vec<TraceFiles>,
    /// Number of guards.
    guards: usize,
    thread: Option<Writer>,
    files: u64,
    problem: Option<String>,
}

/// A child of a fork has neither the thread nor the guards.
static STATE: PerProcess<Mutex<SaverState>> = PerProcess::new(Mutex::default);

fn state() -> MutexGuard<'static, SaverState> {
    STATE.get().lock().unwrap_or_else(PoisonError::into_inner)
}

impl SaverState {
    /// Returns the settings once for each folder: the first ones determine the maximum.
    fn folders(&self) -> Vec<TraceFiles> {
        let mut all: Vec<TraceFiles> = Vec::new();
        for files in &self.settings {
            if all.iter().all(|other| other.folder != files.folder) {
                all.push(files.clone());
            }
        }
        all
    }
}

/// Returns the files that this process has saved automatically.
#[must_use]
pub fn saved_files() -> SavedFiles {
    let state = state();
    let folders = state.folders().into_iter().map(|files| files.folder).collect();
    SavedFiles { folders, files: state.files, problem: state.problem.clone() }
}

/// A guard: while it lives, the trace is saved when it freezes.
#[derive(Debug)]
#[must_use]
pub struct AutoSave {
    files: TraceFiles,
    /// The process that made the guard. A fork of it has the same memory, but not the thread.
    owner: Owner,
}

/// Starts to save the trace when it freezes, until the returned guard is dropped. A trace that is
/// frozen already is not saved. There may be any number of guards at a time, also for one folder,
/// which then gets each trace once.
///
/// # Errors
///
/// The system's error if the folder cannot be created, or the thread cannot be started.
pub fn start(files: TraceFiles) -> io::Result<AutoSave> {
    // Only this user may enter it. The files are private in a folder that existed, too.
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&files.folder)?;
    let mut state = state();
    if state.thread.is_none() {
        state.thread = Some(Writer::start()?);
    }
    state.guards += 1;
    state.settings.push(files.clone());
    Ok(AutoSave { files, owner: Owner::current() })
}

impl Drop for AutoSave {
    fn drop(&mut self) {
        if !self.owner.is_current() {
            return;
        }
        let last = {
            let mut state = state();
            state.guards -= 1;
            if state.guards == 0 { state.thread.take() } else { None }
        };
        // AUTOSAVE-2. Without the lock, which the thread may be about to take.
        if let Some(writer) = last {
            writer.end();
        }
        let mut state = state();
        if let Some(own) = state.settings.iter().position(|files| *files == self.files) {
            drop(state.settings.remove(own));
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
        let (stopping, before) = (stop.clone(), recorder::frozen());
        let builder = thread::Builder::new().name("apus-traces".to_owned());
        let thread = builder.spawn(move || save_all(before, &stopping))?;
        Ok(Self { stop, thread })
    }

    fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        recorder::notify_waiters();
        // If it panicked, its message has been printed.
        let _ = self.thread.join();
    }
}

/// Saves each freeze, until `stop` is set.
fn save_all(mut handled: Option<Frozen>, stop: &AtomicBool) {
    while let Some(frozen) = recorder::wait_for_freeze(handled, stop) {
        handled = Some(frozen);
        if frozen.reason != FreezeReason::Demand {
            save(frozen);
        }
    }
}

/// Saves the frozen trace into each folder, and then resumes recording.
fn save(frozen: Frozen) {
    let folders = state().folders();
    let mut trace = recorder::snapshot();
    // The trace may have been resumed in the meantime; the file still names the reason.
    trace.head.frozen = Some(frozen);
    let results: Vec<_> = folders.iter().map(|files| files.write(&trace, frozen.reason)).collect();
    let mut state = state();
    state.files += results.iter().filter(|result| result.is_ok()).count() as u64;
    state.problem = results.into_iter().find_map(Result::err);
    if state.problem.is_none() {
        recorder::resume_if(frozen);
    }
}
