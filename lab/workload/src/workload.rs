//! Workloads by name: published workloads, fixed sizes, and files.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use crate::cdf::{self, CdfError};
use crate::published;
use crate::size_distribution::SizeDistribution;

/// A named distribution of message sizes.
///
/// Parsed from `w1` to `w5` (a published workload), a number (all messages have that size in
/// bytes), or the path of a file. A file that is named like a workload or a number is selected by a
/// path like `./w1`.
///
/// A file has one line per size: the size in bytes, white space, and the share of the messages that
/// have this size or a smaller one. Both increase from line to line, and the last share is 1. `#`
/// starts a comment; empty lines are ignored. [`CdfError`] lists the possible mistakes.
///
/// ```text
/// # size  share of the messages up to this size
/// 64      0.5
/// 1500    0.9
/// 1000000 1
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    name: String,
    sizes: SizeDistribution,
}

impl Workload {
    /// Returns the published workload `W<number>`.
    ///
    /// # Panics
    ///
    /// `number` is not 1 to 5.
    #[must_use]
    pub fn published(number: u32) -> Self {
        let sizes = published::sizes(number).expect("the published workloads are W1 to W5");
        Self { name: format!("w{number}"), sizes }
    }

    /// Returns the distribution of its message sizes.
    #[must_use]
    pub const fn sizes(&self) -> &SizeDistribution {
        &self.sizes
    }

    /// Returns the workload with messages longer than `limit` bytes cut to `limit`. The name shows
    /// whether this changes anything.
    ///
    /// # Panics
    ///
    /// `limit` is 0.
    #[must_use]
    pub fn truncated(self, limit: u32) -> Self {
        if self.sizes.largest() <= limit {
            return self;
        }
        let name = format!("{} truncated at {limit} bytes", self.name);
        Self { name, sizes: self.sizes.truncated(limit) }
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)
    }
}

/// Reason why a name does not select a workload.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The name is not a workload, a size, or a readable file.
    #[error(
        "`{name}` is not a workload (`w1` to `w5`), a message size in bytes (like `100`) or a readable file \
         (like `./sizes.cdf`): {source}"
    )]
    Unknown {
        /// The name.
        name: String,
        /// The system's error for a file of this name.
        source: io::Error,
    },
    /// The file does not contain a distribution.
    #[error("{}: {source}", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// The problem.
        source: CdfError,
    },
}

impl FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(name: &str) -> Result<Self, WorkloadError> {
        if let Some(number) = published_number(name) {
            return Ok(Self::published(number));
        }
        if let Some(size) = cdf::parse_size(name) {
            return Ok(Self { name: size.to_string(), sizes: SizeDistribution::fixed(size) });
        }
        let text = fs::read_to_string(name)
            .map_err(|source| WorkloadError::Unknown { name: name.to_owned(), source })?;
        let sizes = cdf::parse(&text)
            .map_err(|source| WorkloadError::File { path: PathBuf::from(name), source })?;
        Ok(Self { name: name.to_owned(), sizes })
    }
}

/// Returns 4 for `w4` or `W4`.
fn published_number(name: &str) -> Option<u32> {
    let digit = name.strip_prefix(['w', 'W'])?;
    (1..=5).find(|number| digit == number.to_string())
}
