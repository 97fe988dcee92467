//! What can be asked of the small-writes experiment?

use apus::PollMode;
use serde_json::{Map, Value, json};

use super::Variant;
use apus_bench::contest::{check_only, check_repetition};
use apus_report::result::named;
use apus_testbed::error::{Error, require};

/// What is to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Exchanges of each variant in each run that count, 10 to 10,000,000; fewer if they take longer than `seconds`.
    pub exchanges: u64,
    /// Seconds for each variant in each run, 0.01 to 3600. Times are told for a thousand exchanges, however many it were.
    pub seconds: f64,
    /// How often everything is repeated, 1 to 1000.
    pub runs: usize,
    /// Draws the bytes of commands, and the order of variants.
    pub seed: u64,
    /// How both sides wait.
    pub poll: PollMode,
    /// Only these variants; all if it is empty.
    pub only: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            exchanges: 20_000,
            seconds: 1.5,
            runs: 5,
            seed: 1,
            poll: PollMode::Spin,
            only: Vec::new(),
        }
    }
}

impl Options {
    /// Whether this can be measured.
    pub(super) fn check(&self) -> Result<(), Error> {
        let good = (10..=10_000_000).contains(&self.exchanges);
        require(good, "exchanges", "from 10 to 10000000; try 1000")?;
        check_repetition(self.seconds, self.runs)?;
        check_only(&self.only, &Variant::ALL.map(|variant| variant.name))
    }

    /// Those that are measured.
    pub(super) fn variants(&self) -> Vec<&'static Variant> {
        let asked = |name| self.only.is_empty() || self.only.iter().any(|only| only == name);
        let names = Variant::ALL.map(|variant| variant.name).into_iter();
        names.filter(|name| asked(*name)).filter_map(Variant::named).collect()
    }

    /// What is asked for, for those who read the result.
    pub(super) fn config(&self) -> Map<String, Value> {
        named([
            ("exchanges", json!(self.exchanges)),
            ("bytes", json!(super::message::LENGTH)),
            ("seconds", json!(self.seconds)),
            ("runs", json!(self.runs)),
            ("seed", json!(self.seed)),
            ("poll", json!(self.poll)),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_testbed::error::option_problem;

    #[test]
    fn what_cannot_be_measured_is_refused_by_name() {
        let refused = |change: fn(&mut Options)| option_problem(Options::check, change);
        assert_eq!(refused(|_| ()), "");
        assert!(refused(|options| options.exchanges = 9).starts_with("exchanges: "));
        assert!(refused(|options| options.seconds = f64::NAN).starts_with("seconds: "));
        assert!(refused(|options| options.runs = 0).starts_with("runs: "));
        let only = refused(|options| options.only = vec!["tcp slowly".to_owned()]);
        assert!(
            only.contains("`tcp slowly` takes no part") && only.contains("tcp gather"),
            "{only}"
        );
    }

    #[test]
    fn those_who_are_asked_for_keep_their_order() {
        let only = ["apus whole", "tcp split"].map(str::to_owned).to_vec();
        let names = |options: Options| {
            options.variants().iter().map(|variant| variant.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Options { only, ..Options::default() }), ["tcp split", "apus whole"]);
        assert_eq!(names(Options::default()).len(), Variant::ALL.len());
    }
}
