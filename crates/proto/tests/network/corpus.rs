//! Replay of the fuzzers' findings.
//!
//! The bodies of the fuzz targets are here, so that plain `cargo test` runs them; `fuzz/` at the root of the
//! repository feeds them with new inputs, and the tests of this crate with those that are kept in
//! `fuzz/corpus`. How to fuzz is in `fuzz/README.md`.

use crate::{handle_packet, operations};
use std::path::Path;

/// Gives each input of `target` to `body`.
fn replay(target: &str, body: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    if !folder.exists() {
        eprintln!("SKIPPED: {} is not there: this is not the repository", folder.display());
        return;
    }
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        body(&std::fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{} holds no inputs", folder.display());
}

#[test]
fn handle_packet() {
    replay("handle_packet", handle_packet::run);
}

#[test]
fn operations() {
    replay("operations", operations::run);
}
