//! All mutation patches apply to the sources: a patch that does not apply plants no bug.

use std::path::Path;
use std::process::Command;

#[test]
fn every_patch_applies() {
    let repository = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let folders = ["lab/swarm/mutations", "transport/proto/mutations", "transport/seal/mutations"];
    let patches: Vec<_> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(repository.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "patch"))
        .collect();
    assert!(patches.len() > 30, "{patches:?}");
    for patch in patches {
        let git = |words: &[&str]| {
            Command::new("git").current_dir(repository).args(words).arg(&patch).output()
        };
        let Ok(checked) = git(&["apply", "--check"]) else {
            eprintln!("SKIPPED: git is not installed");
            return;
        };
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
