//! How long does it take until a thread that sleeps runs again?

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

use apus_testbed::clock;
use apus_testbed::machine;

/// Wake-ups that are measured.
const TIMES: usize = 100;

/// How long the sleeper's core has nothing to do before each. Ours: long enough for deep idle states.
const IDLE: Duration = Duration::from_millis(1);

/// Median and 99th percentile in microseconds, of a thread that another one wakes after its core had nothing
/// to do for a millisecond; on different cores if there are two. `None` if the system refuses a descriptor.
pub(in crate::doctor) fn of_idle_core() -> Option<(f64, f64)> {
    let bell = eventfd(0, EventfdFlags::CLOEXEC).ok()?;
    let answer = eventfd(0, EventfdFlags::CLOEXEC).ok()?;
    let rang = AtomicU64::new(0);
    let cores = machine::allowed();
    let sleeper = || {
        if let [_, .., last] = cores[..] {
            // On the same core it is a switch of threads, which is something else but all there is.
            let _ = machine::pin(last);
        }
        let mut times = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let mut ring = [0; 8];
            read(&bell, &mut ring).ok()?;
            times.push(clock::now() - rang.load(Ordering::Acquire));
            write(&answer, &1_u64.to_ne_bytes()).ok()?;
        }
        Some(times)
    };
    let ringer = || {
        if let [first, _, ..] = cores[..] {
            let _ = machine::pin(first);
        }
        for _ in 0..TIMES {
            thread::sleep(IDLE);
            rang.store(clock::now(), Ordering::Release);
            write(&bell, &1_u64.to_ne_bytes()).ok()?;
            read(&answer, &mut [0; 8]).ok()?;
        }
        Some(())
    };
    let mut times = thread::scope(|scope| {
        scope.spawn(ringer);
        scope.spawn(sleeper).join().ok().flatten()
    })?;
    times.sort_unstable();
    let at = |share: usize| times[(TIMES * share / 100).min(TIMES - 1)] as f64 / 1e3;
    Some((at(50), at(99)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waking_takes_some_time_and_the_tail_no_less() {
        let (median, tail) = of_idle_core().unwrap();
        assert!(median > 0.0 && tail >= median);
    }
}
