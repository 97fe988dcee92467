//! The harness: starts `apus-lab` processes.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

pub(crate) use apus_command_line::testing::{object, skip_reason, text, with_fake};

/// Returns the command under test.
pub(crate) fn lab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_apus-lab"))
}

/// Runs the command to its end.
pub(crate) fn run(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Output {
    lab().args(arguments).stdin(Stdio::null()).output().unwrap()
}

/// Returns the operator's command, built by another package: it is next to the command under test
/// if the whole workspace is tested. Returns `None`, with a message, otherwise.
pub(crate) fn apus() -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_BIN_EXE_apus-lab")).with_file_name("apus");
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: `cargo build -p apus-cli` builds {}", path.display());
    None
}
