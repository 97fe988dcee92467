//! One file of 256 MiB: written, read, and read in random order.
//!
//! Each block of 4 KiB starts with its number, so that a reader notices misplaced blocks.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use apus_testbed::error::{Doing, Error};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use rustix::fs::{Advice, fadvise};

use crate::bench::stage::{Sample, Stage, Until};

/// Bytes of the file.
pub(super) const BYTES: u64 = 256 << 20;
/// Bytes of a block.
const BLOCK: usize = 4096;
/// Bytes of a piece.
const PIECE: usize = 1 << 20;
/// Reads in random order.
const READS: u64 = 2_000;

/// Writes it.
pub(super) fn write(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    let path = path(stage);
    let doing = || format!("write {}", path.display());
    let mut piece = vec![b'x'; PIECE];
    let sample = stage.measure(Until::AtServer, |stage| {
        let mut file = File::create(&path).doing(doing)?;
        for first in (0..BYTES / BLOCK as u64).step_by(PIECE / BLOCK) {
            for (number, block) in (first..).zip(piece.chunks_exact_mut(BLOCK)) {
                block[..8].copy_from_slice(&number.to_le_bytes());
            }
            file.write_all(&piece).doing(doing)?;
            stage.interrupt.check()?;
        }
        file.sync_all().doing(doing)
    })?;
    Ok(Sample { bytes: Some(BYTES), ..sample })
}

/// Reads it on a client that has not seen it.
pub(super) fn read(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    prepare(stage)?;
    stage.make_cold()?;
    let path = path(stage);
    let sample = stage
        .measure(Until::Returned, |stage| read_all(&path, |_| stage.interrupt.check()).map(drop))?;
    Ok(Sample { bytes: Some(BYTES), ..sample })
}

/// Reads blocks in random order on a client that has not seen them.
pub(super) fn read_random(stage: &mut Stage<'_>) -> Result<Sample, Error> {
    prepare(stage)?;
    stage.make_cold()?;
    let path = path(stage);
    let doing = || format!("read {}", path.display());
    let file = File::open(&path).doing(doing)?;
    fadvise(&file, 0, None, Advice::Random).doing(doing)?;
    let mut random = Pcg64::seed_from_u64(stage.run);
    let mut block = vec![0; BLOCK];
    stage.measure_each(Until::Returned, READS, |_| {
        let number = random.random_range(0..BYTES / BLOCK as u64);
        file.read_exact_at(&mut block, number * BLOCK as u64).doing(doing)?;
        check(&block, number)
    })
}

/// Writes the file if it does not exist.
pub(super) fn prepare(stage: &mut Stage<'_>) -> Result<(), Error> {
    if path(stage).exists() { Ok(()) } else { write(stage).map(drop) }
}

/// Returns its path.
pub(super) fn path(stage: &Stage<'_>) -> PathBuf {
    stage.path("large")
}

/// Reads the file from its start in pieces. `proceed` is called with the number of bytes so far; an
/// error from it stops the read.
pub(super) fn read_all(
    path: &Path,
    mut proceed: impl FnMut(u64) -> Result<(), Error>,
) -> Result<u64, Error> {
    let doing = || format!("read {}", path.display());
    let mut file = File::open(path).doing(doing)?;
    let mut piece = vec![0; PIECE];
    let mut done = 0;
    while done < BYTES {
        file.read_exact(&mut piece).doing(doing)?;
        for (number, block) in (done / BLOCK as u64..).zip(piece.chunks_exact(BLOCK)) {
            check(block, number)?;
        }
        done += PIECE as u64;
        proceed(done)?;
    }
    Ok(done)
}

fn check(block: &[u8], number: u64) -> Result<(), Error> {
    if block.starts_with(&number.to_le_bytes()) && block.ends_with(b"x") {
        return Ok(());
    }
    Err(Error::Peer(format!(
        "block {number} of the large file has another content than was written"
    )))
}
