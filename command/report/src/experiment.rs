//! Experiments: options that are declared once, a run, and findings.
//!
//! The type of an experiment's options is the experiment. It derives `clap::Args`, so names, help
//! texts and defaults of the options are declared in one place. `Default` is the empty command line
//! ([`defaults`]), and a result shows the serialised fields as its settings ([`config`]).

use clap::{Args, Command, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::findings::Findings;

/// An experiment with its options.
pub trait Experiment {
    /// Why an experiment fails.
    type Error;

    /// Runs the experiment, and returns its findings.
    ///
    /// # Errors
    ///
    /// An option is out of range, or the measurement failed.
    fn run(&self) -> Result<Findings, Self::Error>;
}

/// Returns the options of an empty command line.
///
/// # Panics
///
/// If an option is required.
#[must_use]
pub fn defaults<O: Args>() -> O {
    let matches = O::augment_args(Command::new("defaults")).get_matches_from(["defaults"]);
    O::from_arg_matches(&matches).expect("options with defaults")
}

/// Returns the name of a value of an option.
///
/// # Panics
///
/// If the command line skips the value.
pub fn name(value: &impl ValueEnum) -> String {
    let value = value.to_possible_value().expect("a value of the command line");
    value.get_name().to_owned()
}

/// Returns the fields of `options` by name, for the settings of a result.
///
/// # Panics
///
/// If `options` does not serialise to a JSON object.
pub fn config(options: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(options) {
        Ok(Value::Object(config)) => config,
        other => panic!("options that are no object: {other:?}"),
    }
}
