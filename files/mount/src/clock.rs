//! Clocks: the current time in the form that the cores use.

use std::time::Duration;

use apus_fs_core::client::Clock;
use apus_fs_core::wire::Time;
use rustix::time::{ClockId, clock_gettime};

/// Returns the time since the machine was started, suspensions included, as the cores require.
pub fn boot_time() -> Duration {
    let time = clock_gettime(ClockId::Boottime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

/// Returns the time since the machine was started, and the time of day.
pub(crate) fn clock() -> Clock {
    let wall = clock_gettime(ClockId::Realtime);
    Clock {
        now: boot_time(),
        wall: Time { seconds: wall.tv_sec, nanoseconds: wall.tv_nsec as u32 },
    }
}
