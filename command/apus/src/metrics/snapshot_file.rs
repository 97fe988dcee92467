//! Snapshot files, written by `--save` and read by `--diff`.

use std::fs;
use std::path::Path;

use apus::snapshot::Snapshot;

use apus_command_line::destination::Destination;
use apus_command_line::failure::Failure;

/// Writes the snapshots of some processes to a file.
///
/// # Errors
///
/// [`Failure::Argument`] if the file cannot be written.
pub(super) fn write(path: &Path, snapshots: &[Snapshot]) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(snapshots).expect("maps with text keys");
    Destination::open("--save", path)?.fill((text + "\n").as_bytes())
}

/// Reads a snapshot file.
///
/// # Errors
///
/// [`Failure::Argument`] if the file cannot be read or is not a snapshot file.
pub(super) fn read(path: &Path) -> Result<Vec<Snapshot>, Failure> {
    let failure = |problem: String| Failure::Argument { argument: "--diff".to_owned(), problem };
    let text = fs::read_to_string(path)
        .map_err(|error| failure(format!("{}: {error}", path.display())))?;
    serde_json::from_str(&text).map_err(|error| {
        let hint = "`apus metrics --save FILE` writes one";
        failure(format!("{} contains no counters of apus ({error}); {hint}", path.display()))
    })
}
