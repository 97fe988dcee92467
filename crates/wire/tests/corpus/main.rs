//! Replay of the fuzzer's findings.
//!
//! The body of the fuzz target is here, so that plain `cargo test` runs it; `fuzz/` at the root of the repository
//! feeds it with new inputs, and this test with those that are kept in `fuzz/corpus`.

mod parse;

use std::path::Path;

#[test]
fn parse() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/parse");
    if !folder.exists() {
        eprintln!("SKIPPED: {} is not there: this is not the repository", folder.display());
        return;
    }
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        parse::run(&std::fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{} holds no inputs", folder.display());
}
