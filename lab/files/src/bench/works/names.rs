//! Names: created, changed, removed, one after another.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use apus_testbed::error::{Doing, Error};

use crate::bench::stage::{Sample, Stage, Until};

/// Number of files.
const FILES: u64 = 1_000;
/// Name of the directory in the directory of the run.
const DIRECTORY: &str = "names";

/// Creates empty files.
pub(super) fn create(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    let directory = stage.path(DIRECTORY);
    if directory.exists() {
        fs::remove_dir_all(&directory).doing(|| format!("remove {}", directory.display()))?;
    }
    fs::create_dir(&directory).doing(|| format!("create {}", directory.display()))?;
    stage.measure_each(Until::AtServer, FILES, |index| {
        let path = before(&directory, index);
        File::create_new(&path).map(drop).doing(|| format!("create {}", path.display()))
    })
}

/// Gives them other names.
pub(super) fn rename(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    let directory = stage.path(DIRECTORY);
    if !before(&directory, 0).exists() {
        create(stage)?;
    }
    stage.measure_each(Until::AtServer, FILES, |index| {
        let (from, to) = (before(&directory, index), after(&directory, index));
        fs::rename(&from, to).doing(|| format!("rename {}", from.display()))
    })
}

/// Removes them.
pub(super) fn unlink(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    let directory = stage.path(DIRECTORY);
    if !after(&directory, 0).exists() {
        rename(stage)?;
    }
    stage.measure_each(Until::AtServer, FILES, |index| {
        let path = after(&directory, index);
        fs::remove_file(&path).doing(|| format!("remove {}", path.display()))
    })
}

fn before(directory: &Path, index: u64) -> PathBuf {
    directory.join(format!("file-{index}"))
}

fn after(directory: &Path, index: u64) -> PathBuf {
    directory.join(format!("renamed-{index}"))
}
