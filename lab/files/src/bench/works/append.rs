//! A log: lines that are appended, each with fsync.

use std::fs::OpenOptions;
use std::io::Write;

use apus_testbed::error::{Doing, Error};

use crate::bench::stage::{Sample, Stage, Until};

/// Number of lines.
const LINES: u64 = 300;

/// Appends them.
pub(super) fn run(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    let path = stage.path("log");
    let doing = || format!("append to {}", path.display());
    let mut file = OpenOptions::new().append(true).create(true).open(&path).doing(doing)?;
    let line = [[b'x'; 99].as_slice(), b"\n"].concat();
    stage.measure_each(Until::Returned, LINES, |_| {
        file.write_all(&line).and_then(|()| file.sync_data()).doing(doing)
    })
}
