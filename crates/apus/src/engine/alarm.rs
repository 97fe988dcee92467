//! How is a thread woken a while later, by somebody who has no time to wake it now?
//!
//! To wake a thread costs a system call and, if it shares the caller's core, two context switches before the
//! caller goes on: 25 µs of a processor that has just woken up itself. To set a timer costs a fraction of one.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// A timer of the system that one thread sleeps on and others set.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
}

impl Alarm {
    /// An alarm that is not set.
    ///
    /// # Errors
    ///
    /// The system gives no descriptor.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self { timer: timerfd_create(TimerfdClockId::Monotonic, flags)? })
    }

    /// Rings after that time, or as soon as possible, whatever it was set to before.
    pub(crate) fn set(&self, after: Duration) {
        // Zero would unset it.
        let it_value = timespec(after.max(Duration::from_nanos(1)));
        let it_interval = timespec(Duration::ZERO);
        // Can only fail for a descriptor that is none of its kind, or a time that is none.
        let _ = timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval, it_value },
        );
    }

    /// Sleeps until it rings, if it has not since the last time, or until `time` has passed.
    pub(crate) fn wait(&self, time: Option<Duration>) {
        let timeout = time.map(timespec);
        // Whoever is interrupted has slept for less, which is no harm.
        let _ = poll(&mut [PollFd::new(&self.timer, PollFlags::IN)], timeout.as_ref());
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
    }
}

const fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().cast_signed() as _,
    }
}

#[cfg(all(test, not(apus_loom)))]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn whoever_sleeps_is_woken_by_the_alarm_and_by_its_own_time() {
        let alarm = Alarm::new().unwrap();
        alarm.set(Duration::ZERO);
        alarm.wait(None);
        let began = Instant::now();
        alarm.set(Duration::from_millis(2));
        alarm.wait(None);
        assert!(began.elapsed() >= Duration::from_millis(2));
        let began = Instant::now();
        alarm.wait(Some(Duration::from_millis(1)));
        assert!(began.elapsed() >= Duration::from_millis(1), "it rings once");
    }

    #[test]
    fn what_rang_before_anybody_slept_is_not_lost() {
        let alarm = Alarm::new().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| alarm.set(Duration::from_nanos(1)));
        });
        alarm.wait(None);
    }
}
