//! `git status` of a clean repository.

use std::path::Path;

use apus_testbed::error::Error;

use super::trees::untar;
use crate::bench::material::Archive;
use crate::bench::program;
use crate::bench::stage::{Sample, Stage, Until};

/// Name of the repository in the directory of the run.
const REPOSITORY: &str = "repository-443";

/// On a client that has not seen the files.
pub(super) fn cold(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    prepare(stage)?;
    stage.make_cold()?;
    measure(stage)
}

/// Again on the same client.
pub(super) fn warm(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    prepare(stage)?;
    status(&stage.path(REPOSITORY))?;
    measure(stage)
}

fn measure(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    let sample = stage.measure(Until::Returned, |stage| status(&stage.path(REPOSITORY)))?;
    Ok(Sample { operations: Some(Archive::Repository.shape().files as u64), ..sample })
}

/// Unpacks the repository, and makes git record the identities of its files, which differ from
/// those in the archive.
fn prepare(stage: &mut Stage<'_>) -> Result<(), Error> {
    let repository = stage.path(REPOSITORY);
    if repository.exists() {
        return Ok(());
    }
    untar(stage, Archive::Repository, &repository)?;
    status(&repository)
}

fn status(repository: &Path) -> Result<(), Error> {
    // Mounts show other owners than the user that measures.
    let words = ["-c", "safe.directory=*", "status", "--porcelain"];
    let changed = program::run("git", &words, repository)?;
    match changed.lines().next() {
        None => Ok(()),
        Some(line) => {
            Err(Error::Peer(format!("git status: nothing was changed, and it says {line}")))
        }
    }
}
