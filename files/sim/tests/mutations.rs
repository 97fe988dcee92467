//! Mutations fit the sources: a patch that does not apply plants no bug.

use std::path::Path;
use std::process::Command;

#[test]
fn every_patch_applies() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(here.join("mutations")).unwrap();
    let patches = files.map(|file| file.unwrap().path());
    let is_patch = |path: &std::path::PathBuf| path.extension().is_some_and(|one| one == "patch");
    let patches: Vec<_> = patches.filter(is_patch).collect();
    assert!(patches.len() >= 10, "{patches:?}");
    for patch in patches {
        let check = ["apply", "--check"];
        let git =
            Command::new("git").current_dir(here.join("../..")).args(check).arg(&patch).output();
        let Ok(checked) = git else {
            eprintln!("SKIPPED: git is not installed");
            return;
        };
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    }
}
