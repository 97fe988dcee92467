//! The harness: finds the operator's command.

use std::path::PathBuf;

pub(crate) use apus_command_line::testing::{object, text};

/// Returns the operator's command, built by another package: it is next to `apus-lab` if the whole
/// workspace is tested. Returns `None`, with a message, otherwise.
pub(crate) fn program() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_apus-lab")).with_file_name("apus");
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: `cargo build -p apus-cli` builds {}", path.display());
    None
}
