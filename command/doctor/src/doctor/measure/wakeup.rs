//! Wake-up latency of a sleeping thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

use apus_measure::clock;
use apus_measure::machine;

/// Number of measured wake-ups.
const TIMES: usize = 100;

/// Idle time of the sleeper's core before each wake-up. Chosen by us: long enough for deep idle
/// states.
const IDLE: Duration = Duration::from_millis(1);

/// Returns median and 99th percentile in microseconds of waking a thread whose core was idle for a
/// millisecond. Waker and sleeper use different cores if two are available. `None` if the system
/// refuses a descriptor.
pub(in crate::doctor) fn of_idle_core() -> Option<(f64, f64)> {
    let wake_event = eventfd(0, EventfdFlags::CLOEXEC).ok()?;
    let ack_event = eventfd(0, EventfdFlags::CLOEXEC).ok()?;
    let wake_time = AtomicU64::new(0);
    let cores = machine::allowed();
    let sleep_loop = || {
        if let [_, .., last] = cores[..] {
            // With a single core this measures a context switch.
            let _ = machine::pin(last);
        }
        let mut times = Vec::with_capacity(TIMES);
        for _ in 0..TIMES {
            let mut count = [0; 8];
            read(&wake_event, &mut count).ok()?;
            times.push(clock::now() - wake_time.load(Ordering::Acquire));
            write(&ack_event, &1_u64.to_ne_bytes()).ok()?;
        }
        Some(times)
    };
    let wake_loop = || {
        if let [first, _, ..] = cores[..] {
            let _ = machine::pin(first);
        }
        for _ in 0..TIMES {
            thread::sleep(IDLE);
            wake_time.store(clock::now(), Ordering::Release);
            write(&wake_event, &1_u64.to_ne_bytes()).ok()?;
            read(&ack_event, &mut [0; 8]).ok()?;
        }
        Some(())
    };
    let mut times = thread::scope(|scope| {
        scope.spawn(wake_loop);
        scope.spawn(sleep_loop).join().ok().flatten()
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
