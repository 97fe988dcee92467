//! The dedicated engine: a separate thread runs the loop.

use crate::engine::poll::UntilClosed;
use crate::engine::shard::Shard;
use crate::engine::waiting::PollMode;
use crate::overload::CoreShare;
use crate::refusal::Named;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Starts a thread that has the poll role until the endpoint is closed, pinned to `cpu` if one is
/// given. It takes up to `share` percent of its core while other threads have work there.
///
/// # Errors
///
/// The system grants no further thread, or the CPU does not exist.
pub(crate) fn start(
    shard: &Arc<Shard>,
    cpu: Option<usize>,
    poll: PollMode,
    share: u32,
) -> io::Result<JoinHandle<()>> {
    let taken = shard.lock().polling().take_role();
    debug_assert!(taken, "the endpoint is new");
    let shard = shard.clone();
    let (report, pinned) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("apus-engine".into()).spawn(move || {
        let result = cpu.map_or(Ok(()), pin);
        let failed = result.is_err();
        // The thread that starts the engine waits for this.
        let _ = report.send(result);
        if failed {
            return;
        }
        if share < 100 {
            run_with_a_share(&shard, poll, share);
        }
        let _ = shard.run_loop(&UntilClosed, poll, None);
    });
    let thread = thread.named("start a thread (clone)")?;
    match pinned.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("the engine's thread ended before it began")),
    }
}

/// Time between two readings of the processor time of a thread with a share. Chosen by us: a tenth
/// of a period, so that the thread exceeds its share by a tenth at most, which is charged to the
/// next period. A reading is two system calls.
const SHARE_CHECK_INTERVAL: Duration =
    Duration::from_nanos(CoreShare::PERIOD.as_nanos() as u64 / 10);

/// Runs the loop until the endpoint is closed. Rests for the remainder of a period when the share
/// is used up and other threads have work on this core.
fn run_with_a_share(shard: &Shard, poll: PollMode, percent: u32) {
    let mut share = CoreShare::of_percent(percent);
    let mut receiver = shard.receiver();
    let mut used = processor_time();
    loop {
        let (core, _) = shard.run_until(
            &mut receiver,
            &UntilClosed,
            poll,
            Some(Instant::now() + SHARE_CHECK_INTERVAL),
        );
        if core.is_closed() {
            return;
        }
        drop(core);
        let (before, now) = (used, shard.clock().now());
        used = processor_time();
        share.charge(used.saturating_sub(before), now);
        if let Some(until) = share.until(now)
            && is_core_wanted()
        {
            shard.lock().counters().rests += 1;
            // Meanwhile threads that send do so themselves, and packets wait in the socket.
            std::thread::sleep(until - shard.clock().now());
        }
    }
}

/// Returns whether another thread has work on this core. Yields to it, which takes no time if there
/// is none.
fn is_core_wanted() -> bool {
    /// Longest duration of a yield without another thread: it takes a fraction of a microsecond,
    /// and running another thread takes many.
    const IDLE_YIELD: Duration = Duration::from_micros(10);
    let before = Instant::now();
    std::thread::yield_now();
    before.elapsed() > IDLE_YIELD
}

/// Returns the processor time that the calling thread has used.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock is never negative.
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// Pins the calling thread to one CPU.
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
