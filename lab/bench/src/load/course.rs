//! The course of a run under load: warm-up, measured time, and the disturbance within.

use std::time::Duration;

use crate::loopback::Disturbance;

/// Maximum warm-up. Chosen by us: estimates and caches settle in a tenth of it.
const MAX_WARM: Duration = Duration::from_secs(1);

/// Maximum extension of a run after a disturbance.
const MAX_EXTENSION: Duration = Duration::from_secs(60);

/// Fixed part of the expected recovery time. Source: the goal set for apus, 100 ms plus 1.5 times
/// the time to drain the backlog.
const RECOVERY_BASE: Duration = Duration::from_millis(100);
const RECOVERY_FACTOR: f64 = 1.5;

/// How long a run continues after the bound, to confirm that a recovery at the bound lasts.
const MARGIN: Duration = Duration::from_millis(500);

/// Minimum window of recovery, and the target number of short messages due in one. Chosen by us:
/// the median of 40 is within a tenth of the distribution.
const MIN_WINDOW: Duration = Duration::from_millis(10);
const WINDOW_MESSAGES: f64 = 40.0;

/// The times of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Course {
    /// Time before anything counts.
    pub(super) warm: Duration,
    /// Time that counts.
    pub(super) measure: Duration,
    /// Start of the disturbance, relative to the start of the warm-up.
    pub(super) disturbance: Option<(Duration, Disturbance)>,
}

impl Course {
    /// Returns the course of a run of `seconds` at a share `load` of the capacity of apus.
    pub(super) fn of(seconds: f64, load: f64, disturbance: Option<Disturbance>) -> Self {
        let seconds = Duration::from_secs_f64(seconds);
        let warm = (seconds / 10).min(MAX_WARM);
        let Some(disturbance) = disturbance else {
            return Self { warm, measure: seconds, disturbance: None };
        };
        let half = seconds / 2;
        let needed = bound(disturbance, load).map_or(Duration::ZERO, |bound| bound + MARGIN);
        let after = half.max(needed.min(MAX_EXTENSION));
        Self {
            warm,
            measure: half + disturbance.length() + after,
            disturbance: Some((warm + half, disturbance)),
        }
    }
}

/// Returns the expected upper bound of the recovery time at this load; `None` without spare
/// capacity.
pub(super) fn bound(disturbance: Disturbance, load: f64) -> Option<Duration> {
    let drain = disturbance.drain_time(load)?.as_secs_f64() * RECOVERY_FACTOR;
    RECOVERY_BASE.checked_add(Duration::try_from_secs_f64(drain).ok()?)
}

/// Returns the window length for a load of `rate` requests per second; half of the requests are
/// short.
pub(super) fn window(rate: f64) -> Duration {
    Duration::from_secs_f64(WINDOW_MESSAGES / (rate / 2.0)).max(MIN_WINDOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALL: Disturbance = Disturbance::Stall(Duration::from_millis(200));

    #[test]
    fn a_disturbance_is_in_the_middle() {
        let course = Course::of(8.0, 0.4, Some(STALL));
        let expected = Course {
            warm: Duration::from_millis(800),
            measure: Duration::from_millis(8200),
            disturbance: Some((Duration::from_millis(4800), STALL)),
        };
        assert_eq!(course, expected);
        assert_eq!(Course::of(8.0, 0.4, None).measure, Duration::from_secs(8));
    }

    #[test]
    fn a_run_lasts_until_a_healthy_server_has_recovered() {
        // At 0.8 the bound is 1.3 s.
        let course = Course::of(1.0, 0.8, Some(STALL));
        assert_eq!(course.measure.as_secs_f64().to_string(), "2.5");
        let full = Course::of(1.0, 1.0, Some(STALL));
        assert_eq!(full.measure, Duration::from_millis(1200), "nothing is spare");
        let near = Course::of(1.0, 0.9999, Some(STALL));
        assert_eq!(near.measure, Duration::from_millis(60_700));
    }

    #[test]
    fn windows_hold_enough_messages() {
        assert_eq!(window(16_000.0), MIN_WINDOW);
        assert_eq!(window(1_000.0), Duration::from_millis(80));
    }
}
