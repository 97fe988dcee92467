//! By what name do people ask for a workload?

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;

use crate::cdf::{self, CdfError};
use crate::{Sizes, tables};

/// A named distribution of message sizes.
///
/// Parsed from `w1` to `w5` (a published workload), a number (all messages have that size in bytes),
/// or the path of a file. A file that is called like a workload or a number is reached as `./w1`.
///
/// A file has one line per size: the size in bytes, white space, and the share of the messages that
/// have this size or a smaller one. Both increase from line to line and the last share is 1. `#`
/// begins a comment; empty lines do not count. [`CdfError`] lists what can be wrong with it.
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
    sizes: Sizes,
}

impl Workload {
    /// The published workload `W<number>`.
    ///
    /// # Panics
    ///
    /// If `number` is not 1 to 5.
    #[must_use]
    pub fn published(number: u32) -> Self {
        let table = tables::table(number).expect("the published workloads are W1 to W5");
        Self { name: format!("w{number}"), sizes: Sizes::from_shares(table) }
    }

    /// The sizes of its messages.
    #[must_use]
    pub const fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The same workload, except that a longer message than `limit` bytes is as long as `limit`. Its
    /// name says so, if there is such a message.
    ///
    /// # Panics
    ///
    /// If `limit` is 0.
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

/// Why a workload is not to be had by that name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// The name is neither a workload, nor a size, nor a file that can be read.
    #[error(
        "`{name}` is no workload (`w1` to `w5`), no message size in bytes (like `100`) and no file \
         that can be read (like `./sizes.cdf`): {source}"
    )]
    Unknown {
        /// What was asked for.
        name: String,
        /// What the system said about a file of this name.
        source: io::Error,
    },
    /// The file can be read, but its content is no distribution.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
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
            return Ok(Self { name: size.to_string(), sizes: Sizes::fixed(size) });
        }
        let text = fs::read_to_string(name)
            .map_err(|source| WorkloadError::Unknown { name: name.to_owned(), source })?;
        let sizes = cdf::parse(&text)
            .map_err(|source| WorkloadError::File { path: PathBuf::from(name), source })?;
        Ok(Self { name: name.to_owned(), sizes })
    }
}

/// 4 for `w4` or `W4`.
fn published_number(name: &str) -> Option<u32> {
    let digit = name.strip_prefix(['w', 'W'])?;
    (1..=5).find(|number| digit == number.to_string())
}
