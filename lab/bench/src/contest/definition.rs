//! The definition of a contest: contenders, figures of a row, ratios.

use clap::Command;

use super::options::ContestOptions;
use super::reading::Reading;
use crate::contenders::contender::Contender;
use apus_measure::exchange::Pair;

/// The figure that compares numbers of shards: nanoseconds of processor time per reply, of both
/// sides.
pub(super) const COST: &str = "cpu_ns_per_rpc";

/// A contest: its contenders and the compared figures.
#[derive(Debug)]
pub struct Contest {
    /// Its name, like `rtt`.
    pub name: &'static str,
    /// One line of help.
    pub about: &'static str,
    /// More help: the measurement and its contenders.
    pub more: &'static str,
    /// A typical invocation.
    pub example: &'static str,
    /// The defaults of its options.
    pub defaults: fn() -> ContestOptions,
    /// Returns the contenders; if the contest has rows for shards, one more for each number of
    /// shards.
    pub(super) contenders: fn(&[usize]) -> Vec<Box<dyn Contender>>,
    /// Whether the contest has rows for numbers of shards.
    pub(super) has_shards: bool,
    /// Returns the figures of a contender in one run, by name.
    pub(super) figures: fn(&Pair) -> Vec<(&'static str, Reading)>,
    /// The compared figure.
    pub(super) compared: &'static str,
    /// Dividends and divisors of the ratios.
    pub(super) ratios: &'static [(&'static str, &'static str)],
}

impl Contest {
    /// Returns `command`, a command with [`ContestOptions`], with the defaults and the help of this
    /// contest.
    #[must_use]
    pub fn describe(&self, command: Command) -> Command {
        let Self { about, more, example, .. } = self;
        let ContestOptions { size, outstanding, repetition, .. } = (self.defaults)();
        command
            .mut_arg("shards", |argument| argument.hide(!self.has_shards))
            .mut_arg("size", |argument| argument.default_value(size.to_string()))
            .mut_arg("outstanding", |argument| argument.default_value(outstanding.to_string()))
            .mut_arg("poll", |argument| argument.default_value(repetition.poll.to_string()))
            .about(*about)
            .long_about(format!("{about}\n\n{more}"))
            .after_help(format!("Examples:\n  {example}\n  {example} --json"))
    }
}
