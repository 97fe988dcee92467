//! What can be asked of every experiment?

use apus::PollMode;
use clap::{Args, Command};

/// How long an experiment lasts, and how its result is printed. The defaults are the experiment's own:
/// see [`with_defaults`].
#[derive(Debug, Args)]
pub(crate) struct Repetition {
    /// Seconds that count, for each contender in each run: 0.01 to 3600
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(crate) seconds: f64,
    /// How often everything is repeated, 1 to 1000; reported are the median over the runs, the least
    /// and the greatest
    #[arg(long, value_name = "RUNS", allow_negative_numbers = true)]
    pub(crate) runs: usize,
    /// Where chance begins: the same seed draws the same messages
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// How to wait for packets: `spin`, `block`, or `hybrid=MICROSECONDS` to spin for so long and
    /// then sleep (`hybrid` alone: 50)
    #[arg(long, value_name = "MODE")]
    pub(crate) poll: PollMode,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
}

/// Gives arguments the default values that an experiment has for them.
pub(crate) fn with_defaults<const N: usize>(
    command: Command,
    defaults: [(&'static str, String); N],
) -> Command {
    defaults.into_iter().fold(command, |command, (name, value)| {
        command.mut_arg(name, |argument| argument.required(false).default_value(value))
    })
}
