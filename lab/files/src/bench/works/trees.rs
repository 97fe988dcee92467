//! Trees: unpacked by tar, walked by find, removed by rm.

use std::fs;
use std::path::Path;

use apus_testbed::error::{Doing, Error};

use crate::bench::material::Archive;
use crate::bench::program;
use crate::bench::stage::{Sample, Stage, Until};

/// Name of the small tree in the directory of the run.
const SMALL: &str = "tree-443";

/// Unpacks 443 files.
pub(super) fn untar_small(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    let target = stage.path(SMALL);
    if target.exists() {
        fs::remove_dir_all(&target).doing(|| format!("remove {}", target.display()))?;
    }
    untar(stage, Archive::Small, &target)
}

/// Unpacks 1,565 files, and removes them.
pub(super) fn untar_large(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    let target = stage.path("tree-1565");
    let sample = untar(stage, Archive::Large, &target)?;
    fs::remove_dir_all(&target).doing(|| format!("remove {}", target.display()))?;
    Ok(sample)
}

/// Unpacks an archive into a new directory.
pub(super) fn untar(
    stage: &mut Stage<'_>,
    archive: Archive,
    target: &Path,
) -> Result<Sample, Error> {
    let file = stage.material.archive(archive)?;
    fs::create_dir(target).doing(|| format!("create {}", target.display()))?;
    let sample = stage.measure(Until::AtServer, |_| {
        let words = ["--extract".as_ref(), "--file".as_ref(), file.as_os_str()];
        program::run("tar", &words, target).map(drop)
    })?;
    Ok(Sample { operations: Some(archive.shape().files as u64), ..sample })
}

/// Walks 443 files on a client that has not seen them.
pub(super) fn find(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    prepare(stage)?;
    stage.make_cold()?;
    let (tree, files) = (stage.path(SMALL), Archive::Small.shape().files);
    let sample = stage.measure(Until::Returned, |_| {
        let words =
            [tree.as_os_str(), "-type".as_ref(), "f".as_ref(), "-printf".as_ref(), "%s\n".as_ref()];
        let found = program::run("find", &words, "/".as_ref())?.lines().count();
        if found == files {
            Ok(())
        } else {
            Err(Error::Peer(format!("find: {found} files of {files}")))
        }
    })?;
    Ok(Sample { operations: Some(files as u64), ..sample })
}

/// Removes 443 files.
pub(super) fn remove(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    prepare(stage)?;
    let tree = stage.path(SMALL);
    let sample = stage.measure(Until::AtServer, |_| {
        program::run("rm", &["-rf".as_ref(), tree.as_os_str()], "/".as_ref()).map(drop)
    })?;
    Ok(Sample { operations: Some(Archive::Small.shape().files as u64), ..sample })
}

fn prepare(stage: &mut Stage<'_>) -> Result<(), Error> {
    if stage.path(SMALL).exists() { Ok(()) } else { untar_small(stage).map(drop) }
}
