//! Errors of a configuration.

use super::Parameter;

/// Why a configuration is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The parameter does not exist.
    #[error("no parameter is called `{0}`")]
    UnknownParameter(String),
    /// A value lies outside of its range.
    #[error(
        "{} = {value} {unit}, but it must be {min} to {max}",
        parameter.name, unit = parameter.unit, min = parameter.min, max = parameter.max
    )]
    OutOfRange {
        /// The parameter.
        parameter: &'static Parameter,
        /// Its value.
        value: u64,
    },
    /// Two values contradict each other.
    #[error("{} = {} is more than {} = {}", small.0, small.1, large.0, large.1)]
    Relation {
        /// Name and value of the parameter that must be at most…
        small: (&'static str, u64),
        /// …this one, by name and value.
        large: (&'static str, u64),
    },
    /// An entry of `priority_map` does not fit into three bits.
    #[error("priority_map holds {0}, but its entries must be 0 to 7")]
    PriorityMap(u8),
    /// The cutoffs do not fall from level to level.
    #[error(
        "unsched_cutoffs must be 0 for the scheduled levels and then not rise from level to level"
    )]
    Cutoffs,
}
