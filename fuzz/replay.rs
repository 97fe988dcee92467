//! Replay of stored fuzzer inputs. The crates that have the body of a fuzz target include this file
//! in their tests, so that plain `cargo test` runs every input that was ever worth keeping.

use std::path::Path;

/// Passes each input in `fuzz/corpus/<target>` to `body`. Prints the path first, so that a panic
/// names its input. A packaged crate has no corpus: the test says so and passes.
///
/// # Panics
///
/// If the folder has no inputs.
pub(crate) fn replay(target: &str, body: impl Fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    if !folder.exists() {
        eprintln!("SKIPPED: no folder {}: this is not the repository", folder.display());
        return;
    }
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        eprintln!("{}", path.display());
        body(&std::fs::read(path).unwrap());
        inputs += 1;
    }
    assert!(inputs > 0, "{} has no inputs", folder.display());
}
