//! What is a tick, and when was it?
//!
//! A tick is one of the processor's time stamp counter, if the kernel itself keeps time with it: then it runs at one
//! rate on all cores. Otherwise it is a nanosecond of `CLOCK_MONOTONIC`, which costs two or three times as much. What
//! ticks are worth is found out when they are looked at, from two points in time at which all clocks were read.

use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// What ticks are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClockSource {
    /// The processor's time stamp counter.
    Tsc,
    /// `CLOCK_MONOTONIC`, in nanoseconds.
    Monotonic,
}

/// Not looked yet, and the two sources.
const UNKNOWN: u8 = 0;
const TSC: u8 = 1;
const MONOTONIC: u8 = 2;

static SOURCE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The present time in ticks.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if SOURCE.load(Ordering::Relaxed) == TSC {
        return crate::tsc::read();
    }
    slow_ticks()
}

/// The same at the first time, and on hosts without a good counter.
#[cold]
fn slow_ticks() -> u64 {
    match source() {
        #[cfg(target_arch = "x86_64")]
        ClockSource::Tsc => crate::tsc::read(),
        _ => monotonic(),
    }
}

/// What ticks of this process are counted by.
#[must_use]
pub fn source() -> ClockSource {
    match SOURCE.load(Ordering::Relaxed) {
        TSC => return ClockSource::Tsc,
        MONOTONIC => return ClockSource::Monotonic,
        _ => {}
    }
    let source = if kernel_uses_tsc() { ClockSource::Tsc } else { ClockSource::Monotonic };
    // Threads that come at the same time find the same.
    SOURCE.store(if source == ClockSource::Tsc { TSC } else { MONOTONIC }, Ordering::Relaxed);
    source
}

/// Whether the kernel trusts the counter: it has checked that it never stops and is the same on all cores, and goes on
/// checking.
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

/// One point in time as all clocks have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// Ticks.
    pub ticks: u64,
    /// Nanoseconds of `CLOCK_MONOTONIC`: the host has been up for about so long.
    pub monotonic: u64,
    /// Nanoseconds of `CLOCK_REALTIME`: since 1970.
    pub realtime: u64,
}

impl ClockReading {
    /// Now. Reads all clocks a few times and keeps the reading that took the shortest time: it is right to within that
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

/// What ticks are worth: two points in time, the later one when the trace was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calibration {
    /// What ticks are counted by.
    pub source: ClockSource,
    /// When recording began.
    pub start: ClockReading,
    /// When the trace was looked at.
    pub end: ClockReading,
}

impl Calibration {
    /// Time between the points at least: an error of 100 ns is 5 millionths of it.
    const LEAST: Duration = Duration::from_millis(20);

    /// Since `start`, until now. Waits if that was less than 20 ms ago.
    #[must_use]
    pub fn since(start: ClockReading) -> Self {
        let mut end = ClockReading::now();
        let elapsed = Duration::from_nanos(end.monotonic.saturating_sub(start.monotonic));
        if let Some(rest) = Self::LEAST.checked_sub(elapsed) {
            std::thread::sleep(rest);
            end = ClockReading::now();
        }
        Self { source: source(), start, end }
    }

    /// Ticks in a second, rounded. 0 if the points do not say.
    #[must_use]
    pub fn ticks_per_second(&self) -> u64 {
        let ticks = u128::from(self.end.ticks.saturating_sub(self.start.ticks));
        let nanos = u128::from(self.end.monotonic.saturating_sub(self.start.monotonic)).max(1);
        u64::try_from((ticks * 1_000_000_000 + nanos / 2) / nanos).unwrap_or(u64::MAX)
    }

    /// Nanoseconds that so many ticks take.
    #[must_use]
    pub fn nanos(&self, ticks: u64) -> u64 {
        let (all_ticks, all_nanos) = self.span();
        u64::try_from(u128::from(ticks) * all_nanos / all_ticks).unwrap_or(u64::MAX)
    }

    /// When that was, in nanoseconds of `CLOCK_MONOTONIC`.
    #[must_use]
    pub fn monotonic(&self, ticks: u64) -> u64 {
        self.at(ticks, self.end.monotonic)
    }

    /// When that was, in nanoseconds since 1970, as the host's clock says now.
    #[must_use]
    pub fn realtime(&self, ticks: u64) -> u64 {
        self.at(ticks, self.end.realtime)
    }

    /// Counted from the end, which is nearer to what is in the rings.
    fn at(&self, ticks: u64, end: u64) -> u64 {
        if ticks <= self.end.ticks {
            end.saturating_sub(self.nanos(self.end.ticks - ticks))
        } else {
            end.saturating_add(self.nanos(ticks - self.end.ticks))
        }
    }

    /// Ticks and nanoseconds between the points; a file may say nonsense.
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
    fn a_calibration_knows_what_other_clocks_said_meanwhile() {
        let start = ClockReading::now();
        let between = ClockReading::now();
        let calibration = Calibration::since(start);
        let said = calibration.monotonic(between.ticks);
        // The kernel's own rate is corrected while it runs, by less than 1 in 1000, over 20 ms; and a thread may lose
        // its core between reading one clock and the next, on a machine on which everybody else works, too.
        assert!(said.abs_diff(between.monotonic) < 10_000_000, "{said} {between:?}");
        let later = calibration.end.ticks + calibration.ticks_per_second();
        let second = calibration.monotonic(later) - calibration.end.monotonic;
        assert!(second.abs_diff(1_000_000_000) < 1_000, "{second}");
        assert_eq!(calibration.realtime(calibration.end.ticks), calibration.end.realtime);
    }

    #[test]
    fn points_that_say_nonsense_do_no_harm() {
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
