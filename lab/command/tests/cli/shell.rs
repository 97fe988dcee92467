//! The command in a shell: completions and man pages.

use std::fs;

use crate::harness::{lab, run, text};

/// Commands that completions and man pages must contain.
const COMMANDS: [&str; 8] = ["demo", "bench", "lab", "sim", "fabric", "fs", "completions", "man"];

#[test]
fn completions_know_every_command_and_nothing_hidden() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(["completions", shell]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let script = text(&output.stdout);
        for word in COMMANDS.iter().chain(&["rtt", "outstanding", "overload"]) {
            assert!(script.contains(word), "{shell}: {word}");
        }
        assert!(!script.contains(apus_measure::process::AGENT), "{shell}");
    }
}

#[test]
fn man_pages_are_written_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("not/there/yet");
    let output = lab().arg("man").arg(&pages).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for command in COMMANDS {
        let page = fs::read_to_string(pages.join(format!("apus-lab-{command}.1"))).unwrap();
        assert!(page.contains(".TH") && page.contains("Examples:"), "{command}: {page}");
    }
    assert!(pages.join("apus-lab-bench-rtt.1").exists());
    let first = fs::read_to_string(pages.join("apus-lab.1")).unwrap();
    assert_eq!(text(&run(["man"]).stdout), first);
}

#[test]
fn the_agent_command_is_hidden() {
    let output = run([apus_measure::process::AGENT]);
    assert_eq!(output.status.code(), Some(1), "the agent receives no task");
    assert!(!text(&run(["--help"]).stdout).contains(apus_measure::process::AGENT));
}
