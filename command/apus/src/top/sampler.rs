//! Sampler: reads the counters of processes, in its own thread.
//!
//! A process stopped in a debugger answers late; the thread keeps such waits from delaying the
//! user's keys.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use apus::introspection::{Error, Process, Query, RpcRow, Senders, processes};
use apus::snapshot::Snapshot;

/// The answers of all processes to one round of requests.
pub(super) type Sample = Vec<ProcessSample>;

/// The answer of one process.
pub(super) struct ProcessSample {
    pub(super) pid: u32,
    /// Its counters, or the reason for their absence.
    pub(super) snapshot: Result<Snapshot, String>,
    /// Its live RPCs, the oldest first.
    pub(super) rpcs: Vec<RpcRow>,
    /// The peers with arriving messages.
    pub(super) senders: Senders,
}

/// Takes a sample in each interval until dropped.
pub(super) struct Sampler {
    samples: Receiver<Sample>,
    interval_millis: Arc<AtomicU64>,
}

/// Interval at which the thread checks whether the sampling interval has changed.
const STEP: Duration = Duration::from_millis(50);

impl Sampler {
    /// Samples these processes every `seconds`, starting immediately. An empty list means all
    /// processes of this user.
    ///
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub(super) fn start(pids: Vec<u32>, seconds: f64) -> io::Result<Self> {
        let (sender, samples) = mpsc::channel();
        let interval_millis = Arc::new(AtomicU64::new(0));
        let sampler = Self { samples, interval_millis: interval_millis.clone() };
        sampler.set_interval(seconds);
        thread::Builder::new()
            .name("sampler".to_owned())
            .spawn(move || run(&pids, &sender, &interval_millis))?;
        Ok(sampler)
    }

    /// Changes the seconds between two samples.
    pub(super) fn set_interval(&self, seconds: f64) {
        self.interval_millis.store((seconds * 1e3) as u64, Ordering::Relaxed);
    }

    /// Returns the samples not yet returned.
    pub(super) fn samples(&self) -> impl Iterator<Item = Sample> {
        self.samples.try_iter()
    }
}

/// Sends samples until the sampler is dropped.
fn run(pids: &[u32], sender: &Sender<Sample>, interval_millis: &AtomicU64) {
    loop {
        let began = Instant::now();
        if sender.send(sample(pids)).is_err() {
            return;
        }
        while began.elapsed() < Duration::from_millis(interval_millis.load(Ordering::Relaxed)) {
            thread::sleep(STEP);
        }
    }
}

fn sample(pids: &[u32]) -> Sample {
    let all = if pids.is_empty() {
        processes().unwrap_or_default()
    } else {
        pids.iter().map(|pid| Process::new(*pid)).collect()
    };
    samples(&all)
}

/// Sends the requests to all processes at once. A silent process is not waited for again.
fn samples(processes: &[Process]) -> Sample {
    let snapshots = Query::SNAPSHOT.all(processes);
    let answering = processes.iter().zip(&snapshots).filter(|(_, snapshot)| snapshot.is_ok());
    let answering: Vec<_> = answering.map(|(process, _)| process.clone()).collect();
    let mut rpcs = Query::RPCS.all(&answering).into_iter();
    let mut senders = Query::SENDERS.all(&answering).into_iter();
    let sample = |(process, snapshot): (&Process, Result<Snapshot, Error>)| {
        let more = snapshot.is_ok().then(|| (rpcs.next(), senders.next()));
        let (rpcs, senders) = more.unwrap_or_default();
        ProcessSample {
            pid: process.pid(),
            snapshot: snapshot.map_err(|error| reason(process, &error)),
            rpcs: rpcs.and_then(Result::ok).unwrap_or_default(),
            senders: senders.and_then(Result::ok).unwrap_or_default(),
        }
    };
    processes.iter().zip(snapshots).map(sample).collect()
}

/// Returns the reason why a process has no counters. It is short: the column is narrow, and the row
/// has the process id.
fn reason(process: &Process, error: &Error) -> String {
    let reason = match error {
        Error::Unresponsive { source, .. } => format!("no response: {source}"),
        _ if process.has_ended() => "has ended, or never existed".to_owned(),
        _ => error.to_string(),
    };
    // The text may come from a process of another user.
    reason.replace(char::is_control, "?")
}
