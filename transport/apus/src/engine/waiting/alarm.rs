//! A timer that one thread sleeps on and others set, so that a thread is woken later without
//! delaying the caller.
//!
//! Waking a thread costs a system call and, if it shares the caller's core, two context switches
//! before the caller continues: 25 µs of a processor that has just woken itself. Setting a timer
//! costs a fraction of a microsecond.

use crate::refusal::Named;
use apus_process::Descriptor;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A timer of the system that one thread sleeps on and others set.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: Descriptor,
}

impl Alarm {
    /// Returns an alarm that is not set.
    ///
    /// # Errors
    ///
    /// The system grants no descriptor.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags).named("timerfd_create")?;
        Ok(Self { timer: Descriptor::new(timer) })
    }

    /// Sets it to ring after `after`, or as soon as possible if that is zero. Replaces the previous
    /// setting.
    pub(crate) fn set(&self, after: Duration) {
        // Zero would unset it.
        let it_value = timespec(after.max(Duration::from_nanos(1)));
        let it_interval = timespec(Duration::ZERO);
        // Fails only for a descriptor that is not a timer, or an invalid time.
        let _ = timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval, it_value },
        );
    }

    /// Notes that it has rung.
    pub(crate) fn clear(&self) {
        // Empty if another call has set it again in the meantime.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
    }
}

impl AsFd for Alarm {
    /// Returns a descriptor that is readable when the alarm has rung.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.timer.as_fd()
    }
}

const fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: time.as_secs().cast_signed(),
        tv_nsec: time.subsec_nanos().cast_signed() as _,
    }
}

#[cfg(test)]
#[cfg(not(apus_loom))]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::time::Instant;

    fn wait(alarm: &Alarm) {
        poll(&mut [PollFd::new(alarm, PollFlags::IN)], None).unwrap();
        alarm.clear();
    }

    #[test]
    fn a_sleeper_is_woken_by_the_alarm_once() {
        let alarm = Alarm::new().unwrap();
        alarm.set(Duration::ZERO);
        wait(&alarm);
        let began = Instant::now();
        alarm.set(Duration::from_millis(2));
        wait(&alarm);
        assert!(began.elapsed() >= Duration::from_millis(2));
        let now = Some(&Timespec { tv_sec: 0, tv_nsec: 0 });
        assert_eq!(poll(&mut [PollFd::new(&alarm, PollFlags::IN)], now), Ok(0), "it rings once");
    }

    #[test]
    fn a_ring_before_the_sleep_is_not_lost() {
        let alarm = Alarm::new().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| alarm.set(Duration::from_nanos(1)));
        });
        wait(&alarm);
    }
}
