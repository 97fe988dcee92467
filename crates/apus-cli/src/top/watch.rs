//! How are processes watched without making the user wait?
//!
//! A thread of its own asks them: one that is stopped in a debugger answers late, and keys are heeded meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use apus::live::{Process, RpcRow, processes};
use apus::snapshot::Snapshot;

/// One look at all processes.
pub(super) type Look = Vec<Seen>;

/// What one of them has answered.
pub(super) struct Seen {
    pub(super) pid: u32,
    /// Its counters, or why there are none.
    pub(super) snapshot: Result<Snapshot, String>,
    pub(super) rpcs: Vec<RpcRow>,
}

/// Looks again and again until it is dropped.
pub(super) struct Watch {
    looks: Receiver<Look>,
    millis: Arc<AtomicU64>,
}

/// How often the thread sees whether the interval has changed, or nobody wants to know any more.
const STEP: Duration = Duration::from_millis(50);

impl Watch {
    /// Looks at these processes, or at all, every so many seconds; at once for the first time.
    ///
    /// # Errors
    ///
    /// The system gives no thread.
    pub(super) fn start(pids: Vec<u32>, seconds: f64) -> io::Result<Self> {
        let (send, looks) = mpsc::channel();
        let millis = Arc::new(AtomicU64::new(0));
        let watch = Self { looks, millis: millis.clone() };
        watch.set_interval(seconds);
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || look(&pids, &send, &millis))?;
        Ok(watch)
    }

    /// Seconds between two looks from now on.
    pub(super) fn set_interval(&self, seconds: f64) {
        self.millis.store((seconds * 1e3) as u64, Ordering::Relaxed);
    }

    /// The looks that have not been seen yet.
    pub(super) fn looks(&self) -> impl Iterator<Item = Look> {
        self.looks.try_iter()
    }
}

fn look(pids: &[u32], send: &Sender<Look>, millis: &AtomicU64) {
    loop {
        let began = Instant::now();
        if send.send(taken(pids)).is_err() {
            return;
        }
        while began.elapsed() < Duration::from_millis(millis.load(Ordering::Relaxed)) {
            thread::sleep(STEP);
        }
    }
}

fn taken(pids: &[u32]) -> Look {
    let all = if pids.is_empty() {
        processes().unwrap_or_default()
    } else {
        pids.iter().map(|pid| Process::new(*pid)).collect()
    };
    let seen = |process: &Process| Seen {
        pid: process.pid(),
        snapshot: process
            .snapshot()
            .map_err(|error| error.to_string().replace(char::is_control, "?")),
        rpcs: process.rpcs().unwrap_or_default(),
    };
    all.iter().map(seen).collect()
}
