//! Options of the small-writes lab.

use clap::Args;
use serde::Serialize;

use super::message::LENGTH;
use super::variant::Variant;
use apus_bench::options::{Repetition, check_only};
use apus_report::experiment::defaults;
use apus_testbed::error::{Error, require};

/// The cost of writing a short message in two pieces
///
/// A command of 64 bytes and its echo, one at a time, over TCP on the loopback interface: `tcp
/// whole` writes it in one send, `tcp split` as 4 bytes and 60, like programs that send a length
/// first. In `receive split` both sides read 4 bytes and then 60, in `both split` they also write
/// it so. Split commands take thousands of times as long, since Nagle's algorithm in the client and
/// the delayed ACK in the server wait for each other; in 2008 the cause took weeks to find. The
/// cures are measured as well: `+nodelay` (TCP_NODELAY), `+more` (MSG_MORE), `+cork` (TCP_CORK),
/// `+quickack` (TCP_QUICKACK at the server), and `gather` (sendmsg with two slices); and `apus`
/// over UDP with the message passed whole, as two slices (`apus split`), and read in pieces.
///
/// Times are measured first. Then each variant runs again in a separate network namespace where its
/// packets are captured: the number of segments, and which side waited for an ACK, and for how
/// long. That needs root, or user namespaces, and iproute2; without them the result says so, and
/// has the counters of the kernel instead.
#[derive(Clone, Debug, PartialEq, Args, Serialize)]
#[command(
    mut_arg("seconds", |argument| argument.default_value("1.5")),
    after_help = "Examples:
  apus-lab lab small-writes
  apus-lab lab small-writes --html small-writes.html
  apus-lab lab small-writes --only 'tcp whole,tcp split,apus whole,apus split' --poll block --json"
)]
pub struct SmallWritesOptions {
    /// Exchanges of each variant in each run, 10 to 10000000; fewer if they take longer than
    /// --seconds. Times are given per thousand
    #[arg(long, value_name = "EXCHANGES", default_value_t = 20_000, allow_negative_numbers = true)]
    pub exchanges: u64,
    /// Bytes of a command.
    #[arg(skip = LENGTH)]
    pub(super) bytes: usize,
    /// Length, number and seed of the runs, and the poll mode of both sides.
    #[command(flatten)]
    #[serde(flatten)]
    pub repetition: Repetition,
    /// Only these variants, by the names of their rows, with commas between them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    #[serde(skip)]
    pub only: Vec<String>,
}

impl Default for SmallWritesOptions {
    fn default() -> Self {
        defaults()
    }
}

impl SmallWritesOptions {
    /// Checks that each value is in its range.
    pub(super) fn check(&self) -> Result<(), Error> {
        let good = (10..=10_000_000).contains(&self.exchanges);
        require(good, "exchanges", "from 10 to 10000000; try 1000")?;
        self.repetition.check()?;
        check_only(&self.only, &Variant::ALL.map(|variant| variant.name))
    }

    /// Returns the selected variants.
    pub(super) fn variants(&self) -> Vec<&'static Variant> {
        let selected = |name| self.only.is_empty() || self.only.iter().any(|only| only == name);
        let names = Variant::ALL.map(|variant| variant.name).into_iter();
        names.filter(|name| selected(*name)).filter_map(Variant::named).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apus_testbed::error::option_problem;

    #[test]
    fn what_cannot_be_measured_is_refused_by_name() {
        let refused =
            |change: fn(&mut SmallWritesOptions)| option_problem(SmallWritesOptions::check, change);
        assert_eq!(refused(|_| ()), "");
        assert!(refused(|options| options.exchanges = 9).starts_with("exchanges: "));
        assert!(refused(|options| options.repetition.seconds = f64::NAN).starts_with("seconds: "));
        assert!(refused(|options| options.repetition.runs = 0).starts_with("runs: "));
        let only = refused(|options| options.only = vec!["tcp slowly".to_owned()]);
        assert!(
            only.contains("`tcp slowly` takes no part") && only.contains("tcp gather"),
            "{only}"
        );
    }

    #[test]
    fn the_selected_variants_keep_their_order() {
        let only = ["apus whole", "tcp split"].map(str::to_owned).to_vec();
        let names = |options: SmallWritesOptions| {
            options.variants().iter().map(|variant| variant.name).collect::<Vec<_>>()
        };
        assert_eq!(
            names(SmallWritesOptions { only, ..SmallWritesOptions::default() }),
            ["tcp split", "apus whole"]
        );
        assert_eq!(names(SmallWritesOptions::default()).len(), Variant::ALL.len());
    }
}
