//! Do the fuzzer's findings still hold?
//!
//! The body of the fuzz target is here, so that everybody has it; `fuzz/` at the root of the repository
//! feeds it with new inputs, and this test with those that are kept in `fuzz/corpus`. What reads
//! control messages is private to the crate, hence the paths.

#[path = "../../src/address.rs"]
#[allow(dead_code, reason = "only what reads is fuzzed")]
mod address;
#[path = "../../src/cmsg.rs"]
#[allow(dead_code, reason = "only what reads is fuzzed")]
mod cmsg;
mod control;

use std::path::Path;

#[test]
fn control() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/control");
    if !folder.exists() {
        eprintln!("SKIPPED: {} is not there: this is not the repository", folder.display());
        return;
    }
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        control::run(&std::fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{} holds no inputs", folder.display());
}
