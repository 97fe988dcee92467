//! Disturbances of a load: the server stalls, or requests arrive in a burst.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A disturbance during a load; it occurs once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Disturbance {
    /// The server's process is stopped for this time.
    Stall(Duration),
    /// Requests arrive faster for a while.
    Burst(Burst),
}

/// A burst: the arrival rate is multiplied for a while.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Burst {
    /// Factor of the rate, 1 or more.
    pub factor: f64,
    /// Length of the burst.
    pub length: Duration,
}

impl Disturbance {
    /// Returns how long it lasts.
    pub(crate) const fn length(self) -> Duration {
        match self {
            Self::Stall(length) | Self::Burst(Burst { length, .. }) => length,
        }
    }

    /// Returns the time that the spare capacity needs to drain the backlog at the end of the
    /// disturbance, at the share `load` of the capacity: `S·L/(1-L)` after a stall of S,
    /// `(kL-1)·T/(1-L)` after a burst of k for T. `None` without spare capacity.
    pub(crate) fn drain_time(self, load: f64) -> Option<Duration> {
        let queued = match self {
            Self::Stall(stall) => stall.as_secs_f64() * load,
            Self::Burst(Burst { factor, length }) => {
                (factor * load - 1.0).max(0.0) * length.as_secs_f64()
            }
        };
        let seconds = queued / (1.0 - load);
        (load < 1.0).then(|| Duration::try_from_secs_f64(seconds).ok()).flatten()
    }
}

impl Burst {
    /// Returns the due time of a request that would be due at `nominal` without the burst; the
    /// burst starts at `begin`.
    ///
    /// Arrivals stay Poisson and depend on the seed alone: time passes `factor` times as fast
    /// during the burst.
    pub(crate) fn due(&self, begin: Duration, nominal: Duration) -> Duration {
        let Some(late) = nominal.checked_sub(begin) else { return nominal };
        let inside = late.div_f64(self.factor);
        if inside < self.length {
            begin + inside
        } else {
            nominal + self.length - self.length.mul_f64(self.factor)
        }
    }
}

impl FromStr for Burst {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let problem = || "a burst is a factor and a time; try 10x1s".to_owned();
        let (factor, length) = text.split_once('x').ok_or_else(problem)?;
        let factor: f64 = factor.parse().map_err(|_| problem())?;
        Ok(Self { factor, length: parse_period(length)? })
    }
}

impl fmt::Display for Burst {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}x{:?}", self.factor, self.length)
    }
}

/// Parses a time with its unit, like `200ms` or `1.5s`.
///
/// # Errors
///
/// Describes the format of a time.
pub(crate) fn parse_period(text: &str) -> Result<Duration, String> {
    let problem = || "a time is a number with `ms` or `s`; try 200ms".to_owned();
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1e-3),
        (None, Some(number)) => (number, 1.0),
        (None, None) => return Err(problem()),
    };
    let number: f64 = number.parse().map_err(|_| problem())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| problem())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn times_have_a_unit() {
        assert_eq!(parse_period("200ms"), Ok(ms(200)));
        assert_eq!(parse_period("1.5s"), Ok(ms(1500)));
        for wrong in ["200", "ms", "-1s", "1m", "infs", "NaNs", ""] {
            assert!(parse_period(wrong).unwrap_err().contains("try 200ms"), "{wrong}");
        }
    }

    #[test]
    fn bursts_are_a_factor_and_a_time() {
        let burst: Burst = "10x1s".parse().unwrap();
        assert_eq!(burst, Burst { factor: 10.0, length: ms(1000) });
        assert_eq!(burst.to_string(), "10x1s");
        for wrong in ["10", "x1s", "10x", "10x1"] {
            assert!(wrong.parse::<Burst>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_burst_of_ten_for_a_second_brings_the_requests_of_ten_seconds() {
        let burst = Burst { factor: 10.0, length: ms(1000) };
        let due = |nominal| burst.due(ms(500), ms(nominal));
        assert_eq!([due(0), due(499), due(500)], [ms(0), ms(499), ms(500)]);
        assert_eq!([due(600), due(5500), due(10_490)], [ms(510), ms(1000), ms(1499)]);
        // Behind it requests are as far apart as before.
        assert_eq!([due(10_500), due(10_600)], [ms(1500), ms(1600)]);
    }

    #[test]
    fn the_spare_capacity_drains_what_has_queued() {
        let seconds = |disturbance: Disturbance, load| {
            disturbance.drain_time(load).map(|time| (time.as_secs_f64() * 1e3).round() / 1e3)
        };
        let stall = Disturbance::Stall(ms(200));
        assert_eq!(
            [0.4, 0.8, 1.0].map(|load| seconds(stall, load)),
            [Some(0.133), Some(0.8), None]
        );
        let burst = Disturbance::Burst(Burst { factor: 10.0, length: ms(1000) });
        let loads = [0.05, 0.4, 0.8, 1.2];
        assert_eq!(
            loads.map(|load| seconds(burst, load)),
            [Some(0.0), Some(5.0), Some(35.0), None]
        );
    }
}
