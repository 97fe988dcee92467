//! How does a thread of its own turn the loop?

use super::poll_mode::PollMode;
use super::shard::Shard;
use super::wait_target::Closing;
use crate::overload::CoreShare;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Starts a thread that has the turn until the endpoint is closed, pinned to `cpu` if one is given. It takes
/// no more than `share` percent of its core while others have work there.
///
/// # Errors
///
/// The system gives no further thread, or the CPU does not exist.
pub(crate) fn start(
    shard: &Arc<Shard>,
    cpu: Option<usize>,
    poll: PollMode,
    share: u32,
) -> io::Result<JoinHandle<()>> {
    let taken = shard.lock().role.take();
    debug_assert!(taken, "the endpoint is new");
    let shard = shard.clone();
    let (report, pinned) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("apus-engine".into()).spawn(move || {
        let result = cpu.map_or(Ok(()), pin);
        let failed = result.is_err();
        // Whoever started the engine waits for this.
        let _ = report.send(result);
        if failed {
            return;
        }
        if share < 100 {
            run_with_a_share(&shard, poll, share);
        }
        let _ = shard.run_loop(&Closing, poll, None);
    })?;
    match pinned.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(io::Error::other("the engine's thread ended before it began")),
    }
}

/// How often a thread with a share looks at what it has used. Ours: ten times in a period, so that it takes no
/// more than a tenth too much, which is held against the next period; a look is two system calls.
const SHARE_CHECK_INTERVAL: Duration = Duration::from_nanos(CoreShare::PERIOD / 10);

/// Turns the loop until the endpoint is closed, and rests for the remainder of a period when the share is used up and
/// somebody else has work on this core.
fn run_with_a_share(shard: &Shard, poll: PollMode, percent: u32) {
    let mut share = CoreShare::of_percent(percent);
    let mut receive = shard.receive.lock().unwrap_or_else(PoisonError::into_inner);
    let mut used = processor_time();
    loop {
        let (core, _) =
            shard.run(&mut receive, &Closing, poll, Some(Instant::now() + SHARE_CHECK_INTERVAL));
        if core.closed.is_some() {
            return;
        }
        drop(core);
        let (before, now) = (used, shard.clock.now());
        used = processor_time();
        share.charge(used.saturating_sub(before), now);
        if let Some(until) = share.until(now)
            && is_core_wanted()
        {
            shard.lock().metrics.rests += 1;
            // Whoever sends does so itself meanwhile, and what arrives waits in the socket.
            std::thread::sleep(until - shard.clock.now());
        }
    }
}

/// Whether somebody else had work on this core: lets them go first, which takes no time if there is nobody.
fn is_core_wanted() -> bool {
    /// What a yield to nobody takes at most; it is a fraction of a microsecond, and a turn of another thread many.
    const NOBODY: Duration = Duration::from_micros(10);
    let before = Instant::now();
    std::thread::yield_now();
    before.elapsed() > NOBODY
}

/// Nanoseconds of processor time that this thread has used.
fn processor_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // The clock is never negative.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
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
