//! What can be asked of the livelock experiment?

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use super::Mode;
use apus_report::result::named;
use apus_testbed::error::{Error, require};

/// What is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Which modes, in this order.
    pub modes: Vec<Mode>,
    /// Whether packets pass a filter.
    pub filter: Filter,
    /// How many packets are offered.
    pub rates: Rates,
    /// Packets of a train; `None` sends without a pause.
    pub train: Option<u64>,
    /// Whether a program watches the network meanwhile.
    pub monitor: bool,
    /// Seconds of load for each rate, 0.01 to 60.
    pub seconds: f64,
    /// How often everything is repeated, 1 to 100.
    pub runs: usize,
    /// Draws the hosts that packets go to.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            modes: Mode::all(),
            filter: Filter::Both,
            rates: Rates::Auto,
            train: None,
            monitor: false,
            seconds: 0.25,
            runs: 5,
            seed: 1,
        }
    }
}

/// Whether packets pass a filter in a process of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// They do not.
    Without,
    /// All do.
    With,
    /// Both are measured.
    Both,
}

impl Filter {
    /// What is to be measured: without, with, or one after the other.
    pub(super) const fn cases(self) -> &'static [bool] {
        match self {
            Self::Without => &[false],
            Self::With => &[true],
            Self::Both => &[false, true],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Without => "without",
            Self::With => "with",
            Self::Both => "both",
        }
    }
}

impl FromStr for Filter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        [Self::Without, Self::With, Self::Both]
            .into_iter()
            .find(|each| each.name() == text)
            .ok_or_else(|| Error::Option {
                option: "filter",
                problem: format!("`{text}` is none of without, with and both"),
            })
    }
}

/// Rates at which packets are offered.
#[derive(Clone, Debug, PartialEq)]
pub enum Rates {
    /// Shares of what the generator can send, up to all of it.
    Auto,
    /// Packets per second, ascending.
    List(Vec<f64>),
}

/// Shares of what the generator can send: closer together where curves bend. Interrupts with a filter have their
/// peak below a twentieth.
pub(super) const SHARES: [f64; 11] = [0.02, 0.035, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8];

/// Packets per second that can be asked for. Ours: ten times what any system can do so far.
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

/// As it is given.
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

impl Options {
    /// Whether this can be measured.
    pub(super) fn check(&self) -> Result<(), Error> {
        require(!self.modes.is_empty(), "modes", "there is none; try interrupt,apus")?;
        let twice = self.modes.iter().enumerate().any(|(n, mode)| self.modes[..n].contains(mode));
        require(!twice, "modes", "one is there twice; try interrupt,apus")?;
        let good = (0.01..=60.0).contains(&self.seconds);
        require(good, "seconds", "from 0.01 to 60; try 0.25")?;
        require((1..=100).contains(&self.runs), "runs", "from 1 to 100; try 5")?;
        let train = self.train.is_none_or(|train| (100..=10_000_000).contains(&train));
        require(train, "train", "from 100 to 10000000 packets; try 10000")
    }

    /// What is asked for, for those who read the result.
    pub(super) fn config(&self) -> Map<String, Value> {
        let modes: Vec<String> = self.modes.iter().map(Mode::to_string).collect();
        named([
            ("modes", json!(modes.join(","))),
            ("filter", json!(self.filter.name())),
            ("rates", json!(self.rates.to_string())),
            ("monitor", json!(self.monitor)),
            ("train", self.train.map_or_else(|| json!("none"), |train| json!(train))),
            ("seconds", json!(self.seconds)),
            ("runs", json!(self.runs)),
            ("seed", json!(self.seed)),
        ])
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
        let refused = |change: fn(&mut Options)| option_problem(Options::check, change);
        assert_eq!(refused(|_| ()), "");
        assert!(refused(|options| options.modes.clear()).starts_with("modes: "));
        assert!(refused(|options| options.modes.push(Mode::Apus)).starts_with("modes: "));
        assert!(refused(|options| options.seconds = f64::NAN).starts_with("seconds: "));
        assert!(refused(|options| options.runs = 0).starts_with("runs: "));
        assert!(refused(|options| options.train = Some(1)).starts_with("train: "));
    }
}
