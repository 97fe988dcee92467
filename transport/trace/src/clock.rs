//! Clock of the trace.
//!
//! A tick is one tick of the processor's time stamp counter if the kernel itself uses it as its
//! clock: then it runs at one rate on all cores. Otherwise a tick is a nanosecond of
//! `CLOCK_MONOTONIC`, which costs two or three times as much. The length of a tick is computed when
//! the trace is read, from two readings of all clocks.

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Source of ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The processor's time stamp counter.
    Tsc,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    Monotonic,
}

/// Not determined yet, and the two sources.
const UNKNOWN: u8 = 0;
const TSC: u8 = 1;
const MONOTONIC: u8 = 2;

static SOURCE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// Returns the current time in ticks.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if SOURCE.load(Ordering::Relaxed) == TSC {
        return crate::tsc::read();
    }
    slow_ticks()
}

/// Returns the current time in ticks, on the first call and on hosts without a good counter.
#[cold]
fn slow_ticks() -> u64 {
    match source() {
        #[cfg(target_arch = "x86_64")]
        ClockSource::Tsc => crate::tsc::read(),
        _ => monotonic(),
    }
}

/// Returns the source of ticks in this process.
#[must_use]
pub fn source() -> ClockSource {
    match SOURCE.load(Ordering::Relaxed) {
        TSC => return ClockSource::Tsc,
        MONOTONIC => return ClockSource::Monotonic,
        _ => {}
    }
    let source = if kernel_uses_tsc() { ClockSource::Tsc } else { ClockSource::Monotonic };
    // Threads that get here at the same time store the same value.
    SOURCE.store(if source == ClockSource::Tsc { TSC } else { MONOTONIC }, Ordering::Relaxed);
    source
}

/// Returns whether the kernel trusts the counter: it has checked that the counter never stops and
/// is equal on all cores, and continues to check it.
fn kernel_uses_tsc() -> bool {
    const FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    cfg!(target_arch = "x86_64")
        && std::fs::read_to_string(FILE).is_ok_and(|name| name.trim() == "tsc")
}

fn nanos(time: Timespec) -> u64 {
    // Neither clock is negative on a host whose date is after 1970.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

fn monotonic() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

/// One point in time on all clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Ticks.
    pub ticks: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`, about the time since the host was started.
    pub monotonic: u64,
    /// Nanoseconds of `CLOCK_REALTIME`, since 1970.
    pub realtime: u64,
}

/// Returns the reading of the clocks at the start of the recording, which the first call makes.
pub(crate) fn recording_start() -> ClockReading {
    static START: OnceLock<ClockReading> = OnceLock::new();
    *START.get_or_init(ClockReading::now)
}

impl ClockReading {
    /// Reads all clocks. Repeats the reading and returns the fastest one, which bounds its error
    /// (about 50 ns).
    #[must_use]
    pub fn now() -> Self {
        let reading = || {
            let before = ticks();
            let monotonic = monotonic();
            let realtime = nanos(clock_gettime(ClockId::Realtime));
            let after = ticks();
            let took = after.saturating_sub(before);
            (took, Self { ticks: before + took / 2, monotonic, realtime })
        };
        let first = reading();
        let best = (1..16).map(|_| reading()).fold(first, |a, b| if b.0 < a.0 { b } else { a });
        best.1
    }
}

/// Length of a tick, from two points in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// Source of ticks.
    pub source: ClockSource,
    /// Start of the recording.
    pub start: ClockReading,
    /// Reading of the clocks when the trace was read.
    pub end: ClockReading,
}

impl Calibration {
    /// Minimum time between the points: an error of 100 ns is 5 millionths of it.
    const MINIMUM: Duration = Duration::from_millis(20);

    /// Returns the calibration from `start` until now. Waits if less than 20 ms have passed.
    #[must_use]
    pub fn since(start: ClockReading) -> Self {
        let mut end = ClockReading::now();
        let elapsed = Duration::from_nanos(end.monotonic.saturating_sub(start.monotonic));
        if let Some(rest) = Self::MINIMUM.checked_sub(elapsed) {
            std::thread::sleep(rest);
            end = ClockReading::now();
        }
        Self { source: source(), start, end }
    }

    /// Returns the ticks per second, rounded; 0 if the points are equal.
    #[must_use]
    pub fn ticks_per_second(&self) -> u64 {
        let ticks = u128::from(self.end.ticks.saturating_sub(self.start.ticks));
        let nanos = u128::from(self.end.monotonic.saturating_sub(self.start.monotonic)).max(1);
        u64::try_from((ticks * 1_000_000_000 + nanos / 2) / nanos).unwrap_or(u64::MAX)
    }

    /// Returns the nanoseconds that `ticks` ticks take.
    #[must_use]
    pub fn nanos(&self, ticks: u64) -> u64 {
        let (all_ticks, all_nanos) = self.span();
        u64::try_from(u128::from(ticks) * all_nanos / all_ticks).unwrap_or(u64::MAX)
    }

    /// Returns the time of `ticks` in nanoseconds of `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn monotonic(&self, ticks: u64) -> u64 {
        self.at(ticks, self.end.monotonic)
    }

    /// Returns the time of `ticks` in nanoseconds since 1970, according to the host's clock at
    /// `end`.
    #[must_use]
    pub fn realtime(&self, ticks: u64) -> u64 {
        self.at(ticks, self.end.realtime)
    }

    /// Converts relative to `end`, which is closer to the records in the rings than `start`.
    fn at(&self, ticks: u64, end: u64) -> u64 {
        if ticks <= self.end.ticks {
            end.saturating_sub(self.nanos(self.end.ticks - ticks))
        } else {
            end.saturating_add(self.nanos(ticks - self.end.ticks))
        }
    }

    /// Returns ticks and nanoseconds between the points, for any contents of a file.
    fn span(&self) -> (u128, u128) {
        let ticks = self.end.ticks.saturating_sub(self.start.ticks);
        let nanos = self.end.monotonic.saturating_sub(self.start.monotonic);
        (u128::from(ticks.max(1)), u128::from(nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_never_go_back_in_a_thread() {
        let all: Vec<u64> = (0..10_000).map(|_| ticks()).collect();
        assert!(all.is_sorted());
    }

    #[test]
    fn the_counter_is_only_used_if_the_kernel_uses_it() {
        assert_eq!(source() == ClockSource::Tsc, kernel_uses_tsc());
        assert_eq!(source(), source());
    }

    #[test]
    fn a_calibration_agrees_with_the_other_clocks() {
        let start = ClockReading::now();
        let between = ClockReading::now();
        let calibration = Calibration::since(start);
        let computed = calibration.monotonic(between.ticks);
        // The kernel's own rate is corrected while it runs, by less than 1 in 1000, over 20 ms. In
        // addition, a thread may lose its core between two clock readings on a loaded machine.
        assert!(computed.abs_diff(between.monotonic) < 10_000_000, "{computed} {between:?}");
        let later = calibration.end.ticks + calibration.ticks_per_second();
        let second = calibration.monotonic(later) - calibration.end.monotonic;
        assert!(second.abs_diff(1_000_000_000) < 1_000, "{second}");
        assert_eq!(calibration.realtime(calibration.end.ticks), calibration.end.realtime);
    }

    #[test]
    fn invalid_points_do_no_harm() {
        let point = |ticks, monotonic| ClockReading { ticks, monotonic, realtime: 0 };
        let calibration =
            Calibration { source: ClockSource::Tsc, start: point(9, u64::MAX), end: point(9, 0) };
        assert_eq!(calibration.nanos(u64::MAX), 0);
        assert_eq!(calibration.monotonic(0), 0);
        let steep = Calibration { start: point(0, 0), end: point(1, u64::MAX), ..calibration };
        assert_eq!(steep.nanos(u64::MAX), u64::MAX);
        assert_eq!(steep.realtime(u64::MAX), u64::MAX);
    }
}
