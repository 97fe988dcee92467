//! Provides the commit of the build: without it a result cannot be repeated.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=APUS_COMMIT");
    let commit = env::var("APUS_COMMIT").ok().or_else(from_git);
    println!("cargo::rustc-env=APUS_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
}

/// Returns the checked-out commit. `None` without git, and in a copy of the sources outside version
/// control.
fn from_git() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // The reflog changes whenever another commit is checked out, and exists in worktrees too.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    println!("cargo::rerun-if-changed={log}");
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
