//! Files of records: results that outlive an interrupted experiment.
//!
//! A file has one JSON object per line, in the order of the plan, whatever the order of additions.
//! It is replaced as a whole, so it is never half written.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::output_file::OutputFile;

/// The content of a line: a part of a plan.
pub trait Record: Serialize + DeserializeOwned {
    /// Returns the name of the plan.
    fn plan(&self) -> &str;

    /// Returns the number of the part, from 0.
    fn index(&self) -> u32;

    /// Returns the number of parts.
    fn of(&self) -> u32;
}

/// A file that collects records.
#[derive(Debug)]
pub struct Lines<R> {
    file: OutputFile,
    records: BTreeMap<u32, R>,
}

/// A problem with a file of records.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinesError {
    /// The system refused an operation.
    #[error("{}: {source}", path.display())]
    System {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path is not a plain file.
    #[error("{}: not a plain file", .0.display())]
    NotAFile(PathBuf),
    /// A line is not a record.
    #[error("{}: line {line} is no point of a sweep: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The error of the parser.
        problem: String,
    },
    /// The file holds points of another plan.
    #[error(
        "{}: holds points of another sweep or of another version of apus ({found}, not {expected}); \
         name another file, or remove it",
        path.display()
    )]
    OtherPlan {
        /// The file.
        path: PathBuf,
        /// The plan that its points belong to.
        found: String,
        /// The plan of this run.
        expected: String,
    },
}

impl<R: Record> Lines<R> {
    /// Opens a file for the records of the plan `plan`. Records in the file are kept.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not a file of such records.
    pub fn open(path: &Path, plan: &str) -> Result<Self, LinesError> {
        let file = output_file(path)?;
        if let Err(error) = fs::metadata(path)
            && error.kind() == io::ErrorKind::NotFound
        {
            return Ok(Self { file, records: BTreeMap::new() });
        }
        let mut records = BTreeMap::new();
        for record in read::<R>(path)? {
            if record.plan() != plan {
                let (found, expected) = (record.plan().to_owned(), plan.to_owned());
                return Err(LinesError::OtherPlan { path: path.to_owned(), found, expected });
            }
            records.insert(record.index(), record);
        }
        Ok(Self { file, records })
    }

    /// Returns whether the file holds this part.
    #[must_use]
    pub fn contains(&self, index: u32) -> bool {
        self.records.contains_key(&index)
    }

    /// Returns the record of this part, if the file holds it.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<&R> {
        self.records.get(&index)
    }

    /// Returns the records.
    pub fn records(&self) -> impl Iterator<Item = &R> {
        self.records.values()
    }

    /// Adds records and replaces the file.
    ///
    /// # Errors
    ///
    /// The disk is full, or the directory cannot be written.
    pub fn add(&mut self, records: impl IntoIterator<Item = R>) -> Result<(), LinesError> {
        self.records.extend(records.into_iter().map(|record| (record.index(), record)));
        let mut text = String::new();
        for record in self.records.values() {
            text += &serde_json::to_string(record).expect("maps with text keys, finite numbers");
            text.push('\n');
        }
        self.file.write(text.as_bytes()).map_err(|source| system(self.file.path(), source))
    }
}

/// Opens the file for records at `path`, so that problems show before the measurements.
fn output_file(path: &Path) -> Result<OutputFile, LinesError> {
    let file = OutputFile::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::IsADirectory => LinesError::NotAFile(path.to_owned()),
        _ => system(path, error),
    })?;
    // Only a plain file may be replaced, not a device such as /dev/stdout.
    if file.is_stream() { Err(LinesError::NotAFile(path.to_owned())) } else { Ok(file) }
}

fn system(path: &Path, source: io::Error) -> LinesError {
    LinesError::System { path: path.to_owned(), source }
}

/// Replaces a file by one with these records.
///
/// # Errors
///
/// The disk is full, or the directory cannot be written.
pub fn write<R: Record + Clone>(path: &Path, records: &[R]) -> Result<(), LinesError> {
    Lines { file: output_file(path)?, records: BTreeMap::new() }.add(records.iter().cloned())
}

/// Returns the records in a file.
///
/// # Errors
///
/// The file cannot be read, or is not a file of such records.
pub fn read<R: Record>(path: &Path) -> Result<Vec<R>, LinesError> {
    let text = fs::read_to_string(path)
        .map_err(|source| LinesError::System { path: path.to_owned(), source })?;
    let record = |(index, line): (usize, &str)| {
        let wrong = |problem| LinesError::Line { path: path.to_owned(), line: index + 1, problem };
        let record: R = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        if record.index() >= record.of() {
            let (index, of) = (record.index(), record.of());
            return Err(wrong(format!("point {index} of {of}, counted from 0")));
        }
        Ok(record)
    };
    text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(record).collect()
}
