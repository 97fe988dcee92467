//! The description of a parameter: its name, unit, default and range.

/// Description of one integer parameter, for help texts, sweeps and checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name in [`crate::Config`], in files and on the command line.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Its value unless another one is set.
    pub default: u64,
    /// Smallest value allowed.
    pub min: u64,
    /// Largest value allowed.
    pub max: u64,
}

impl Parameter {
    /// Parses a value of this parameter.
    ///
    /// # Errors
    ///
    /// The text is not an integer, or out of range. The message names the range and an example.
    pub fn parse(&self, text: &str) -> Result<u64, String> {
        let Self { name, unit, default, min, max } = *self;
        let value = text.parse().ok().filter(|value| (min..=max).contains(value));
        value.ok_or_else(|| {
            format!("{name} is {min} to {max} {unit}, not `{text}`; try {name}={default}")
        })
    }
}
