//! Options of the livelock lab.

use std::fmt;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use serde::{Serialize, Serializer};
use serde_json::json;

use super::mode::Mode;
use apus_report::experiment::{defaults, name};
use apus_testbed::error::{Error, require};

/// The output of a router while its input grows
///
/// Receive livelock, as Mogul and Ramakrishnan described it in 1996: beyond some rate, a system
/// that receives packets at the highest priority spends all of its time on packets that it then
/// drops. A program forwards IPv4 between two network namespaces on one core; a generator on
/// another core offers minimum-size UDP packets at each rate; the kernel counts the output at the
/// far interface. The modes differ in when the router receives: `interrupt` (input preempts
/// everything else), `poll-no-quota`, `poll-quota=PACKETS` (`poll-quota` alone: 10),
/// `poll-feedback` (and stops while the filter's queue is long), `share=PERCENT` (and uses at most
/// that share of the core), and `apus` (the rules of the engine of apus, without privileges). The
/// result has the highest rate that each mode forwards without losses, and sentences that describe
/// the curves. Needs two cores, and root, or user namespaces and real-time priority.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = "Examples:
  apus-lab lab livelock
  apus-lab lab livelock --modes interrupt,poll-quota=5,apus --filter without --html livelock.html
  apus-lab lab livelock --modes share=25,share=50 --rates 100,300,900 --seconds 1
  apus-lab lab livelock --train 10000 --runs 3 --json")]
pub struct LivelockOptions {
    /// Modes of the router, with commas between them: interrupt, poll-no-quota, poll-quota=PACKETS,
    /// poll-feedback, share=PERCENT, apus
    #[arg(long, value_name = "MODES", value_delimiter = ',', default_value = modes(&Mode::all()))]
    pub modes: Vec<Mode>,
    /// Whether packets pass a filter in a separate process
    #[arg(long, value_name = "WHICH", default_value = "both")]
    pub filter: Filter,
    /// Thousands of packets offered per second, ascending, with commas between them; `auto` takes
    /// twelve rates up to what the generator can send
    #[arg(long, value_name = "RATES", default_value = "auto", allow_negative_numbers = true)]
    pub rates: Rates,
    /// Send trains of `PACKETS` packets, 100 to 10000000, with pauses between them, instead of a
    /// steady stream
    #[arg(long, value_name = "PACKETS", allow_negative_numbers = true)]
    pub train: Option<u64>,
    /// Also run a program on the router's core that watches the network, and report how many
    /// packets it saw
    #[arg(long)]
    pub monitor: bool,
    /// Seconds of load for each rate of each mode in each run: 0.01 to 60
    #[arg(long, value_name = "SECONDS", default_value_t = 0.25, allow_negative_numbers = true)]
    pub seconds: f64,
    /// Number of runs, 1 to 100; results are the median, the least and the greatest over the runs
    #[arg(long, value_name = "RUNS", default_value_t = 5, allow_negative_numbers = true)]
    pub runs: usize,
    /// Seed of the destination hosts
    #[arg(long, value_name = "NUMBER", default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
}

impl Default for LivelockOptions {
    fn default() -> Self {
        defaults()
    }
}

/// Returns modes as on a command line.
fn modes(modes: &[Mode]) -> String {
    modes.iter().map(Mode::to_string).collect::<Vec<_>>().join(",")
}

/// The options as a result shows them.
impl Serialize for LivelockOptions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { filter, rates, monitor, train, seconds, runs, seed, .. } = self;
        let train = train.map_or_else(|| json!("none"), |train| json!(train));
        let (modes, filter, rates) = (modes(&self.modes), name(filter), rates.to_string());
        json!({
            "modes": modes, "filter": filter, "rates": rates, "monitor": monitor, "train": train,
            "seconds": seconds, "runs": runs, "seed": seed,
        })
        .serialize(serializer)
    }
}

/// Whether packets pass a filter in a separate process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Filter {
    /// No packet passes a filter
    Without,
    /// Every packet passes a filter
    With,
    /// Both in turn
    Both,
}

impl Filter {
    /// Returns the cases to measure: `false` without the filter, `true` with it.
    pub(super) const fn cases(self) -> &'static [bool] {
        match self {
            Self::Without => &[false],
            Self::With => &[true],
            Self::Both => &[false, true],
        }
    }
}

/// Rates at which packets are offered.
#[derive(Clone, Debug, PartialEq)]
pub enum Rates {
    /// Shares of the generator's maximum, up to all of it.
    Auto,
    /// Packets per second, ascending.
    List(Vec<f64>),
}

/// Shares of the generator's maximum, closer together where curves bend. Interrupts with a filter
/// peak below a twentieth.
pub(super) const SHARES: [f64; 11] = [0.02, 0.035, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8];

/// Valid rates in thousands of packets per second. Chosen by us: ten times the rate of any system
/// so far.
const RATES: std::ops::RangeInclusive<f64> = 0.1..=100_000.0;

impl FromStr for Rates {
    type Err = Error;

    /// `auto`, or thousands of packets per second: `50,100,200`.
    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        let rates: Option<Vec<f64>> = text.split(',').map(|rate| rate.parse().ok()).collect();
        let good = |rates: &Vec<f64>| {
            rates.iter().all(|rate| RATES.contains(rate)) && rates.is_sorted_by(|a, b| a < b)
        };
        let rates = rates.filter(good).ok_or_else(|| Error::Option {
            option: "rates",
            problem: format!(
                "`{text}` is neither auto nor a list of ascending rates from 0.1 to 100000 (thousands of \
                 packets per second), like 50,100,200"
            ),
        })?;
        Ok(Self::List(rates.into_iter().map(|rate| rate * 1e3).collect()))
    }
}

/// The text that is parsed.
impl fmt::Display for Rates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.pad("auto"),
            Self::List(rates) => {
                let rates: Vec<String> =
                    rates.iter().map(|rate| (rate / 1e3).to_string()).collect();
                formatter.pad(&rates.join(","))
            }
        }
    }
}

impl LivelockOptions {
    /// Checks that each value is in its range.
    pub(super) fn check(&self) -> Result<(), Error> {
        require(!self.modes.is_empty(), "modes", "none is given; try interrupt,apus")?;
        let twice = self.modes.iter().enumerate().any(|(n, mode)| self.modes[..n].contains(mode));
        require(!twice, "modes", "one is given twice; try interrupt,apus")?;
        let good = (0.01..=60.0).contains(&self.seconds);
        require(good, "seconds", "from 0.01 to 60; try 0.25")?;
        require((1..=100).contains(&self.runs), "runs", "from 1 to 100; try 5")?;
        let train = self.train.is_none_or(|train| (100..=10_000_000).contains(&train));
        require(train, "train", "from 100 to 10000000 packets; try 10000")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_testbed::error::option_problem;

    #[test]
    fn rates_are_thousands_and_ascend() {
        assert_eq!("auto".parse::<Rates>().unwrap(), Rates::Auto);
        assert_eq!("50,100.5".parse::<Rates>().unwrap(), Rates::List(vec![50e3, 100.5e3]));
        for text in ["auto", "50,100.5"] {
            assert_eq!(text.parse::<Rates>().unwrap().to_string(), text);
        }
        for wrong in ["", "x", "0", "-1", "nan", "inf", "2,1", "1,1", "1,", "1000000"] {
            let said = wrong.parse::<Rates>().unwrap_err().to_string();
            assert!(said.contains("like 50,100,200"), "{wrong}: {said}");
        }
    }

    #[test]
    fn what_cannot_be_measured_is_refused_by_name() {
        let refused =
            |change: fn(&mut LivelockOptions)| option_problem(LivelockOptions::check, change);
        assert_eq!(refused(|_| ()), "");
        assert!(refused(|options| options.modes.clear()).starts_with("modes: "));
        assert!(refused(|options| options.modes.push(Mode::Apus)).starts_with("modes: "));
        assert!(refused(|options| options.seconds = f64::NAN).starts_with("seconds: "));
        assert!(refused(|options| options.runs = 0).starts_with("runs: "));
        assert!(refused(|options| options.train = Some(1)).starts_with("train: "));
    }
}
