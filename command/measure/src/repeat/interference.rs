//! Interference: processor use during a measurement that does not belong to it.

use std::fmt;

use crate::machine::{BackgroundLoad, ForeignTime};

/// Processor time lost to a measurement, as shares of the machine's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interference(ForeignTime);

/// Share of the machine's time that disturbs a measurement. Chosen by us: half of one core in four,
/// which is visible in every tail.
const DISTURBED: f64 = 0.12;

/// Minimum significant processor time, in clock ticks of all processors together. The kernel counts
/// a program's time in whole ticks of 10 ms, and may charge several of them wrongly.
const LEAST_TICKS: u64 = 40;

impl Interference {
    /// Returns the interference since `watch` started; `None` if the measurement was undisturbed,
    /// or if the system does not report load. To be called when all child processes have ended.
    pub(super) fn since(watch: &BackgroundLoad) -> Option<Self> {
        let time = watch.foreign_time()?;
        let judged = time.ticks >= LEAST_TICKS && time.others + time.stolen > DISTURBED;
        judged.then_some(Self(time))
    }

    /// Returns the interference of other programs with this share.
    #[cfg(test)]
    pub(super) const fn of_others(share: f64) -> Self {
        Self(ForeignTime { ticks: LEAST_TICKS, others: share, stolen: 0.0 })
    }

    /// Returns the share of the machine's time lost to the measurement.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.0.others + self.0.stolen
    }
}

impl fmt::Display for Interference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ForeignTime { others, stolen, .. } = self.0;
        if stolen > others {
            write!(formatter, "the hypervisor withheld {:.0} % of the processors", 100.0 * stolen)
        } else {
            write!(formatter, "other programs used {:.0} % of the processors", 100.0 * others)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_part_is_named() {
        let words = |others, stolen| {
            let found = Interference(ForeignTime { ticks: 1_000, others, stolen });
            (found.to_string(), (found.share() * 100.0).round())
        };
        let programs = "other programs used 30 % of the processors".to_owned();
        assert_eq!(words(0.3, 0.1), (programs, 40.0));
        let host = "the hypervisor withheld 25 % of the processors".to_owned();
        assert_eq!(words(0.05, 0.25), (host, 30.0));
    }
}
