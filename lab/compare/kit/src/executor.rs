//! A single-threaded runtime, and a timer of microsecond precision.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::task::LocalSet;

/// Where the client of a peer runs.
pub struct Executor {
    // Dropped first: tasks use the runtime's sockets and timers.
    local: LocalSet,
    runtime: Runtime,
}

impl Executor {
    pub(crate) fn new() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { local: LocalSet::new(), runtime })
    }

    /// Enters the runtime, so that the calling thread can create its sockets outside of tasks.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Runs a future to completion, and the tasks concurrently.
    pub(crate) fn run<F: Future>(&self, future: F) -> F::Output {
        self.local.block_on(&self.runtime, future)
    }

    /// Adds a task.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.local.spawn_local(task);
    }
}

/// A system timer. Tokio's timers have millisecond resolution, longer than most calls take.
pub(crate) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// Creates the timer, within a runtime.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(deprecated, reason = "its successor is unsafe code, and the descriptor is owned")]
        Ok(Self(AsyncFd::new(timer)?))
    }

    /// Sleeps for `time`, which must be positive.
    pub(crate) async fn sleep(&self, time: Duration) -> io::Result<()> {
        let it_value = Timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: Timespec::default(), it_value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut guard = self.0.readable().await?;
            let mut expirations = [0; 8];
            let read =
                |timer: &AsyncFd<OwnedFd>| Ok(rustix::io::read(timer.get_ref(), &mut expirations)?);
            // Readiness may be left over from an earlier sleep.
            if let Ok(read) = guard.try_io(read) {
                return read.map(drop);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_sleep_is_shorter_than_a_millisecond_if_it_has_to_be() {
        let executor = Executor::new().unwrap();
        let shortest = executor.run(async {
            let timer = Timer::new().unwrap();
            let mut shortest = Duration::MAX;
            // On a busy machine most sleeps take longer. If all did, the test would not end.
            while shortest >= Duration::from_millis(1) {
                let began = Instant::now();
                timer.sleep(Duration::from_micros(100)).await.unwrap();
                shortest = shortest.min(began.elapsed());
            }
            shortest
        });
        assert!(shortest >= Duration::from_micros(100), "{shortest:?}");
    }
}
