//! Options of the load experiment.

use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::loopback::{Burst, Disturbance, parse_period};
use crate::options::{Repetition, Sizes, check_load, check_rate};
use apus_report::experiment::defaults;
use apus_testbed::error::{Error, require};

/// A workload with the processors as the bottleneck: capacity, tails, recovery
///
/// A server and a client in separate processes exchange messages of a published workload over
/// loopback, without shared memory: first one by one, then as fast as they can with `--outstanding`
/// requests, then at a share of the capacity of apus, whether or not earlier requests are done. TCP
/// carries the same requests at the same rate. Shown are capacity, the share of the requests that
/// was completed, the slowdown of short messages, and for apus how much was sent twice and how much
/// of that needlessly. With `--hold` the outstanding requests are kept for a while, and the worst
/// second is compared with the median. With `--stall` or `--burst` each run is disturbed once, in
/// its middle, and the time is measured until the median of short messages is back to 1.5 times
/// that of before. Such a run lasts longer, by up to a minute, if the spare capacity needs that to
/// drain what has queued.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(
    mut_arg("seconds", |argument| argument.default_value("3")),
    after_help = "Examples:
  apus-lab bench load
  apus-lab bench load --load 0.4 --stall 200ms --only apus,tcp
  apus-lab bench load --burst 10x1s --load 0.4 --runs 3 --json
  apus-lab bench load --hold 60 --runs 1 --html hold.html"
)]
pub struct LoadOptions {
    /// Sizes of the messages.
    #[command(flatten)]
    pub sizes: Sizes,
    /// Load as a share of the capacity of apus: 0.01 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.8, allow_negative_numbers = true)]
    pub load: f64,
    /// Requests per second, instead of a load
    #[arg(long, value_name = "REQUESTS", allow_negative_numbers = true, conflicts_with = "load")]
    pub rate: Option<f64>,
    /// Requests outstanding while capacity is measured, and connections of `tcp-per-request`: 1 to 10000.
    /// Under load, a request that finds no free connection waits, and its latency includes the wait
    #[arg(long, value_name = "REQUESTS", default_value_t = 200, allow_negative_numbers = true)]
    pub outstanding: u32,
    /// Also keep the requests outstanding for this time, in whole seconds: 2 to 3600
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub hold: Option<u32>,
    /// Stop the server once in each run for this time, like `200ms`: 1ms to 10s
    #[arg(long, value_name = "TIME", value_parser = parse_period, conflicts_with = "burst")]
    pub stall: Option<Duration>,
    /// Multiply the arrival rate once in each run: a factor of 1 to 100 and a time of 1ms to 10s,
    /// like `10x1s`
    #[arg(long, value_name = "FACTORxTIME")]
    pub burst: Option<Burst>,
    /// Path of the messages
    #[arg(long, value_enum, default_value_t)]
    pub path: Path,
    /// Contenders that take part, with commas between them: `apus`, `tcp` (one connection),
    /// `tcp-per-request`; all by default. Without apus the load is a share of the first one's
    /// capacity
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Length and seed of the load. The way to wait is the servers': the load generator never
    /// waits, so that no request begins late.
    #[command(flatten)]
    pub repetition: Repetition,
}

/// The path of the messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Path {
    /// UDP or TCP over the loopback interface of one host, without shared memory
    #[default]
    Loopback,
}

impl Default for LoadOptions {
    fn default() -> Self {
        defaults()
    }
}

impl LoadOptions {
    /// Checks that each value is in its range, and that the workload exists.
    ///
    /// # Errors
    ///
    /// Names the first option that is out of range, and a valid value.
    pub fn check(&self) -> Result<(), Error> {
        self.sizes.check()?;
        check_load(self.load)?;
        check_rate(self.rate)?;
        let outstanding = (1..=10_000).contains(&self.outstanding);
        require(outstanding, "outstanding", "1 to 10000 requests are outstanding; try 200")?;
        let hold = self.hold.is_none_or(|seconds| (2..=3600).contains(&seconds));
        require(hold, "hold", "requests are kept outstanding for 2 to 3600 seconds; try 60")?;
        let lasts = |time: Duration| (MIN_DISTURBANCE..=MAX_DISTURBANCE).contains(&time);
        let stall = self.stall.is_none_or(lasts);
        require(stall, "stall", "the server stops for 1ms to 10s; try 200ms")?;
        let burst = |burst: Burst| (1.0..=100.0).contains(&burst.factor) && lasts(burst.length);
        let problem = "the rate is multiplied by 1 to 100 for 1ms to 10s; try 10x1s";
        require(self.burst.is_none_or(burst), "burst", problem)?;
        self.repetition.check()
    }

    /// Returns the disturbance of each run, if any.
    pub(super) fn disturbance(&self) -> Option<Disturbance> {
        self.stall.map(Disturbance::Stall).or_else(|| self.burst.map(Disturbance::Burst))
    }
}

/// Range of the length of a disturbance.
const MIN_DISTURBANCE: Duration = Duration::from_millis(1);
const MAX_DISTURBANCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_in_range() {
        LoadOptions::default().check().unwrap();
    }

    #[test]
    fn what_is_out_of_range_is_named_with_something_that_is_not() {
        let good = LoadOptions::default;
        let burst = |text: &str| LoadOptions { burst: Some(text.parse().unwrap()), ..good() };
        let wrong = [
            LoadOptions { sizes: Sizes { truncate: 0, ..good().sizes }, ..good() },
            LoadOptions { load: 1.5, ..good() },
            LoadOptions { rate: Some(f64::NAN), ..good() },
            LoadOptions { outstanding: 0, ..good() },
            LoadOptions { hold: Some(1), ..good() },
            LoadOptions { stall: Some(Duration::from_secs(11)), ..good() },
            burst("0.5x1s"),
            burst("10x0s"),
            LoadOptions { repetition: Repetition { seconds: 0.0, ..good().repetition }, ..good() },
        ];
        let messages = wrong.map(|options| options.check().unwrap_err().to_string());
        insta::assert_snapshot!(messages.join("\n"), @r"
        truncate: messages end at 1 to 64000000 bytes; try 1000000
        load: a load is 0.01 to 1 of what is possible; try 0.8
        rate: 1 to 100000000 requests are due each second; try 10000
        outstanding: 1 to 10000 requests are outstanding; try 200
        hold: requests are kept outstanding for 2 to 3600 seconds; try 60
        stall: the server stops for 1ms to 10s; try 200ms
        burst: the rate is multiplied by 1 to 100 for 1ms to 10s; try 10x1s
        burst: the rate is multiplied by 1 to 100 for 1ms to 10s; try 10x1s
        seconds: a contender is measured for 0.01 to 3600 seconds; try 1
        ");
    }
}
