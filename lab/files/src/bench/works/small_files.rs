//! 500 files of 1 KiB: the work that the ancestor of this file service was built for.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use apus_testbed::error::{Doing, Error};

use crate::bench::stage::{Sample, Stage, Until};

/// Number of files.
pub(super) const FILES: u64 = 500;
/// Bytes of each.
const BYTES: usize = 1024;

/// Name of the directory that [`sync`] leaves.
const LEFT: &str = "small";

/// Writes them, and waits until all are at the server.
pub(super) fn sync(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    write(stage, LEFT, false)
}

/// Writes them, each with fsync.
pub(super) fn fsync(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    write(stage, "small-synced", true)
}

/// Writes the files if they do not exist.
pub(super) fn prepare(stage: &mut Stage<'_>) -> Result<(), Error> {
    if stage.path(LEFT).exists() { Ok(()) } else { sync(stage).map(drop) }
}

/// Returns the name of a file in the directory of the run.
pub(super) fn name(index: u64) -> String {
    format!("{LEFT}/file-{index}")
}

fn write(stage: &mut Stage<'_>, directory: &str, synced: bool) -> Result<Sample, Error> {
    let directory = stage.path(directory);
    fs::create_dir(&directory).doing(|| format!("create {}", directory.display()))?;
    let content = [b'x'; BYTES];
    stage.measure_each(Until::AtServer, FILES, |index| {
        write_one(&directory.join(format!("file-{index}")), &content, synced)
    })
}

fn write_one(path: &Path, content: &[u8], synced: bool) -> Result<(), Error> {
    let written = File::create(path).and_then(|mut file| {
        file.write_all(content)?;
        if synced { file.sync_all() } else { Ok(()) }
    });
    written.doing(|| format!("write {}", path.display()))
}
