//! How does a thread of its own turn the loop?

use super::poll::Poll;
use super::shard::Shard;
use super::want::Closing;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Starts a thread that has the turn until the endpoint is closed, pinned to `cpu` if one is given.
///
/// # Errors
///
/// The system gives no further thread, or the CPU does not exist.
pub(crate) fn start(
    shard: &Arc<Shard>,
    cpu: Option<usize>,
    poll: Poll,
) -> io::Result<JoinHandle<()>> {
    let taken = shard.lock().turn.take();
    debug_assert!(taken, "the endpoint is new");
    let shard = shard.clone();
    let (report, pinned) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("apus-engine".into()).spawn(move || {
        let result = cpu.map_or(Ok(()), pin);
        let failed = result.is_err();
        // Whoever started the engine waits for this.
        let _ = report.send(result);
        if !failed {
            let _ = shard.turn(&Closing, poll, None);
        }
    })?;
    match pinned.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("the engine's thread ended before it began")),
    }
}

/// Pins the present thread to one CPU.
fn pin(cpu: usize) -> io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        let text = format!("pin to CPU {cpu}: there are at most {}", CpuSet::MAX_CPU);
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("pin to CPU {cpu}: {error}"))
    })
}
