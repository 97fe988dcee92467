//! Merging: one result from the shards of a sweep.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::record::PointRecord;
use apus_report::lines::{LinesError, read};

/// Reason why files do not form one result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A file does not hold points.
    #[error(transparent)]
    Lines(#[from] LinesError),
    /// All files are empty.
    #[error(
        "no file holds a point of a sweep; name files that `apus-lab sim run --out` has written"
    )]
    Nothing,
    /// The files belong to different sweeps.
    #[error(
        "{} and {} belong to different sweeps, or to different versions of apus: {} and {}",
        .files[0].display(), .files[1].display(), .plans[0], .plans[1]
    )]
    Plans {
        /// Two files.
        files: [PathBuf; 2],
        /// Their plans.
        plans: [String; 2],
    },
    /// A point has two results.
    #[error(
        "point {index} has different results in {} and {}, which cannot be with the same program: run it \
         again, and compare the machines",
        .files[0].display(), .files[1].display()
    )]
    Different {
        /// The point.
        index: u32,
        /// The files that contradict each other.
        files: [PathBuf; 2],
    },
    /// Points that no file contains.
    #[error("{} of {of} points are missing: {}", .missing.len(), first(.missing))]
    Missing {
        /// The points.
        missing: Vec<u32>,
        /// Number of points in the plan.
        of: u32,
    },
}

/// Formats the first of many numbers.
fn first(numbers: &[u32]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = numbers.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = if numbers.len() > SHOWN { ", …" } else { "" };
    shown.join(", ") + more
}

/// Returns all records of a plan, from files that hold parts of it. A point may be in several
/// files.
///
/// # Errors
///
/// The files do not hold points, belong to different plans, contradict each other, or lack points.
pub fn merge(files: &[PathBuf]) -> Result<Vec<PointRecord>, MergeError> {
    let mut all: BTreeMap<u32, (PointRecord, &Path)> = BTreeMap::new();
    let mut plan: Option<(String, u32, &Path)> = None;
    for file in files {
        for record in read::<PointRecord>(file)? {
            let (name, of, first) =
                plan.get_or_insert_with(|| (record.plan.clone(), record.of, file));
            if (&*name, *of) != (&record.plan, record.of) {
                let files = [first.to_owned(), file.clone()];
                return Err(MergeError::Plans { files, plans: [name.clone(), record.plan] });
            }
            match all.get(&record.index) {
                Some((other, at)) if *other != record => {
                    let files = [(*at).to_owned(), file.clone()];
                    return Err(MergeError::Different { index: record.index, files });
                }
                _ => all.insert(record.index, (record, file)),
            };
        }
    }
    let (_, of, _) = plan.ok_or(MergeError::Nothing)?;
    let missing: Vec<u32> = (0..of).filter(|index| !all.contains_key(index)).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing { missing, of });
    }
    Ok(all.into_values().map(|(record, _)| record).collect())
}
